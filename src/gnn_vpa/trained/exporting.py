"""Trained models as programs that run without gnn-vpa."""

import io
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

import torch
import torch.fx.experimental._config as _sizes
from torch import Tensor, nn

from ..errors import GnnVpaError, UsageError
from ..files import refuse_folder, replacing, write_whole
from ..nn import Model
from ..training.own import Adapter, Inputs
from .fingerprint import sample
from .model import TrainedModel
from .plain_form import PlainForm

Format = Literal["pt2", "onnx"]
FORMATS: tuple[Format, ...] = ("pt2", "onnx")
_MORE = ("edge_attr", "edge_weight", "pos")
_PLAIN = ("aten.", "prim.", "prims.", "_operator.")
_TOLERANCE = 1e-5  # relative; of sums in another order


class Program(nn.Module):
    """What is exported: ``program(x, edge_index, batch, ptr)``, and outputs in the data's units.

    Attributes:
        centre: What is added to outputs, see `Units`; None: nothing.
        spread: What they are multiplied with before.

    Models that see edge features, edge weights or positions take them behind, in this order.
    """

    centre: Tensor | None
    spread: Tensor | None

    def __init__(self, model: TrainedModel) -> None:
        super().__init__()
        own = deepcopy(model.module).requires_grad_(False)
        self.network = PlainForm(own) if isinstance(own, Model) else own
        self._adapter = None if isinstance(own, Model) else Adapter.of(own, model.task.model)
        self._more = _seen(model)
        self._outputs, units = model.target.outputs, model.units
        self.register_buffer("centre", None if units is None else units.centre.clone())
        self.register_buffer("spread", None if units is None else units.spread.clone())

    def forward(
        self, x: Tensor, edge_index: Tensor, batch: Tensor, ptr: Tensor, *more: Tensor
    ) -> Tensor:
        """Return outputs ``[graphs, outputs]``."""
        if self._adapter is None:
            out: Tensor = self.network(x, edge_index, batch, ptr)
        else:
            given = dict(zip(self._more, more, strict=True))
            inputs = Inputs(x, edge_index, batch, ptr, **given)
            out = self._adapter(self.network, inputs)
            out = out.unsqueeze(1) if out.dim() == 1 else out
        if self.centre is None or self.spread is None:
            return out
        return out * self.spread + self.centre


def export_model(model: TrainedModel, path: str | os.PathLike[str], format: Format = "pt2") -> None:
    """Write a model as a program of PyTorch's own operators.

    It is called with the features ``[nodes, in]`` (what they are is in the model's `config.json`),
    ``edge_index``, ``batch`` and ``ptr`` as a PyG batch has them, of any number of nodes, edges and
    graphs. Its outputs are those of ``model.outputs``.

    Args:
        model: The model.
        path: The file.
        format: ``"pt2"`` (``torch.export``) or ``"onnx"``, where the exporter is installed.

    Raises:
        UsageError: There is no such format, what it needs is not installed, or `path` is a folder.
        GnnVpaError: The network cannot be exported.

    Example:
        >>> import tempfile
        >>> from gnn_vpa.graphs import load
        >>> from gnn_vpa.trained import train_model
        >>> from gnn_vpa.training import Protocol, Task
        >>> model = train_model(load("MUTAG"), Task("gin", "vpa"), Protocol(epochs=1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export_model(model, f"{folder}/mutag.pt2")
        ...     program = torch.export.load(f"{folder}/mutag.pt2").module()
        >>> batch, ptr = torch.tensor([0, 0, 1]), torch.tensor([0, 2, 3])
        >>> program(torch.eye(7)[:3], torch.tensor([[0, 1], [1, 0]]), batch, ptr).shape
        torch.Size([2, 2])
    """
    if format not in FORMATS:
        raise UsageError(f"format: {format!r} is unknown, expected one of {', '.join(FORMATS)}.")
    if format == "onnx" and (lacking := [n for n in ("onnx", "onnxscript") if not find_spec(n)]):
        raise UsageError(
            f"format: onnx needs {' and '.join(lacking)}, which PyTorch's exporter is made of: "
            "pip install 'gnn-vpa[onnx]', or use --format pt2"
        )
    refuse_folder(path, f"model.{format}")
    program = _exported(model)
    _check_plain(model, program)
    if format == "pt2":
        # Into memory first: on a full disk PyTorch's own writer ends the process.
        content = io.BytesIO()
        torch.export.save(program, content)
        write_whole(Path(path), content.getvalue())
        return
    with replacing(Path(path)) as part:
        with _quiet("onnx_ir"), _quiet("torch.onnx"):
            # One file: weights beside it would be found by the name that it is written under.
            torch.onnx.export(program, f=part, dynamo=True, external_data=False, verbose=False)
        _check_sums(model, part)


