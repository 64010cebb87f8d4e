"""Numbers in the sentences of pages are those of the records, or of a calculation that is repeated.

Tables between `<!-- records: ... -->` are made from the records: tests/test_docs_site.py.
"""

import math
import re
from pathlib import Path

import pandas as pd
import pytest
import torch

from gnn_vpa.auditing._twins import twins_of
from gnn_vpa.graphs import alike, features, load, merge, splits
from gnn_vpa.graphs.alike import right_at_best
from gnn_vpa.paper import published

ROOT = Path(__file__).resolve().parents[1]
TABLE_ROW = re.compile(r"^\|(.+)\|$", flags=re.MULTILINE)


def page(name: str) -> str:
    """Return a page as one line, so that a sentence is found wherever its lines break."""
    return " ".join((ROOT / "docs" / name).read_text("utf-8").split())


def rows(name: str, heading: str) -> list[list[str]]:
    """Return the rows of the table whose head begins so."""
    table = (ROOT / "docs" / name).read_text("utf-8").split(f"| {heading} |", 1)[1]
    lines = TABLE_ROW.findall(table.split("\n\n")[0])
    return [[cell.strip(" *") for cell in line.split("|")] for line in lines][1:]


def says(name: str, *sentences: str) -> None:
    text = page(name)
    assert [sentence for sentence in sentences if sentence not in text] == []


def scientific(value: float, digits: int = 0) -> str:
    digit, exponent = f"{value:.{digits}e}".split("e")
    return f"{digit}e{int(exponent)}"


# Depth ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def deep() -> pd.DataFrame:
    """Networks of 64 layers, by data set, weights, residuals and aggregation."""
    record = pd.read_csv(ROOT / "results" / "depth" / "depth.csv").query("depth == 64")
    return record.set_index(["dataset", "weights", "residual", "aggr"]).sort_index()


def test_the_sentences_on_deep_networks_of_imdb_binary(deep: pd.DataFrame) -> None:
    starts, losses = deep["start_variance"]["IMDB-BINARY"], deep.loc["IMDB-BINARY"]
    signal = pd.read_csv(ROOT / "results" / "depth" / "signal.csv")
    signal = signal.query(
        "dataset == 'IMDB-BINARY' and depth == 64 and aggr == 'sum' and weights == 'default'"
        " and not residual"
    )
    beyond = signal[~(signal["variance"] < 1e38)]["layer"]
    assert list(beyond) == list(range(beyond.min(), 65))
    calibrated = {f"{starts['calibrated', True, aggr]:.1f}" for aggr in ("sum", "vpa")}
    assert calibrated == {"0.6"}
    first = losses["first_loss"]["calibrated", False]
    says(
        "depth.md",
        f"beyond 1e38 from layer {beyond.min()} on with PyTorch's weights and sum, and"
        f" {scientific(starts['default', False, 'vpa'])} with vpa; with residuals"
        f" {scientific(starts['default', True, 'sum'], 1)} and"
        f" {starts['default', True, 'vpa']:.1f}; calibrated"
        f" {starts['calibrated', False, 'vpa']:.1f}, with residuals 0.6.",
        f"the first epoch's mean loss at 64 layers is {first['sum']:.1f}, against"
        f" {first['vpa']:.2f} with vpa",
        f"not for sum (the loss is {scientific(losses['last_loss']['default', True, 'sum'])})",
    )


def test_the_sentences_on_accuracy_by_depth() -> None:
    record = pd.read_csv(ROOT / "results" / "depth" / "depth.csv")
    keys = ["dataset", "weights", "aggr", "residual", "depth"]
    accuracy = 100 * record.set_index(keys).sort_index()["test_accuracy"]
    ours, theirs = accuracy["IMDB-BINARY", "calibrated", "vpa"], accuracy["IMDB-BINARY", "default"]
    plain, residual = ours[False], ours[True]
    says(
        "depth.md",
        f"against 4 layers ({plain[64]:.1f} and {plain[128]:.1f} against {plain[4]:.1f}, with"
        f" residuals {residual[64]:.1f} and {residual[128]:.1f} against {residual[4]:.1f},",
        f"residuals alone mend that for vpa ({theirs['vpa', True, 64]:.1f})",
        f"stays near the majority's {accuracy['MUTAG', 'default', 'mean', False, 64]:.1f} %",
    )


