"""``gnn-vpa expressivity``: which graphs a random network tells apart."""

import csv
import io
import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ..aggregations import names
from ..escape import csv_cell
from ..files import save_figure, write_whole
from ._console import print_table, progress, say
from ._options import DataDirOption, DeviceOption, check_out, current, listed

if TYPE_CHECKING:
    from gnn_vpa.graphs import GraphSet
    from gnn_vpa.signal import Separation

_ATLAS: Final = "atlas"
_COLUMNS = [
    "dataset", "graphs", "aggr", "precision", "depth", "seed", "pairs", "told_apart", "share",
    "noise",
]  # fmt: skip
_Features = StrEnum("_Features", ["auto", "ones", "degree", "labels"])


def expressivity(
    datasets: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="DATASET",
            help="atlas (all graphs of up to 7 nodes), names, archives, or module:function. "
            "By default atlas and the paper's data sets that are here.",
        ),
    ] = None,
    aggr: Annotated[str, typer.Option(help=f"Of {names('operators')}.")] = "sum,mean,max,vpa",
    precision: Annotated[
        str, typer.Option(help="Of float64, float32, bfloat16.")
    ] = "float64,float32,bfloat16",
    depth: Annotated[int, typer.Option(min=1, help="Layers: 1 to so many.")] = 4,
    seeds: Annotated[int, typer.Option(min=1, help="Networks of each kind.")] = 3,
    width: Annotated[int, typer.Option(min=1, help="Width of the layers and the output.")] = 64,
    features: Annotated[
        _Features, typer.Option(help="Node features; auto: the data's own, else ones.")
    ] = _Features.auto,
    graphs: Annotated[
        int, typer.Option(min=0, help="Of a larger TU data set, a random sample; 0: all graphs.")
    ] = 100,
    device: DeviceOption = "auto",
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="For the numbers of every depth, the pictures and provenance."
        ),
    ] = None,
    data_dir: DataDirOption = None,
) -> None:
    """Show which pairs of graphs random networks tell apart, of those that 1-WL does.

    Untrained GINs are compared with as many rounds of colour refinement as they
    have layers. A pair counts where outputs differ more than rounding explains.
    With one data set every depth is shown, with several the deepest.

    Examples:

      gnn-vpa expressivity

      gnn-vpa expressivity atlas --aggr sum,vpa --depth 6 --seeds 10

      gnn-vpa expressivity MUTAG IMDB-BINARY --graphs 0 --out runs/expressivity
    """
    names = _names(datasets, data_dir)
    if out is not None:
        check_out(out)
    options: dict[str, Any] = {
        "aggrs": listed(aggr),
        "precisions": listed(precision),
        "depths": range(1, depth + 1),
        "seeds": range(seeds),
        "width": width,
        "features": features.value,
    }
    from gnn_vpa.experiments import resolve_device

    where = resolve_device(device)
    with current(where):
        rows = _measure(names, graphs, data_dir, where, options)
    _print(rows)
    if out is not None:
        _write(rows, out, {**options, "graphs": graphs}, where)


def _names(datasets: list[str] | None, data_dir: Path | None) -> list[str]:
    if datasets:
        return datasets
    from gnn_vpa.graphs import find_archives

    from ..paper import archive_names, paper_name

    here = find_archives(data_dir)
    return [_ATLAS, *(name for name in archive_names() if paper_name(name) and name in here)]


def _measure(
    names: list[str],
    count: int,
    data_dir: Path | None,
    device: str,
    options: dict[str, Any],
) -> list["Separation"]:
    from gnn_vpa.signal import measure_expressivity

    with progress(f"Reading {', '.join(names)}"):
        sets = [_load(name, count, data_dir) for name in names]
    rows = []
    for number, graphs in enumerate(sets, 1):
        place = f" ({number} of {len(sets)})" if len(sets) > 1 else ""
        with progress(f"Comparing {graphs.num_graphs:,} graphs of {graphs.name}{place}"):
            rows += measure_expressivity(graphs, device=device, **options)
    return rows


def _load(name: str, count: int, data_dir: Path | None) -> "GraphSet":
    from gnn_vpa.graphs import load
    from gnn_vpa.signal import atlas
    from gnn_vpa.signal.expressivity import sample

    if name.casefold() == _ATLAS:
        return atlas()
    graphs = load(name, data_dir)
    return sample(graphs, count or graphs.num_graphs)


def _print(rows: Sequence["Separation"]) -> None:
    aggrs = list(dict.fromkeys(row.aggr for row in rows))
    several = len({row.dataset for row in rows}) > 1
    deepest = max(row.depth for row in rows)
    lines: dict[tuple[str, ...], dict[str, list[float]]] = {}
    for row in rows:
        if row.seed is not None and (not several or row.depth == deepest):
            place = (row.dataset, str(row.depth), row.precision, f"{row.pairs:,}")
            lines.setdefault(place, {}).setdefault(row.aggr, []).append(row.share)
    print_table(
        "Percentage of the pairs told apart by 1-WL that random networks tell apart",
        ["data set", "layers", "precision", "1-WL", *aggrs],
        [[*place, *(_percent(fmean(cells[a])) for a in aggrs)] for place, cells in lines.items()],
    )
    together = [row for row in rows if row.seed is None and row.depth == deepest]
    for row in together:
        if row.precision == "float64" and row.aggr in ("sum", "vpa") and row.missed:
            say(
                f"{row.dataset}: {row.missed:,} of {row.pairs:,} pairs escape every network "
                f"with {row.aggr} in float64."
            )


def _percent(share: float) -> str:
    """Write a share so that only all of it reads 100.

    Example:
        >>> _percent(1.0), _percent(0.9999999), _percent(0.25)
        ('100', '99.999', '25.000')
    """
    return "100" if share == 1 else f"{int(share * 100_000) / 1000:.3f}"


def _write(
    rows: Sequence["Separation"], folder: Path, options: dict[str, Any], device: str
) -> None:
    from gnn_vpa.signal import plot_expressivity

    paths = [folder / f"expressivity.{ending}" for ending in ("csv", "png", "svg")]
    _write_table(rows, paths[0])
    figure = plot_expressivity(rows)
    for picture in paths[1:]:
        save_figure(figure, picture)
    paths.append(folder / "provenance.json")
    write_whole(paths[-1], _provenance(options, device))
    for path in paths:
        say(f"Wrote {path}")


def _write_table(rows: Sequence["Separation"], path: Path) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in rows:
        cells = {**row._asdict(), "share": f"{row.share:.8f}", "noise": f"{row.noise:.3g}"}
        cells["dataset"] = csv_cell(row.dataset)
        cells["seed"] = "any" if row.seed is None else row.seed
        writer.writerow([cells[column] for column in _COLUMNS])
    write_whole(path, text.getvalue())


def _provenance(options: dict[str, Any], device: str) -> str:
    from gnn_vpa.experiments.provenance import commit, device_name, versions

    plain = {key: list(v) if isinstance(v, range) else v for key, v in options.items()}
    made = {"options": plain, "device": device_name(device), "commit": commit(), **versions()}
    return json.dumps(made, indent=2) + "\n"
