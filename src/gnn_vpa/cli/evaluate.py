"""``gnn-vpa evaluate``: how good a model is on graphs whose targets are known."""

import math

from ..errors import UsageError
from ._console import counted, print_table, say
from ._models import FactoryOption, GraphsArgument, MethodOption, ModelArgument, open_model
from ._options import DataDirOption, DeviceOption


def evaluate(
    model: ModelArgument,
    graphs: GraphsArgument,
    factory: FactoryOption = None,
    method: MethodOption = None,
    device: DeviceOption = "auto",
    data_dir: DataDirOption = None,
) -> None:
    """Score a model on graphs that it has not seen, by every metric of its kind.

    Examples:

      gnn-vpa evaluate mutag-vpa NEW.zip

      gnn-vpa evaluate mymodel mydata:load --model mynets:make
    """
    import torch

    from ..experiments import resolve_device
    from ..graphs import load
    from ..graphs.splits import graphs_with_target
    from ..trained.card import value_of
    from ..trained.interval import interval_of
    from ..training import metrics_for

    predictor = open_model(model, factory, method).to(resolve_device(device))
    target = predictor.target
    column = None if target.column == "y" else target.column
    data = load(graphs, data_dir, target=column, kind=target.kind)
    y = target.y_of(data)
    if len(graphs_with_target(y)) == 0:
        raise UsageError(f"{data.name}: no graph has a target to compare with: use predict")
    with counted("Evaluating", "graphs", data.num_graphs) as progress:
        said = torch.from_numpy(predictor.outputs(data, progress=progress))
    rows = []
    for metric in metrics_for(target.kind):
        value = metric.of(y, said)
        interval, by = (None, "") if math.isnan(value) else interval_of(metric, y, said)
        low, high = interval or (None, None)
        bounds = [
            value_of(metric.name, bound) if bound is not None else "" for bound in (low, high)
        ]
        shown = None if math.isnan(value) else value
        rows.append([metric.title, value_of(metric.name, shown), *bounds, by])
    title = f"{model} on {data.name}, {len(graphs_with_target(y)):,} graphs"
    print_table(title, ["metric", "value", "95 % from", "to", "by"], rows)
    if any(content == data.checksum() for content in _contents(predictor)):
        say("These are the graphs that the model was trained on.", err=True)


def _contents(predictor: object) -> set[str]:
    models = getattr(predictor, "models", [predictor])
    return {model.record.data.content for model in models}
