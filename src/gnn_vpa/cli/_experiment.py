"""What run, reproduce and demo do alike: run cells, show the table, write the report."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ._console import complain, console, print_table, prose, say
from ._options import check_out
from ._ray import cluster_of

if TYPE_CHECKING:
    from gnn_vpa.analysis import Cell, ScoreTable
    from gnn_vpa.results import Results

    from ..experiments import Cell as ExperimentCell


def execute(
    cells: Sequence["ExperimentCell"],
    out: Path,
    *,
    data_dir: Path | None = None,
    device: str = "auto",
    workers: int | None = None,
    notes: Sequence[str] = (),
    configuration: Mapping[str, object],
    keep_models: bool = False,
    ray: str | None = None,
    runtime_env: Sequence[str] | None = None,
    tensorboard: Path | None = None,
    fresh: bool = False,
) -> "Results":
    """Run cells into a folder, print the results beside the paper's, write and name the report."""
    from gnn_vpa.analysis.once import remembering
    from gnn_vpa.experiments import resolve_devices, run_grid
    from gnn_vpa.experiments.places import speed_of
    from gnn_vpa.results import Results

    from ._progress import log_noted, progress_of

    check_out(out)
    try:
        with ExitStack() as stack:
            cluster = stack.enter_context(cluster_of(ray, runtime_env))
            if cluster is None:
                devices = resolve_devices(device)
                speed = speed_of(cells, devices, workers)
            else:
                devices = [cluster.device(device)]
                speed = max(1.0, cluster.slots(devices[0]))
            progress = stack.enter_context(progress_of(out, devices[0], speed))
            stack.enter_context(log_noted(progress))
            for note in notes:
                progress.note(note)
            run_grid(
                cells,
                out,
                data_dir=data_dir,
                device=device,
                workers=workers,
                configuration=configuration,
                progress=progress,
                keep_models=keep_models,
                cluster=cluster,
                tensorboard=tensorboard,
                fresh=fresh,
            )
    except KeyboardInterrupt:
        text = "Interrupted. What is trained so far is kept; type the same command again to go on."
        complain(text)
        raise typer.Exit(130) from None
    results = Results(out)
    with remembering():
        print_results(results)
        report = results.report()
    say(f"Results: {out / 'results.sqlite'}")
    say(f"Report:  {report}")
    if tensorboard is not None:
        say(f"Curves:  tensorboard --logdir {tensorboard}")
    return results


def print_results(results: "Results") -> None:
    """Print the answer, then every cell of a run beside the paper's, and what else came out."""
    from gnn_vpa.analysis import findings, score_table, shown_settings, split_by_setting
    from gnn_vpa.analysis.format import capital
    from gnn_vpa.analysis.remarks import remarks
    from gnn_vpa.analysis.report.sections.chosen import HEADER, chosen_rows

    from ._answer import print_answer

    print_answer(results.answer)
    curves = dict(split_by_setting(results.shown_curves))
    settings = shown_settings(results.folds)
    for setting, folds in settings:
        table = score_table(folds)
        columns = list(table.datasets)
        header = ["data set", "method", "ours", "paper", "difference", "z"]
        rows = _rows(table, columns)
        if not any(row[3] for row in rows):
            header, rows = header[:3], [row[:3] for row in rows]
        say("")
        title = f"{capital(table.measure.label)}: {setting}"
        if len(settings) > 1 and not console().is_terminal:
            say(title)  # a pipe gets tables without titles, and these look alike
        print_table(title, header, rows)
        if chosen := list(chosen_rows(folds)):
            print_table("What was chosen in each fold, by validation alone", HEADER, chosen)
        for sentence in findings(folds):
            prose(sentence)
        if len(header) > 3:
            for remark in remarks(setting, folds, curves.get(setting, results.shown_curves[:0])):
                prose(remark)


def _rows(table: "ScoreTable", datasets: list[str]) -> list[list[str]]:
    rows = [
        _row(name, row.label, cell)
        for name in datasets
        for row in table.rows
        if (cell := row.cells[name]) is not None
    ]
    if table.has_average:
        rows += [
            _row("Avg", row.label, row.average) for row in table.rows if row.average is not None
        ]
    return rows


def _row(dataset: str, method: str, cell: "Cell") -> list[str]:
    from gnn_vpa.analysis.format import mean_std, noted, signed

    ours = [dataset, method, noted(cell.text, cell.note)]
    if (paper := cell.paper) is None:
        return [*ours, "", "", ""]
    compared = signed(paper.difference), signed(paper.z, 2)
    return [*ours, mean_std(paper.mean, paper.std), *compared]
