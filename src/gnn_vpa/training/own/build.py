"""Models that users' factories make, checked before anything is trained."""

import inspect
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import nn

from ...aggregations import aggregation
from ...errors import GnnVpaError, UsageError
from ...graphs import GraphSet, features
from ...random_state import seeded
from .adapter import Adapter, shortened
from .batches import Source
from .factories import Factory, factory, is_own

if TYPE_CHECKING:
    from ...pyg import ConversionReport
    from ..task import Task

AS_WRITTEN = ("", "default")  # aggregations that leave a model as its factory makes it


class Built(NamedTuple):
    """A user's model, and what was changed in it."""

    model: nn.Module
    report: "ConversionReport | None"  # None: the factory made it as it is


def build(task: "Task", in_channels: int, out_channels: int) -> Built:
    """Make a user's model, with weights from the global generator.

    Where the factory takes ``aggr`` it is given the task's; otherwise the model is converted.

    Raises:
        UsageError: The factory cannot be called so, raises or returns no model, or the conversion
            changes nothing.
    """
    from ...pyg import convert, register  # PyG loads slowly, and models of ours need none of it

    make = factory(task.model, task.source)
    options = {name: value for name, value in task.options if name != "start"}
    is_asked = task.aggr not in AS_WRITTEN
    is_passed = is_asked and "aggr" in _parameters(make)
    if is_passed:
        if aggregation(task.aggr).kind == "linear":
            register(task.aggr)
        options["aggr"] = task.aggr
    model = _called(make, task.model, in_channels, out_channels, options)
    if not is_asked or is_passed:
        return Built(model, None)
    try:
        converted, report = convert(model, aggr=task.aggr)
    except UsageError as error:
        raise UsageError(
            f"{task.model} takes no aggr, and cannot be converted to {task.aggr}: {error}"
        ) from error
    if not report.changed:
        raise UsageError(
            f"{task.model} takes no aggr, and there is nothing in its model that can be converted "
            f"to {task.aggr}: let the function take aggr, or leave --aggr away. "
            f"The conversion says: {report}"
        )
    return Built(converted, report)


def _parameters(make: Factory) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(make).parameters)
    except (TypeError, ValueError):
        return {}


def _called(
    make: Factory, name: str, in_channels: int, out_channels: int, options: dict[str, Any]
) -> nn.Module:
    try:
        inspect.signature(make).bind(in_channels, out_channels, **options)
    except TypeError as error:
        raise UsageError(
            f"{name}{inspect.signature(make)} cannot be called with in_channels, out_channels"
            f"{''.join(f', {option}={value!r}' for option, value in options.items())}: {error}."
        ) from error
    except ValueError:
        pass  # it has no signature
    try:
        model = make(in_channels, out_channels, **options)
    except GnnVpaError:
        raise
    except Exception as error:
        given = "".join(f", {option}={value!r}" for option, value in options.items())
        raise UsageError(
            f"{name}({in_channels}, {out_channels}{given}) raised {type(error).__name__}: "
            f"{shortened(error)}."
        ) from error
    if not isinstance(model, nn.Module):
        raise UsageError(f"{name} must return a torch.nn.Module, but returned {_described(model)}.")
    return model


def _described(value: object) -> str:
    return "nothing" if value is None else f"an object of type {type(value).__name__}"


def conversion(task: "Task", in_channels: int = 8, out_channels: int = 2) -> str:
    """Say what was changed in a user's model for the aggregation; empty if it took that itself.

    Example:
        >>> from torch_geometric.nn import GraphConv
        >>> from gnn_vpa.training import Task
        >>> from gnn_vpa.training.own import register
        >>> def make(in_channels, out_channels):
        ...     return nn.Sequential(GraphConv(in_channels, out_channels))
        >>> print(conversion(Task(register(make), "vpa")))
        1 changed, 0 left
          changed  0  GraphConv -> VPGraphConv
    """
    with seeded():
        report = build(task, in_channels, out_channels).report
    return "" if report is None else str(report)


def own_model(task: "Task", graphs: GraphSet) -> nn.Module:
    """Make a user's model for a data set, with weights from the global generator."""
    width = features(graphs, task.features).width
    model = build(task, width, graphs.num_outputs).model
    lazy = (nn.UninitializedParameter, nn.UninitializedBuffer)
    if any(isinstance(p, lazy) for p in [*model.parameters(), *model.buffers()]):
        # Lazy layers learn their sizes, and draw their weights, when they are called.
        adapter = Adapter.of(model, task.model)
        cpu = torch.device("cpu")
        source = Source(graphs, task.features, cpu, torch.float32, max_bytes=0)
        with torch.no_grad(), adapter.blamed("when it was called with one graph"):
            adapter(model.eval(), source.cut(torch.tensor([0])))
    return model


def check(graphs: GraphSet, task: "Task") -> Adapter:
    """Make a user's model once and call it with two graphs, before anything is trained.

    Raises:
        UsageError: The message says what is wrong with the model, or with the data for it.
    """
    if empty := (graphs.node_ptr.diff() == 0).nonzero().flatten().tolist():
        raise UsageError(
            f"{graphs.name} has graphs without nodes (graph {empty[0]} is the first of "
            f"{len(empty)}), of which PyG's batch vector does not know: leave them out to train "
            f"{task.model}."
        )
    device, dtype = torch.device("cpu"), torch.float32
    source = Source(graphs, task.features, device, dtype, max_bytes=0)
    ids = torch.arange(min(2, graphs.num_graphs))
    with seeded():
        model = build(task, source.width, graphs.num_outputs).model
        if not any(p.requires_grad for p in model.parameters()):
            raise UsageError(f"{task.model}: its model has no weights that could be trained.")
        adapter = Adapter.of(model, task.model)
        inputs = source.cut(ids)
        adapter.check_inputs(inputs, graphs.name)
        with torch.no_grad():
            try:
                out = adapter(model.eval(), inputs)
            except GnnVpaError:
                raise
            except Exception as error:
                raise UsageError(
                    f"{task.model}: its model raised {type(error).__name__} when it was called "
                    f"with two graphs of {graphs.name}: {shortened(error)}."
                ) from error
        adapter.checked(out, len(ids), graphs.num_outputs)
    return adapter


def unused_edge_features(graphs: GraphSet, task: "Task") -> str | None:
    """Say that a model does not see the edge features of the data; None if it does, or has none.

    Example:
        >>> from torch_geometric.data import Data
        >>> from gnn_vpa.training import Task
        >>> pair = torch.tensor([[0, 1], [1, 0]])
        >>> bonds = [Data(edge_index=pair, num_nodes=2, y=0, edge_attr=torch.ones(2, 3))]
        >>> unused_edge_features(GraphSet.from_pyg(bonds, name="bonds"), Task("gin", "vpa"))
        'bonds has edge features (3 columns), which gin does not use: it is trained without them.'
    """
    if graphs.edge_attributes is None:
        return None
    columns = graphs.edge_attributes.shape[1]
    if is_own(task.model):
        with seeded():
            adapter = Adapter.of(own_model(task, graphs), task.model)
        if "edge_attr" in adapter.keywords or adapter.takes_batch:
            return None
        if "edge_weight" in adapter.keywords and columns == 1:
            return None
    plural = "1 column" if columns == 1 else f"{columns} columns"
    return (
        f"{graphs.name} has edge features ({plural}), which {task.model} does not use: it is "
        "trained without them."
    )
