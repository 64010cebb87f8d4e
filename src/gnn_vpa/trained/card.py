"""The card of a model: what people want to know before they use it, in Markdown."""

from ..escape import markdown
from ..training import METRICS
from .model import TrainedModel
from .record import Record

_JUDGED = {
    "validation": "the {valid} graphs that chose the epoch, so that it is too good by a little",
    "test": "{test} graphs that took no part in the training",
    "cross-validation": "test graphs of a cross-validation that chose the setting in each fold",
}
_BY = {
    "Wilson": "Wilson's interval for a share of so many graphs",
    "bootstrap": "bootstrap over these graphs",
    "folds": "Student's t over the folds",
}


def card(model: TrainedModel, name: str) -> str:
    """Write the card.

    Args:
        model: The model.
        name: What its folder is called.

    Example:
        >>> from gnn_vpa.graphs import load
        >>> from gnn_vpa.trained import train_model
        >>> from gnn_vpa.training import Protocol, Task
        >>> model = train_model(load("MUTAG"), Task("gin", "vpa"), Protocol(epochs=1))
        >>> print(card(model, "mutag-vpa").splitlines()[0])
        # mutag-vpa: gin with vpa on MUTAG
    """
    task, record, data = model.task, model.record, model.record.data
    settings = {**task.parameters, **model.protocol.settings(), "seed": record.seed}
    aggr = f" with {task.aggr}" if task.aggr else ""
    parts = [
        f"# {markdown(name)}: {markdown(task.model)}{aggr} on {markdown(data.name)}",
        f"A graph neural network, trained by gnn-vpa. It says {_says(model)}.",
        "## How good it is",
        _scores(record),
        "## Data",
        f"{markdown(data.name)}: {data.graphs:,} graphs, {data.nodes:,} nodes, {data.edges:,} "
        f"directed edges; {data.train:,} graphs for training, {data.valid:,} for validation"
        + (f", {data.test:,} for test" if data.test else "")
        + f". SHA-256 of the content: `{data.content}`.",
        f"Node features: {_features(model)}. Other graphs are refused.",
        "## Protocol",
        f"Model `{task.model}`, aggregation `{task.aggr or 'as written'}`, variant "
        f"`{task.variant}`; "
        + ", ".join(f"{key} {markdown(str(value))}" for key, value in settings.items())
        + f". Weights of epoch {record.best_epoch} (from 0), which was best on the validation "
        f"graphs by {METRICS[record.metric].title}.",
        "## Signal",
        _signal(record),
        "## How to use it",
        _use(model, name),
        "Made with " + ", ".join(f"{key} {value}" for key, value in record.versions.items()) + ".",
    ]
    return "\n\n".join(parts) + "\n"


def _says(model: TrainedModel) -> str:
    names = ", ".join(markdown(each) for each in model.target.names)
    return {
        "classes": f"which of {model.target.outputs} classes a graph is of: {names}",
        "labels": f"which of {model.target.outputs} labels a graph has: {names}",
        "regression": f"a number for each of: {names}, in the data's units",
    }[model.target.kind]


def score_line(record: Record) -> str:
    """Say how good a model is, how sure that is, and on what.

    Example:
        >>> from gnn_vpa.trained import DataRecord
        >>> data = DataRecord("MUTAG", "350999e7", 188, 3371, 7442, 150, 19, 19)
        >>> score_line(Record(data, "accuracy", "test", {"accuracy": 0.9}))
        'Accuracy 90.0 %, on 19 graphs that took no part in the training.'
    """
    text = f"{METRICS[record.metric].title} {value_of(record.metric, record.score)}"
    if record.interval is not None:
        low, high = (value_of(record.metric, bound) for bound in record.interval)
        text += f" (95 % interval {low} to {high}, {_BY[record.interval_by]})"
    where = _JUDGED[record.judged].format(valid=record.data.valid, test=record.data.test)
    return f"{text}, on {where}."


def _scores(record: Record) -> str:
    rows = [
        f"| {METRICS[name].title} | {value_of(name, value)} |"
        for name, value in record.scores.items()
    ]
    return "\n".join([score_line(record), "", "| metric | value |", "|---|---|", *rows])


def value_of(metric: str, value: float | None) -> str:
    """Write a score as tables do: a share in percent.

    Example:
        >>> value_of("accuracy", 0.9), value_of("mae", 0.123456)
        ('90.0 %', '0.1235')
    """
    if value is None:
        return "undefined"
    return f"{100 * value:.1f} %" if METRICS[metric].is_share else f"{value:.4g}"


def _features(model: TrainedModel) -> str:
    encoding = model.encoding
    if encoding.kind == "ones":
        return "a 1 for every node"
    if encoding.kind == "degree":
        degrees = ", ".join(map(str, encoding.degrees))
        return f"the in-degree, one of {degrees}"
    parts = [f"{encoding.attributes} attributes"] if encoding.attributes else []
    for labels in encoding.labels:
        parts.append(f"a label, one of {', '.join(map(str, labels))}")
    return " and ".join(parts)


def _signal(record: Record) -> str:
    if not record.signal:
        return "It was not measured."
    rows = [
        f"| {markdown(layer)} | {'not finite' if value is None else f'{value:.3g}'} |"
        for layer, value in record.signal.items()
    ]
    head = "Variance of what each layer returns, on the first graphs of the data:"
    return "\n".join([head, "", "| layer | variance |", "|---|---|", *rows])


def _use(model: TrainedModel, name: str) -> str:
    is_own = ":" in model.task.model
    make = ", model=make" if is_own else ""
    option = f" --model {model.task.model}" if is_own else ""
    lines = [
        "```python",
        "import gnn_vpa",
        "",
        f'model = gnn_vpa.load_model("{name}"{make})',
        "model.predict(graphs)  # PyG graphs: a list or an iterator",
        "```",
        "",
        "```sh",
        f"gnn-vpa predict {name} NEW.zip{option} --out predictions.csv",
        "```",
    ]
    if is_own:
        lines += ["", f"`make` is the function `{model.task.model}` that the model was made with."]
    return "\n".join(lines)