def _check_plain(model: TrainedModel, program: Any) -> None:
    """Refuse a program that needs operators of somebody's own, which are not in the file."""
    names = {
        str(node.target)
        for part in program.graph_module.modules()
        if isinstance(part, torch.fx.GraphModule)
        for node in part.graph.nodes
        if isinstance(node.target, torch._ops.OpOverload)
    }
    if others := sorted(name for name in names if not name.startswith(_PLAIN)):
        raise GnnVpaError(
            f"{model.task.model} cannot be exported: it would need {others[0]}, which is none of "
            "PyTorch's own operators and would be missing where the program runs"
        )


@contextmanager
def _quiet(name: str) -> Iterator[None]:
    """Let a library not warn of what it has itself left out."""
    logger = logging.getLogger(name)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)


def _check_sums(model: TrainedModel, path: Path) -> None:
    """Refuse sums of which ONNX Runtime loses summands, on several threads and large batches."""
    import onnx

    for node in onnx.load(path).graph.node:
        if node.op_type == "ScatterND" and any(
            given.name == "reduction" and given.s != b"none" for given in node.attribute
        ):
            raise GnnVpaError(
                f"{model.task.model} cannot be exported as onnx: it adds by ScatterND, of which "
                "ONNX Runtime loses summands on several threads. Let the model add by scatter_add "
                "instead of index_add, or use --format pt2"
            )


def _exported(model: TrainedModel) -> Any:
    wrapped = Program(model).eval()
    first, second = (_arguments(model, copies) for copies in (1, 3))
    dims = [{0: torch.export.Dim.AUTO}, {1: torch.export.Dim.AUTO}]
    dims += [{0: torch.export.Dim.AUTO}] * (len(first) - 2)
    shapes = (*dims[:4], tuple(dims[4:])) if dims[4:] else tuple(dims)
    try:
        # No size is special: otherwise a graph that is alone, or has no edges, is not served.
        all_sizes = _sizes.patch(backed_size_oblivious=True)  # type: ignore[attr-defined]
        with torch.no_grad(), all_sizes:
            program = torch.export.export(
                wrapped, first, dynamic_shapes=shapes, strict=not isinstance(model.module, Model)
            )
            again, right = program.module()(*second), _said(model, wrapped, second)
    except GnnVpaError:
        raise
    except Exception as error:
        line = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise GnnVpaError(
            f"{model.task.model} cannot be exported: torch.export says {line[:300]}"
        ) from error
    if not torch.allclose(again, right, rtol=_TOLERANCE, atol=_TOLERANCE):
        raise GnnVpaError(
            f"{model.task.model}: what was exported computes something else than the model, by "
            f"{float((again - right).abs().max()):.3g} for other graphs: it cannot be exported"
        )
    return program


def _said(model: TrainedModel, program: Program, arguments: tuple[Tensor, ...]) -> Tensor:
    """Return what a model itself says of graphs."""
    if not isinstance(model.module, Model):
        said: Tensor = program(*arguments)
        return said
    scores: Tensor = model.module(*arguments[:3])
    return scores if model.units is None else scores * model.units.spread + model.units.centre


def _arguments(model: TrainedModel, copies: int) -> tuple[Tensor, ...]:
    inputs = sample(model.encoding, next(model.module.parameters(), torch.empty(0)), copies)
    return (*inputs[:4], *(getattr(inputs, name) for name in _seen(model)))


def _seen(model: TrainedModel) -> list[str]:
    """Return what a network sees besides node features and edges."""
    if isinstance(model.module, Model):
        return []
    inputs = sample(model.encoding, torch.empty(0))
    return [name for name in _MORE if getattr(inputs, name) is not None]
