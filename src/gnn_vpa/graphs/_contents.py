"""What the archives of the benchmark data sets hold, so that others are not taken for them."""

from ..paper import archive_content, archive_names

# `GraphSet.checksum` of each: of the graphs, labels and attributes that were read, so that it does
# not matter how the text was packed, nor how its lines end. The collection's own zips, and copies
# of them that are compressed in another way, have other bytes and the same content.
CONTENTS = {name: archive_content(name) for name in archive_names()} | {
    "ENZYMES": "725738d2d8ea4f9a77c88f5391ddec0dc2f59640af7d0ca3b50461f600223385",
    "PROTEINS_full": "8d76499284d2e59caf21d9a7bd015a2cda99ae94a95b5ce3fabb9c89ae78c7ca",
}
