"""``gnn-vpa export``: a model as a program that runs without gnn-vpa."""

import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated, cast

import typer

from ._console import progress, say
from ._models import FactoryOption, open_single
from ._options import check_file

Format = StrEnum("Format", ["pt2", "onnx"])


def export(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A saved model.")],
    format_: Annotated[
        Format, typer.Option("--format", help="pt2: torch.export; onnx: where it is installed.")
    ] = Format.pt2,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The file.", show_default="the model's name"),
    ] = None,
    factory: FactoryOption = None,
) -> None:
    """Write a model as a program of PyTorch's own operators.

    It takes x, edge_index, batch and ptr of a PyG batch, of any size, and returns what the model
    says of each graph. What the columns of x are stands in the model's config.json.

    Examples:

      gnn-vpa export mutag-vpa --format pt2

      gnn-vpa export mymodel --model mynets:make --out mymodel.pt2
    """
    whole = model.resolve()  # "." has no name of its own
    name = f"{whole.stem}.{format_}"
    out = out or (whole if model.name in ("", "..") else model).with_name(name)
    check_file(out, name)
    from ..trained import export_model
    from ..trained.exporting import Format as Name

    trained = open_single(model, factory)
    with progress(f"Exporting {model}"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch's exporter warns about its own code
        export_model(trained, out, cast("Name", format_.value))
    say(f"Wrote {out}")
