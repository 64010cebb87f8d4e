"""Numbers in pages, made from what was recorded.

A page has ``<!-- records: NAME -->`` and ``<!-- end of records -->``; what stands between them is
made by the function of that name here. ``python docs/_ext/records.py`` writes all of them anew, and
a test holds that they are what the records say.
"""

import re
import sys
from pathlib import Path

import pandas as pd
from scipy.stats import false_discovery_control, ttest_1samp

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"(<!-- records: (\w+) -->\n).*?(<!-- end of records -->)", flags=re.DOTALL)
SOCIAL = {"COLLAB", "IMDB-B", "IMDB-M", "RDT-B", "RDT-M5K"}  # as the paper calls them
SHARED = ("sum", "mean", "max", "vpa")


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _paper() -> pd.DataFrame:
    """Return the folds of the paper's tables, with a column that says what kind of data it is."""
    folds = pd.read_csv(ROOT / "results" / "paper" / "folds.csv")
    folds = folds[folds["variant"] == "released"]
    assert set(folds["dataset"]) > SOCIAL, "the records name data sets as the paper does"
    kind = folds["dataset"].isin(SOCIAL).map({True: "social", False: "labels"})
    return folds.assign(kind=kind.where(folds["table"] == "main", "degrees"))


def _by_data_set() -> pd.Series:
    """Return percent of each kind of data, model and aggregation, averaged over data sets."""
    scores = (
        100 * _paper().groupby(["kind", "model", "aggregation", "dataset"])["test_score"].mean()
    )
    return scores.groupby(["kind", "model", "aggregation"]).mean()


def kinds() -> str:
    """GIN and GCN on three kinds of data: test accuracy, averaged over the data sets of a kind."""
    names = {
        "social": "social networks, no features (5 sets)",
        "degrees": "the same, with degrees as features",
        "labels": "molecules and proteins, with labels (4 sets)",
    }
    scores, rows = _by_data_set(), []
    for kind, name in names.items():
        for model in ("GIN", "GCN"):
            values = [scores[kind, model, aggr] for aggr in SHARED]
            cells = [f"**{v:.1f}**" if v == max(values) else f"{v:.1f}" for v in values]
            rows.append([name, model, *cells])
    return _markdown(["data", "model", *SHARED], rows)


def precision() -> str:
    """Rows in bfloat16: how far cells' means are from those in float32, beside two seeds' means."""
    cell = ["table", "variant", "dataset", "model", "aggregation"]
    usual, half = (
        pd.read_csv(ROOT / "results" / name / "folds.csv") for name in ("paper", "precision")
    )
    assert (half["status"] == "done").all()
    first, second, ours = (
        100 * folds.set_index([*cell, "fold"])["test_score"]
        for folds in (usual[usual["seed"] == 0], usual[usual["seed"] == 1], half)
    )
    assert set(ours.index) == set(first.index) == set(second.index)
    assert (half.groupby(cell)["fold"].nunique() == 10).all()
    by_fold = (ours - first).groupby(cell)
    tests = by_fold.agg(lambda fold: ttest_1samp(fold, 0).pvalue if fold.any() else 1.0)
    differing, after = (tests < 0.05).sum(), (false_discovery_control(tests) < 0.05).sum()

    def spread(differences: pd.Series) -> str:
        mean, deviation = differences.mean(), differences.std()
        return f"{mean:+.2f} ± {deviation:.2f} points".replace("-", "\N{MINUS SIGN}")

    return (
        "On a GPU `reproduce` keeps nodes' rows in bfloat16, unless it is asked for "
        f"`--precision float32`. The means of the\n{len(tests)} cells of the paper's tables differ "
        f"from those in float32 by {spread(by_fold.mean())} (mean and standard\n"
        "deviation), and the means of two seeds in "
        f"float32 by {spread((second - first).groupby(cell).mean())}. By tests that pair the\n"
        f"folds, {differing} cells differ at the 5 % level, where chance alone gives "
        f"{0.05 * len(tests):.0f}, and {after} of them after a correction for\nso many tests "
        "(Benjamini and Hochberg).\n"
    )


