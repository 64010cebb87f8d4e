"""The record of the paper's experiments: what came out, and a page to put it beside the paper."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..escape import markdown
from ..files import write_whole
from ..paper import published
from .answer import answer, summary
from .claims import Claim, Verdict, judge_claims
from .comparison import AVERAGE, compare_with_paper
from .differences import (
    CLOSE,
    LEAST,
    TABLES,
    Cell,
    between_seeds,
    difference_rows,
    far_cells,
    read_evidence,
)
from .exports import csv_of
from .figures import curves_by_dataset
from .format import count
from .markdown import entries, sections
from .once import remembering
from .origin import origin
from .report import Part, Pictures
from .report.sections.cells import close_cells
from .settings import RELEASED, Setting, split_by_setting
from .style import BASELINES, method_label

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (
    *("table", "dataset", "model", "aggregation", "variant", "fold", "seed"),
    *("best_epoch", "val_score", "test_score", "status"),
)


def write_record(
    folds: pd.DataFrame,
    curves: pd.DataFrame,
    provenance: Mapping[str, Any],
    root: str | os.PathLike[str] = ".",
) -> Path:
    """Write the record of a reproduction into a repository.

    * `results/paper/folds.csv`: a row for each training of the paper's two tables;
    * `results/paper/provenance.json`: what it was made with;
    * `docs/reproduction.md`: every cell of the paper with ours beside it, its claims one by one,
      and the learning curves, in `docs/img`.

    What is written by hand in `results/paper/reasons.md`, of where we differ and why, becomes a
    section of the page; `results/paper/evidence.csv` has what is known of single cells: what the
    authors' released code gives, and what other learning rates do.

    Args:
        folds: a row for each finished training.
        curves: their learning curves; may be empty.
        provenance: as `gnn_vpa.experiments.read_provenance` returns it.
        root: the repository.

    Returns:
        The page.

    Example:
        >>> import pandas as pd, tempfile
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed",
        ...            "test_score", "status", "best_epoch", "val_score", "seconds"]
        >>> rows = [["MUTAG", "GIN", "vpa", "released", "auto", fold, 0, 0.8 + fold / 10, "done",
        ...          5, 0.8, 1.0] for fold in range(2)]
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     made = write_record(pd.DataFrame(rows, columns=columns), pd.DataFrame(), {}, folder)
        ...     "1 of 1 cell has |z| ≤ 2 (100 %)" in made.read_text()
        True
    """
    root = Path(root)
    kept, page = root / "results" / "paper", root / "docs" / "reproduction.md"
    figures = page.parent / "img"
    made_with = origin(provenance, folds)
    write_whole(kept / "folds.csv", csv_of(_folds(folds)))
    write_whole(
        kept / "provenance.json", json.dumps(made_with, indent=2, ensure_ascii=False) + "\n"
    )
    reasons = kept / "reasons.md"
    written = reasons.read_text(encoding="utf-8") if reasons.exists() else ""
    evidence = read_evidence(kept / "evidence.csv")
    with remembering():
        text = "\n".join(_page(folds, curves, made_with, written, evidence, Pictures(page))) + "\n"
    write_whole(page, text)
    for old in figures.glob(f"{page.stem}-*.svg"):
        if old.name not in text:
            old.unlink()
    return page


def _folds(folds: pd.DataFrame) -> pd.DataFrame:
    """The trainings that belong to a table of the paper, the main one first, in a fixed order."""
    import pandas as pd

    parts = [folds.iloc[:0].assign(table="")]
    for setting, part in split_by_setting(folds):
        if setting.published_table is not None:
            own = part.sort_values(["dataset", "model", "aggregation", "seed", "fold"])
            models = own["variant"].where(own["model"].isin(BASELINES), setting.models)
            parts.append(own.assign(table=TABLES[setting.published_table], variant=models))
    found = pd.concat([part for part in parts if not part.empty] or parts)
    ordered = found.sort_values("table", ascending=False, kind="stable")
    return ordered[[*_COLUMNS]].round({"val_score": 6, "test_score": 6})


def _page(
    folds: pd.DataFrame,
    curves: pd.DataFrame,
    made_with: Mapping[str, object],
    reasons: str,
    evidence: Mapping[Cell, tuple[str, str]],
    pictures: Pictures,
) -> Iterator[str]:
    parts = {s: part for s, part in split_by_setting(folds) if s.published_table is not None}
    compared = {setting: compare_with_paper(part) for setting, part in parts.items()}
    claims = judge_claims(folds, curves)
    yield from ("# The paper's experiments, run again", "")
    yield from (f"- {line}" for line in _in_short(parts, claims, evidence))
    yield ""
    yield "Made by `gnn-vpa report --record`; all trainings are in"
    yield "[folds.csv](../results/paper/folds.csv), what they were made with is in"
    yield "[provenance.json](../results/paper/provenance.json). z is the difference of two means in"
    yield "standard errors: by chance alone one in twenty is beyond ±2."
    yield ""
    for setting, of_setting in compared.items():
        yield f"- {_title(setting)}: {close_cells(of_setting)}."
        if setting.models == RELEASED and (gaps := _gaps(setting, parts[setting])):
            yield f"  **Not run yet:** {gaps}. Averages, p and claims are of what was run."
    yield ""
    yield from _differences(parts, evidence, reasons)
    yield from ("## The paper's claims, one by one", "")
    yield from _claims(claims)
    for setting, part in parts.items():
        yield from (f"## {_title(setting)}", "")
        # The curves of all data sets are in one figure below, as in the paper.
        shown = Part(setting, part, curves[:0], None, alone=False)
        yield sections(shown, pictures).removesuffix("\n")
    yield from _figure(curves, pictures)
    yield from ("## What it was made with", "", *entries(made_with))


def _gaps(setting: Setting, part: pd.DataFrame) -> str:
    """What the paper's table has and this run has not: data sets, and models of others."""
    there = published(setting.published_table or "")
    wanted = there[["dataset", "model"]].drop_duplicates()
    got = {(row.dataset, row.model.casefold()) for row in part.itertuples()}
    gaps = []
    for dataset, rows in wanted.groupby("dataset", sort=False):
        missing = [m for m in rows["model"] if (dataset, m.casefold()) not in got]
        if len(missing) == len(rows):
            gaps.append(str(dataset))
        elif missing:
            gaps.append(f"{', '.join(missing)} on {dataset}")
    return "; ".join(gaps)


