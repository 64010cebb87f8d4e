"""``gnn-vpa variance``: the method at work."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..aggregations import operators
from ..errors import UsageError
from ..files import save_figure
from ._console import print_table, progress, say
from ._options import check_file

if TYPE_CHECKING:
    from gnn_vpa.signal import VariancePoint

_PICTURES = (".png", ".svg", ".pdf")


def variance(
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Draw it: a file (.png, .svg, .pdf), or a folder for variance.png and .svg.",
        ),
    ] = None,
    max_neighbours: Annotated[
        int, typer.Option(min=1, help="The largest number of neighbours.")
    ] = 10_000,
    trials: Annotated[
        int, typer.Option(min=2, help="Independent results behind each number.")
    ] = 4096,
    seed: Annotated[int, typer.Option(min=0, help="The seed of the random messages.")] = 0,
) -> None:
    """Show what each aggregation does to the variance of N independent messages.

    Measured with the operators that the layers run, beside what theory predicts.

    Examples:

      gnn-vpa variance

      gnn-vpa variance --out runs/variance --max-neighbours 1000

      gnn-vpa variance --out variance.svg --trials 20000 --seed 7
    """
    pictures = _pictures(out)
    for picture in pictures:
        check_file(picture, "variance.png")
    from gnn_vpa.signal import variance_by_neighbours

    with progress(f"Measuring up to {max_neighbours:,} neighbours, {trials:,} trials each"):
        points = variance_by_neighbours(operators(), _counts(max_neighbours), trials, seed)
    _print(points)
    for picture in pictures:
        _draw(points, picture)
        say(f"Wrote {picture}")


def _counts(largest: int) -> list[int]:
    """List 1, 3, 10, 30, ... and the largest number itself."""
    powers = range(int(math.log10(largest)) + 1)
    counts = [step * 10**power for power in powers for step in (1, 3)]
    return [n for n in counts if n < largest] + [largest]


def _pictures(out: Path | None) -> list[Path]:
    if out is None:
        return []
    if out.suffix in _PICTURES:
        return [out]
    if out.suffix and not out.is_dir():
        raise UsageError(
            f"--out {out} is neither a folder nor a picture that can be drawn: "
            f"name a folder, or a file that ends in {', '.join(_PICTURES)}"
        )
    return [out / "variance.png", out / "variance.svg"]


def _draw(points: list["VariancePoint"], picture: Path) -> None:
    from gnn_vpa.signal import plot_variance

    save_figure(plot_variance(points), picture)


def _print(points: list["VariancePoint"]) -> None:
    columns = {aggr: [point for point in points if point.aggr == aggr] for aggr in operators()}
    print_table(
        "Variance after aggregating N messages of variance 1: measured (predicted)",
        ["N", *columns],
        [
            [f"{row[0].n:,}", *(_cell(point) for point in row)]
            for row in zip(*columns.values(), strict=True)
        ],
    )
    at_last = ", ".join(
        f"{_number(line[-1].measured.variance)} with {aggr}" for aggr, line in columns.items()
    )
    say(f"Over {points[-1].n:,} neighbours, a variance of 1 becomes {at_last}.")


def _cell(point: "VariancePoint") -> str:
    return f"{_number(point.measured.variance)} ({_number(point.predicted)})"


def _number(value: float) -> str:
    """Write three significant digits without an exponent: 10,014 and 0.0000998."""
    magnitude = math.floor(math.log10(float(f"{value:.3g}")))
    return f"{value:,.{max(0, 2 - magnitude)}f}"