def fair() -> str:
    """The fair comparison: means and deviations of the outer folds."""
    folds = pd.read_csv(ROOT / "results" / "fair" / "folds.csv")
    scores = 100 * folds.groupby(["dataset", "features", "aggregation"])["test_score"].agg(
        ["mean", "std"]
    )
    words = {"auto": "its own features", "ones": "no features", "degree": "node degrees"}
    rows = []
    for dataset, features in scores.index.droplevel(2).unique():
        of_set = scores.loc[dataset, features]
        best = of_set["mean"].max()
        social = dataset in SOCIAL and features == "auto"
        cells = []
        for aggr in SHARED:
            mean, std = of_set.loc[aggr]
            text = f"{mean:.1f} ± {std:.1f}"
            cells.append(f"**{text}**" if mean == best else text)
        rows.append([f"{dataset}, {words['ones' if social else features]}", *cells])
    return _markdown(["data set", *SHARED], rows)


def fair_answer() -> str:
    """The fair comparison in a sentence: where vpa leads, and by more or less than the noise."""
    text = (ROOT / "docs" / "fair.md").read_text("utf-8").replace("\N{MINUS SIGN}", "-")
    sections = re.findall(r"^## (.+?), [^\n]*\n(.*?)(?=^## |\Z)", text, flags=re.M | re.DOTALL)
    leads, beaten, clear = 0, [], 0
    for name, section in sections:
        rows = re.findall(
            r"^\| (\w+) \| ([-+][\d.]+) \| ([-\d.]+) to ([-\d.]+) \|", section, flags=re.M
        )
        if not rows:
            continue
        leads += all(float(difference) >= 0 for _, difference, _, _ in rows)
        clear += any(other == "sum" and float(least) > 0 for other, _, least, _ in rows)
        behind = [other for other, difference, _, _ in rows if float(difference) < 0]
        beaten += [f"{' and '.join(behind)} on {name}"] if behind else []
    compared = sum("| against |" in section for _, section in sections)
    surely = f"by more than the noise on {clear} of them" if clear else "by less than the noise"
    ahead = f"; ahead of it: {', '.join(beaten)}" if beaten else ""
    return f"vpa leads on {leads} of {compared}, {surely} against sum{ahead}.\n"


def _cut(share: float, digits: int) -> str:
    """Return percent with its digits cut: 99.9996 is not all."""
    return f"{int(share * 10**digits) / 10**digits:.{digits}f}" if 0 < share < 100 else f"{share:g}"


def told_apart() -> str:
    """The share of pairs that 1-WL tells apart and an untrained network of four layers does too."""
    rows = pd.read_csv(ROOT / "results" / "expressivity" / "expressivity.csv")
    rows = rows[(rows["depth"] == 4) & (rows["precision"] == "float64") & (rows["seed"] != "any")]
    share = 100 * rows.groupby(["dataset", "aggr"])["share"].mean()
    found = []
    for dataset in ("IMDB-BINARY", "COLLAB", "MUTAG", "NCI1"):
        found.append([dataset, *(_cut(share[dataset, aggr], 1) for aggr in SHARED)])
    return _markdown(["data set", *(f"{aggr}, %" for aggr in SHARED)], found)


def expressivity() -> str:
    """What networks of four layers tell apart, in float64 and in bfloat16."""
    rows = pd.read_csv(ROOT / "results" / "expressivity" / "expressivity.csv")
    rows = rows[(rows["depth"] == 4) & (rows["seed"] != "any")]
    share = 100 * rows.groupby(["dataset", "aggr", "precision"])["share"].mean()
    names = {archive: name for name, archive in _archives().items()}
    columns = [(aggr, precision) for precision in ("float64", "bfloat16") for aggr in SHARED]
    head = [aggr if precision == "float64" else f"{aggr}, bf16" for aggr, precision in columns]
    found = [
        [names.get(dataset, dataset), *(_cut(share[dataset, *column], 3) for column in columns)]
        for dataset in ("atlas", *names)
    ]
    return _markdown(["graphs", *head], found)


def _archives() -> dict[str, str]:
    """Return the archive of each data set by the name that the paper gives it, in its order."""
    table = pd.read_csv(ROOT / "src" / "gnn_vpa" / "paper" / "datasets.csv").dropna(subset="paper")
    return dict(zip(table["paper"], table["archive"], strict=True))


def _loss(value: float) -> str:
    """Return a loss with as many digits as fit into a table."""
    if value < 100:
        return f"{value:.2f}" if value < 10 else f"{value:.0f}"
    digit, exponent = f"{value:.0e}".split("e")
    return f"{digit}e{int(exponent)}"