def _claims(claims: Sequence[Claim]) -> Iterator[str]:
    yield "A claim holds where at least seven of eight cases are as it says, and in part where half"
    yield "of them are. Where the paper's tables allow it, they are counted by the same rule."
    yield from ("", "| the paper says | where | verdict | what we saw |", "|---|---|---|---|")
    for claim in claims:
        text, where, seen = map(markdown, (claim.text, claim.where, claim.seen))
        yield f"| {text} | {where} | **{claim.verdict}** | {seen} |"
    yield ""


def _figure(curves: pd.DataFrame, pictures: Pictures) -> Iterator[str]:
    of_setting = {} if curves.empty else dict(split_by_setting(curves))
    main = of_setting.get(Setting(RELEASED, "auto"))
    if main is None or (main := main[main["model"] == "GIN"]).empty:
        return
    yield from ("## Learning curves", "")
    yield "The paper's figure: training loss of GIN, mean over folds and a band of one standard"
    yield "deviation."
    described = "Training loss of GIN with each aggregation"
    yield from ("", pictures.put(curves_by_dataset(main), described, "curves"), "")


def _in_short(
    parts: Mapping[Setting, pd.DataFrame],
    claims: Sequence[Claim],
    evidence: Mapping[Cell, tuple[str, str]],
) -> Iterator[str]:
    """Five lines for a reader in a hurry."""
    import pandas as pd

    released = {s: part for s, part in parts.items() if s.models == RELEASED}
    if not released:
        return
    every = pd.concat(released.values())
    trained = every[~every["model"].isin(BASELINES)]
    seeds = sorted(trained["seed"].unique())
    far = pd.concat([far_cells(part) for part in released.values()])
    cells = sum(
        int((compare_with_paper(part)["dataset"] != AVERAGE).sum()) for part in released.values()
    )
    times = {1: "once", 2: "twice"}.get(len(seeds), f"{len(seeds)} times")
    apart = (
        f"; two seeds' means of a cell differ by {between_seeds(trained):.1f} points (standard "
        "deviation)"
        if len(seeds) > 1
        else ""
    )
    yield (
        f"**What was done.** {cells} numbers of the paper's two tables were trained again {times}, "
        f"{len(trained)} trainings in all{apart}."
    )
    yield (
        f"**What comes out.** {cells - len(far)} of {cells} as printed, as far as chance can tell "
        f"(|z| ≤ {CLOSE:g}, beside a standard error of at least {LEAST:g} points)."
    )
    by_method = Counter(method_label(row.model, row.aggregation) for row in far.itertuples())
    named = ", ".join(f"{name} {number}" for name, number in by_method.most_common())
    run_again = sum(bool(code) for code, _ in evidence.values())
    code = (
        f" The authors' released code, run again on {run_again} of them, gives our numbers there "
        "and not the printed ones: those were made with something that was not released. For some "
        "others another learning rate gives the print; see below, cell by cell."
        if run_again
        else ""
    )
    yield f"**What does not.** {len(far)} cells{f' ({named})' if named else ''}.{code}"
    verdicts = Counter(claim.verdict for claim in claims)
    said = ", ".join(
        f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict if verdicts[verdict]
    )
    yield f"**The paper's claims.** Of {len(claims)}: {said.replace('holds', 'hold')}."
    main = released.get(Setting(RELEASED, "auto"))
    if main is not None:
        yield f"**Which aggregation, then.** {summary(list(answer(main).main))}"


def _differences(
    parts: Mapping[Setting, pd.DataFrame],
    evidence: Mapping[Cell, tuple[str, str]],
    reasons: str,
) -> Iterator[str]:
    yield from ("## Published numbers that do not come out", "")
    yield f"All cells with |z| > {CLOSE:g} beside a standard error of at least {LEAST:g} points,"
    yield "the farthest first. The difference is that of the mean over seeds."
    yield ""
    for setting, part in parts.items():
        if setting.models != RELEASED:
            continue  # the paper prints K = 1 by the name of K = 5: its numbers are no others
        far = far_cells(part)
        cells = compare_with_paper(part)
        there = int((cells["dataset"] != AVERAGE).sum())
        expected = f"by chance one would expect about {0.046 * there:.0f}"
        yield f"{_title(setting)}: {count(len(far), 'cell')} of {there}; {expected}."
        of_table = {
            cell: known
            for cell, known in evidence.items()
            if cell[0] == TABLES[setting.published_table or ""]
        }
        yield from ("", *([*difference_rows(setting, part, of_table), ""] if len(far) else ()))
    if reasons:
        yield from ("### What is known of them", "", reasons.strip(), "")


def _title(setting: Setting) -> str:
    table = {"table1": "Table 1", "table_a1": "The appendix's table"}
    unusual = f" with {markdown(setting.unusual)}" if setting.unusual else ""
    return table[setting.published_table or ""] + unusual
