"""What the archives of the benchmark data sets hold, so that others are not taken for them."""

# `GraphSet.checksum` of each: of the graphs, labels and attributes that were read, so that it does
# not matter how the text was packed, nor how its lines end. The collection's own zips, and copies
# of them that are compressed in another way, have other bytes and the same content.
CONTENTS = {
    "COLLAB": "ad4a1a082a823007a8a9f2e47389e3683af4552cbcbc34938260163c0fd568cf",
    "ENZYMES": "725738d2d8ea4f9a77c88f5391ddec0dc2f59640af7d0ca3b50461f600223385",
    "IMDB-BINARY": "b8e0340e2c1ceb4909194cd8dbc54034eae93dd8da6da2b05dc7b27244983681",
    "IMDB-MULTI": "cefdd1ce1a8c9977a15ba6d46bf61ef09cdb1cedbc3a2a3b0b6d14bfb0f6c53e",
    "MUTAG": "5b996644456169ff03b1041cab63d63cb896f7eb1d5569417c1ca7fd6614a7fb",
    "NCI1": "e7357e33c6df3ceba9a4f98eba210fa1942605e2e3e26d9f2f56bb147f911d7f",
    "PROTEINS": "ab6d4df12de28b76d95b0de3702147f89c3db5eb0b05e0942b96702d135c45d0",
    "PROTEINS_full": "8d76499284d2e59caf21d9a7bd015a2cda99ae94a95b5ce3fabb9c89ae78c7ca",
    "PTC_FM": "350999e7c55330fc8585b558c4fde92fa9b9348baaad95fea5d663cc1fcd617e",
    "PTC_MR": "64a17008942897d7b2a456fba5fd916cef617237b5a898f47bd4de1d8ebfff23",
    "REDDIT-BINARY": "39c506e2dd6b654e8ffefd09aea3866ebd87e8a16f64c9f4ba38941c4facc770",
    "REDDIT-MULTI-5K": "a459d0dd191b55d732adfde72934c6f211d944517ca51ce759adea6a06ceb0db",
}