def _depth(dataset: str) -> str:
    """Return test accuracy and the last training loss of deep networks without normalisation."""
    rows = pd.read_csv(ROOT / "results" / "depth" / "depth.csv")
    rows = rows[rows["dataset"] == dataset]
    depths = sorted(set(rows["depth"]))
    cells = rows.set_index(["weights", "residual", "aggr", "depth"])
    assert cells.index.is_unique, "one fold, one seed"
    found = []
    for weights, name in {"default": "PyTorch's", "calibrated": "calibrated"}.items():
        for residual in (False, True):
            for aggr in SHARED:
                line = [name, "yes" if residual else "no", aggr]
                for depth in depths:
                    cell = cells.loc[weights, residual, aggr, depth]
                    if pd.notna(cell["diverged_epoch"]):
                        line.append("**not finite**")
                        continue
                    line.append(f"{100 * cell['test_accuracy']:.1f} ({_loss(cell['last_loss'])})")
                found.append(line)
    return _markdown(
        ["weights", "residuals", "aggregation", *(f"{depth} layers" for depth in depths)], found
    )


def depth_imdb_binary() -> str:
    """Deep networks on IMDB-BINARY."""
    return _depth("IMDB-BINARY")


def depth_mutag() -> str:
    """Deep networks on MUTAG."""
    return _depth("MUTAG")


def _results_table(heading: str) -> list[dict[str, str]]:
    """Return the first table below a heading of benchmarks/RESULTS.md, a row as a dictionary."""
    text = (ROOT / "benchmarks" / "RESULTS.md").read_text("utf-8")
    section = text.split(f"### {heading}\n", 1)[1]
    lines = [line for line in section.splitlines() if line.startswith(("|", "#"))]
    table = []
    for line in lines:
        if line.startswith("#"):
            break
        table.append([cell.strip() for cell in line.strip("|").split("|")])
    return [dict(zip(table[0], row, strict=True)) for row in table[2:]]


def _range(least: float, most: float) -> str:
    return f"{least:.3g}x to {most:.3g}x"


def _spread(values: list[float]) -> str:
    return _range(min(values), max(values))


def _loop(heading: str, contender: str) -> str:
    """Return how fast converted models are in an ordinary loop over small batches."""
    return _spread([float(row[f"{contender} is"].strip(" x")) for row in _results_table(heading)])


def _loops(what: str, contender: str) -> list[list[str]]:
    """Return how fast that is on a CPU and on a GPU."""
    peer = "PyG's layers" if contender == "converted" else "PyG's layers and loader"
    return [
        [what, peer, "CPU", _loop("An ordinary loop", contender)],
        ["the same", peer, "H200", _loop("An ordinary loop on a GPU", contender)],
    ]


def speed() -> str:
    """What is fast and what is not, against PyG."""
    kept = [
        {name: float(text) for name, text in row.items() if name}
        for row in _results_table("Full-batch training of a kept graph")
    ]
    lanes = [
        float(text.strip(" x"))
        for row in _results_table("Cells against the plain PyG loop")
        for text in row["faster"].split(",")
    ]
    ours = "converted, `edge_index`"
    rows = [
        [
            "full-batch training on a graph that is kept, converted layers",
            "PyG on `edge_index`",
            "CPU",
            _spread([row["PyG, `edge_index`"] / row[ours] for row in kept]),
        ],
        [
            "the same",
            "PyG on a cached CSR matrix",
            "CPU",
            _spread([row["PyG, CSR"] / row[ours] for row in kept]),
        ],
        *_loops("the ordinary loop: small batches, each used once", "converted"),
        *_loops("the same with `GroupEdges` and `gnn_vpa.DataLoader`", "loaded"),
        *_loops("the same on graphs that `MergeAlike` has merged", "merged"),
        [
            "ten folds of GIN as lanes (`gnn-vpa run`)",
            "a loop of PyG, fold by fold",
            "CPU",
            _spread(lanes),
        ],
    ]
    return _markdown(["what", "against", "on", "faster"], rows)


def written(text: str) -> str:
    """Return a page with every block as the records have it."""
    return BLOCK.sub(lambda found: found[1] + globals()[found[2]]() + found[3], text)


def pages() -> list[Path]:
    """Return the pages that have numbers from records."""
    candidates = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    return [path for path in candidates if BLOCK.search(path.read_text("utf-8"))]


if __name__ == "__main__":
    for page in pages():
        page.write_text(written(page.read_text("utf-8")), encoding="utf-8")
        print(page.relative_to(ROOT), file=sys.stderr)
