"""The paper's numbers, in the form that the analysis asks for them."""

from collections.abc import Sequence

from gnn_vpa.errors import UsageError
from gnn_vpa.paper import Accuracy, Summary, published_accuracy, published_summary

from .style import DATASETS

FOLDS = 10


def published_cell(
    table: str | None, model: str, aggregation: str, dataset: str
) -> Accuracy | None:
    """Mean and standard deviation in percent; None where the paper has no such number."""
    if table is None:
        return None
    try:
        return published_accuracy(table, model, aggregation, dataset)
    except UsageError:  # a data set of the user's own
        return None


def published_average(
    table: str | None, model: str, aggregation: str, datasets: Sequence[str]
) -> float | None:
    """The paper's average over these sets: its own column, or for fewer sets their cells' mean."""
    cells = [published_cell(table, model, aggregation, name) for name in datasets]
    means = [cell.mean for cell in cells if cell is not None]
    if not means or len(means) < len(cells):
        return None
    summary = _summary(table, model, aggregation, datasets)
    return summary.average if summary else sum(means) / len(means)


def published_p(
    table: str | None, model: str, aggregation: str, datasets: Sequence[str]
) -> float | None:
    """The paper's p against vpa; None for other sets than the nine that it is over."""
    summary = _summary(table, model, aggregation, datasets)
    return summary.p if summary else None


def _summary(
    table: str | None, model: str, aggregation: str, datasets: Sequence[str]
) -> Summary | None:
    if table != "table1" or sorted(datasets) != sorted(DATASETS):
        return None
    return published_summary().get((model.casefold(), aggregation))


def is_social(dataset: str) -> bool:
    """Whether it is one of the sets without node labels, those of the paper's appendix."""
    return published_cell("table_a1", "GIN", "vpa", dataset) is not None
