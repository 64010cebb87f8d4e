"""How methods are named, ordered and coloured, in every table and figure.

Readers with any of the common colour vision deficiencies tell the colours apart, and no figure
relies on them alone: lines also differ in their dashes.
"""

from collections.abc import Iterable

from .. import baselines
from ..aggregations import AGGREGATIONS, Aggregation, aggregation
from ..errors import UsageError

DATASETS = ("IMDB-B", "IMDB-M", "RDT-B", "RDT-M5K", "COLLAB", "MUTAG", "PROTEINS", "PTC", "NCI1")
#: Titles of baselines, by their names in frames.
BASELINES = {name.upper(): known.title for name, known in baselines.BASELINES.items()}
MODELS = ("GIN", "GCN", "SGC", "GAT", *BASELINES)
#: Where a figure has little room.
SHORT_NAMES = {known.title: known.short for known in baselines.BASELINES.values()}


def colour(name: str) -> str:
    """The colour of an aggregation; one without a colour of its own gets that of `default`.

    Example:
        >>> colour("vpa"), colour("median")
        ('#009E73', '#666666')
    """
    return _entry(name).colour


def dashes(name: str) -> str:
    """The dashes of an aggregation's lines, as SVG writes them.

    Example:
        >>> dashes("sum")
        '6 3'
    """
    return _entry(name).dashes


def _entry(name: str) -> Aggregation:
    try:
        return aggregation(name)
    except UsageError:  # of a baseline, or of results that another program wrote
        return AGGREGATIONS["default"]


def method_label(model: str, aggregation: str) -> str:
    """A method's name as the paper prints it, or a baseline's in words.

    Example:
        >>> method_label("GIN", "vpa"), method_label("SGC", "default"), method_label("WL", "")
        ('GIN+vpa', 'SGC', 'WL subtree kernel + SVM')
    """
    if model in BASELINES:
        return BASELINES[model]
    return model if aggregation in ("default", "") else f"{model}+{aggregation}"


def in_order(names: Iterable[str], known: tuple[str, ...]) -> list[str]:
    """The distinct names: those that are known in their order, then the others by alphabet.

    Example:
        >>> in_order(["mine", "PTC", "MUTAG", "PTC"], DATASETS)
        ['MUTAG', 'PTC', 'mine']
    """
    # A column of a frame has many rows, and goes through them quicker than Python does.
    distinct = set(names.unique() if hasattr(names, "unique") else names)
    return [name for name in known if name in distinct] + sorted(distinct.difference(known))
