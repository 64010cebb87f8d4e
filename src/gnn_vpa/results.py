"""What came out of an experiment, from Python."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import UsageError
from .escape import plain
from .files import refuse_folder, write_whole

if TYPE_CHECKING:
    import pandas as pd

    from .analysis import Answer

FORMATS = ("html", "md", "tex", "csv")
"""What a report can be written as."""


class Results:
    """What a run has left in its folder, as far as it has come.

    Args:
        run: The run's folder, or the results file in it.

    Raises:
        GnnVpaError: There are no results, or none that can be read.

    Example:
        >>> Results("no/such/run")
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: there are no results in no/such/run: ...
    """

    def __init__(self, run: str | Path) -> None:
        from .experiments import read_provenance
        from .experiments.store import FILE

        path = Path(run)
        if path.is_file() and path.name != FILE:
            raise UsageError(
                f"{path} is no run: name the folder that gnn-vpa run or reproduce has written to, "
                f"or {FILE} in it"
            )
        self.folder = path.parent if path.is_file() else path
        self.provenance = read_provenance(self.folder)

    def __repr__(self) -> str:
        return f"Results({str(self.folder)!r}, trainings={len(self.folds)})"

    @cached_property
    def folds(self) -> pd.DataFrame:
        """A row for each finished fold, shares as fractions; what was chosen from is left out."""
        from .experiments import read_folds

        return read_folds(self.folder)

    @cached_property
    def candidates(self) -> pd.DataFrame:
        """A row for each fold of the settings that were chosen from."""
        from .experiments import read_folds

        return read_folds(self.folder, candidates=True)

    @cached_property
    def curves(self) -> pd.DataFrame:
        """A row for each fold and epoch."""
        from .experiments import read_curves

        return read_curves(self.folder)

    @cached_property
    def shown_curves(self) -> pd.DataFrame:
        """The curves of those settings that a report shows."""
        from .analysis import shown_settings
        from .experiments import read_curves

        shown = [folds.index for _, folds in shown_settings(self.folds)]
        rows = self.folds.index.isin([row for index in shown for row in index])
        return read_curves(self.folder, of=self.folds[rows])

    @cached_property
    def signals(self) -> pd.DataFrame:
        """A row for each method, data set and layer: the signal before training."""
        from .experiments import read_signals

        return read_signals(self.folder)

    @cached_property
    def ceilings(self) -> dict[tuple[str, str], float]:
        """The best accuracy that any message-passing network can have, by data set and features."""
        from .experiments import read_ceilings

        return read_ceilings(self.folder)

    @cached_property
    def answer(self) -> Answer:
        """Which aggregations may be the best, and which to avoid: `print(results.answer)`."""
        from .analysis import answer

        return answer(self.folds, self.signals, self.ceilings)

    @cached_property
    def table(self) -> pd.DataFrame:
        """A row for each method and data set: our score, and the paper's where it has it.

        Scores that are shares are in percent; the column `metric` says what they are.

        `note` says what must be known beside a mean, see `gnn_vpa.analysis.summarise`.
        """
        from .analysis import compare_with_paper, summarise

        paper = ["paper", "paper_std", "difference", "z", "within"]
        on = ["dataset", "model", "aggregation"]
        return self._each_setting(
            lambda folds: summarise(folds).merge(
                compare_with_paper(folds)[[*on, *paper]], on=on, how="left"
            )
        )

    @cached_property
    def tests(self) -> pd.DataFrame:
        """A row for each aggregation that vpa is compared with: effect and p-values."""
        from .analysis import overall_tests

        return self._each_setting(overall_tests)

    @property
    def report_path(self) -> Path:
        """Where the report is."""
        return self.folder / "report.html"

    def report(self, path: str | Path | None = None) -> Path:
        """Write the report; the ending says as what: html, md, tex or csv.

        Returns:
            The file that was written.
        """
        from . import analysis
        from .analysis.settings import left_out

        path = Path(path) if path is not None else self.report_path
        refuse_folder(path, "report.html")
        match path.suffix:
            case ".html" | ".md":
                write = analysis.write_report if path.suffix == ".html" else analysis.write_markdown
                curves = self.shown_curves
                return write(self.folds, curves, self.provenance, path, self.signals, self.ceilings)
            case ".tex":
                tables = [f"% {sentence}\n" for sentence in left_out(self.folds)]
                tables += [
                    f"% {plain(str(setting))}\n" + analysis.to_latex(analysis.score_table(folds))
                    for setting, folds in analysis.shown_settings(self.folds)
                ]
                text = "\n".join(tables)
            case ".csv":
                text = analysis.to_csv(self.folds)
            case other:
                raise UsageError(
                    f"a report cannot be written as {other or path.name!r}: "
                    f"use a name that ends in .{', .'.join(FORMATS)}"
                )
        write_whole(path, text)
        return path

    def record(self, root: str | Path = ".") -> Path:
        """Write the record of a reproduction into a repository, see `analysis.write_record`.

        A run on the splits of the fair comparison has a record of its own, `analysis.write_fair`.

        Returns:
            The page that was written, `docs/reproduction.md` or `docs/fair.md`.
        """
        from .analysis import fair_folds, write_fair, write_record

        fair = fair_folds(self.folds)
        if not fair.empty:
            return write_fair(fair, self.provenance, root)
        return write_record(self.folds, self.curves, self.provenance, root)

    def _each_setting(self, function: Callable[[pd.DataFrame], pd.DataFrame]) -> pd.DataFrame:
        """Apply what is for one setting to each, and say in front which it is."""
        import pandas as pd

        from .analysis import split_by_setting

        parts = []
        for setting, folds in split_by_setting(self.folds):
            part = function(folds)
            for name, value in reversed(asdict(setting).items()):
                part.insert(0, name, value)
            parts.append(part)
        return pd.concat(parts, ignore_index=True) if parts else function(self.folds)