def test_the_sentences_on_deep_networks_of_mutag(deep: pd.DataFrame) -> None:
    mutag = deep.loc["MUTAG"].loc["default", False]
    ratio = mutag["start_gradient_ratio"]
    assert float(f"{mutag['start_variance']['sum']:.2e}") == 1250
    assert max(ratio["mean"], ratio["max"]) < 1e-16
    says(
        "depth.md",
        "happen to fit sum (variance 1,250 at layer 64)",
        f"the first layer's gradient is {scientific(ratio['vpa'])} of the last one's), and so do"
        " mean and max (below 1e-16)",
    )


def test_the_table_of_predicted_variances_is_what_the_command_says() -> None:
    from typer.testing import CliRunner

    from gnn_vpa.cli._app import app

    said = CliRunner().invoke(app, ["theory", "MUTAG", "--graphs", "100", "--draws", "4"]).stdout
    lines = [line.split("\t") for line in said.splitlines() if line.startswith("MUTAG")]
    shown = {row[1]: row[2:] for row in rows("depth.md", "data set") if row[0] == "MUTAG"}
    assert set(shown) == {"sum", "vpa", "max"}
    for aggr, numbers in shown.items():
        layers = [line[2:] for line in lines if line[1] == aggr and line[2].startswith("convs.")]
        assert layers[-1][1:4] == numbers[:3]
        least, most = (float(layer[4]) for layer in (layers[0], layers[-1]))
        assert f"{least:.2f} to {most:.2f}" == numbers[3]


def test_how_far_predictions_of_the_variance_are_off() -> None:
    table = [[float(text) for text in row[2:5]] for row in rows("depth.md", "data set")]
    off = max(max(made / seen, seen / made) for _, made, seen in table)
    seen = [row[2] for row in table]
    assert 1.3 < off < 1.4
    orders = math.floor(math.log10(max(seen) / min(seen)))
    says("depth.md", f"the prediction is within 40 % over {orders} orders of magnitude")


# Expressivity -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def told() -> pd.DataFrame:
    record = pd.read_csv(ROOT / "results" / "expressivity" / "expressivity.csv")
    return record.assign(missed=record["pairs"] - record["told_apart"])


def test_the_sentences_on_pairs_that_escape_sum_and_vpa(told: pd.DataFrame) -> None:
    atlas = told.query("dataset == 'atlas' and precision == 'float64' and aggr in ['sum', 'vpa']")
    single, every = atlas.query("seed != 'any'"), atlas.query("seed == 'any' and depth == 2")
    four, two = single.query("depth == 4"), single.query("depth == 2")
    both, graphs = every.set_index("aggr")["missed"], int(atlas["graphs"].iloc[0])
    says(
        "expressivity.md",
        f"({four['missed'].min()} to {four['missed'].max()} of {four['pairs'].iloc[0]:,} on the"
        f" atlas at four layers, up to {single['missed'].max()} at fewer)",
        f"each of three networks misses {two['missed'].min()} to {two['missed'].max()} pairs, but"
        f" only {both['sum']} (sum) and {both['vpa']} (vpa) escape all three",
        f"all {graphs:,} graphs of up to seven nodes, {math.comb(graphs, 2):,} pairs",
        f"300 graphs were drawn, {math.comb(300, 2):,} pairs",
    )


