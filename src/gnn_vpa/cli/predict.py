"""``gnn-vpa predict``: what a model says of new graphs."""

import csv
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from ..errors import GnnVpaError, UsageError
from ..escape import csv_cell
from ..files import replacing
from ._console import counted, say
from ._models import FactoryOption, GraphsArgument, MethodOption, ModelArgument, open_model
from ._options import DataDirOption, DeviceOption, check_file

if TYPE_CHECKING:
    from ..graphs import GraphSet
    from ..trained import Target


def predict(
    model: ModelArgument,
    graphs: GraphsArgument,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="A CSV file.", show_default="standard output"),
    ] = None,
    factory: FactoryOption = None,
    method: MethodOption = None,
    device: DeviceOption = "auto",
    data_dir: DataDirOption = None,
) -> None:
    """Say what a model predicts for each of new graphs, as CSV: a line for each, in their order.

    For classes there is the predicted class and the probability of each; for labels both for each
    label; for numbers the numbers. Names that a spreadsheet would take for a formula have an
    apostrophe in front. A run's folder (made with --keep-models) speaks with the mean
    of its folds' models. A module:function may return an iterator: graphs are read as they are
    needed.

    Examples:

      gnn-vpa predict mutag-vpa NEW.zip --out predictions.csv

      gnn-vpa predict mymodel mydata:load --model mynets:make

      gnn-vpa predict runs/mutag NEW.zip --method GIN+vpa
    """
    if out is not None:
        check_file(out, "predictions.csv")
        _check_apart(out, model, graphs)
    from ..experiments import resolve_device

    predictor = open_model(model, factory, method).to(resolve_device(device))
    given = read_graphs(graphs, data_dir)
    # In a terminal lines and a bar would be written over each other.
    is_shown = out is not None or not sys.stdout.isatty()
    counting = counted("Predicting", "graphs") if is_shown else nullcontext(_uncounted)
    with _opened(out) as file, counting as progress:
        write_predictions(file, predictor.target, predictor.iter_outputs(given), progress)
    if out is not None:
        say(f"Wrote {out}")


def read_graphs(text: str, data_dir: Path | None) -> "GraphSet | Iterable[Any]":
    """Return graphs to predict for: an archive's, or what a function returns, one by one.

    Example:
        >>> read_graphs("MUTAG", None)
        GraphSet('MUTAG', graphs=188, classes=2, nodes=3371, edges=7442)
    """
    from ..graphs import load
    from ..graphs.reference import call_reference

    path = Path(text)
    if ":" in text and path.suffix != ".zip" and path.name == text:
        return _told(call_reference(text, "PyG graphs, or an iterator over them"), text)
    return load(text, data_dir, target="")


def _told(graphs: Iterable[Any], text: str) -> Iterator[Any]:
    """Yield a function's graphs, and say at which one it has failed."""
    count = 0
    try:
        for graph in graphs:
            yield graph
            count += 1
    except Exception as error:
        raise GnnVpaError(
            f"{text} has failed after {count:,} graphs with {type(error).__name__}: {error}"
        ) from error


def _check_apart(out: Path, model: Path, graphs: str) -> None:
    """Refuse to write over the graphs or the model."""
    from ..trained.saving import holds_model

    whole = out.resolve()
    if whole in (model.resolve(), Path(graphs).resolve()) or holds_model(whole.parent):
        raise UsageError(f"--out {out}: it would write over the model or the graphs: name another")


def _uncounted(done: int) -> None:
    """Show nothing of what is done."""


def write_predictions(
    file: TextIO,
    target: "Target",
    outputs: Iterator[Any],
    progress: Callable[[int], None],
) -> None:
    """Write the lines of one batch after the other.

    Example:
        >>> import numpy as np
        >>> from gnn_vpa.trained import Target
        >>> outputs = iter([np.array([[0.0, 0.0]])])
        >>> write_predictions(sys.stdout, Target("classes", 2, ("a", "b")), outputs, print)
        graph,prediction,p_a,p_b
        0,a,0.5,0.5
        1
    """
    lines = csv.writer(file, lineterminator="\n")
    first = list(islice(outputs, 1))  # graphs that are refused leave no header behind
    lines.writerow(["graph", *(csv_cell(name) for name in _header(target))])
    done = 0
    for part in chain(first, outputs):
        said = target.predictions(part)
        shares = None if target.kind == "regression" else target.probabilities(part)
        for row in range(len(part)):
            own = said[row].tolist()
            values = [*(own if isinstance(own, list) else [own])]
            values += [] if shares is None else [f"{share:.6g}" for share in shares[row]]
            lines.writerow(
                [done + row, *(csv_cell(v) if isinstance(v, str) else v for v in values)]
            )
        done += len(part)
        progress(done)


def _header(target: "Target") -> list[str]:
    shares = [] if target.kind == "regression" else [f"p_{name}" for name in target.names]
    return ["prediction", *shares] if target.kind == "classes" else [*target.names, *shares]


@contextmanager
def _opened(out: Path | None) -> Iterator[TextIO]:
    with nullcontext(None) if out is None else replacing(out) as part:
        if part is None:
            yield sys.stdout
        else:
            with part.open("w", encoding="utf-8", newline="") as file:
                yield file