def test_the_sentences_on_precision_and_labels(told: pd.DataFrame) -> None:
    four = told.query("depth == 4 and seed != 'any'")
    share = 100 * four.groupby(["precision", "dataset", "aggr"])["share"].mean()
    double, single, half = share["float64"], share["float32"], share["bfloat16"]
    off = (double - single).abs()
    assert off.idxmax() == ("MUTAG", "mean")
    lost = (double - half).unstack()[["sum", "vpa"]]
    real = lost.drop(index=["atlas", "MUTAG"]).to_numpy().max()
    noise = (
        told.query("dataset == 'atlas' and aggr == 'sum'").groupby("precision")["noise"].median()
    )
    says(
        "expressivity.md",
        f"by at most {off.max():.2f} points (mean on MUTAG)",
        f"mean misses {100 - double['MUTAG', 'mean']:.1f} % on MUTAG",
        f"max misses {100 - double['MUTAG', 'max']:.0f} % on MUTAG and"
        f" {100 - double['PTC_FM', 'max']:.1f} % on PTC",
        f"on the atlas: {lost['vpa']['atlas']:.0f} % against {lost['sum']['atlas']:.0f} % of the",
        f"the loss is below {math.ceil(10 * real) / 10} % for both, except on MUTAG"
        f" ({lost['vpa']['MUTAG']:.0f} %, for sum as well)",
        f"with sum: {scientific(noise['float64'])} (float64),"
        f" {scientific(noise['float32'])} (float32), {scientific(noise['bfloat16'])} (bfloat16",
    )


# Compression ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("archive", "name"),
    [("MUTAG", "MUTAG"), ("PTC_FM", "PTC"), ("IMDB-BINARY", "IMDB-B"), ("IMDB-MULTI", "IMDB-M")],
)
def test_what_compression_saves(archive: str, name: str, request: pytest.FixtureRequest) -> None:
    folder = None if archive == "MUTAG" else request.getfixturevalue("tu_dir")
    graphs = load(archive, folder)
    nodes, edges = graphs.num_nodes, len(graphs.col)
    kinds = torch.unique(features(graphs).matrix(), dim=0, return_inverse=True)[1]
    four, one = (
        merge(graphs.node_ptr, graphs.rowptr, graphs.col, kinds, rounds) for rounds in (4, 1)
    )
    whole = (nodes, edges, edges, nodes, edges)
    left = (
        *(len(four.node), len(four.edge_times), int(four.edge_times.sum())),
        *(len(one.node), len(one.edge_times)),
    )
    saved = [f"{all_ / kept:.1f}x" for all_, kept in zip(whole, left, strict=True)]
    (row,) = (row for row in rows("compression.md", "data set") if row[0] == name)
    shown = [cell.replace("*", "").removesuffix(" fewer") for cell in row]
    assert shown[1:] == [f"{nodes:,}", saved[0], f"{edges:,}", *saved[1:3], ", ".join(saved[3:])]


# Audits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["MUTAG", "PTC_FM", "IMDB-MULTI"])
def test_what_the_audit_finds_in_benchmark_data(name: str, request: pytest.FixtureRequest) -> None:
    graphs = load(name, None if name == "MUTAG" else request.getfixturevalue("tu_dir"))
    count = graphs.num_graphs
    kinds, folds = alike(graphs, "auto", rounds=5)[-1], splits(graphs.y)
    twins = twins_of(kinds, graphs.y, folds)
    majority = int(torch.bincount(graphs.y).max())
    percent = (
        right_at_best(kinds, graphs.y) / count,
        twins.share,
        twins.accuracy,
        majority / count,
    )
    told_apart = int(kinds.max()) + 1
    (row,) = (row for row in rows("audit.md", "data set") if row[0] == name)
    assert row[1:3] == [f"{count:,}", f"{told_apart:,}"]
    assert [float(text.removesuffix(" %")) for text in row[3:]] == [
        round(100 * share, 1) for share in percent
    ]


def test_the_best_networks_of_the_paper_beside_a_forest() -> None:
    best = published("table1").groupby("dataset")["mean"].max()
    says(
        "audit.md",
        f"first table on REDDIT-BINARY ({best['RDT-B']:.1f} %), and ahead of it on COLLAB"
        f" ({best['COLLAB']:.1f} %)",
    )
