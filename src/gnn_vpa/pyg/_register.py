"""Registration of aggregation names: PyG layers built with one are converted."""

from functools import cache, wraps
from typing import Any

import torch_geometric.nn.aggr as pyg_aggr
from torch_geometric.nn import MessagePassing

from ..errors import UsageError
from ._aggregation import VPA, LinearAggregation, Named
from ._convert import converted_in_place
from ._table import RULES


def register(*aggrs: str) -> None:
    """Make ``aggr="vpa"`` resolve in PyTorch Geometric, in every layer made from then on.

    A layer that PyG exports becomes what ``convert`` makes of it: ``GATConv`` a ``VPGATConv``,
    whose attention is divided by its norm, ``GraphConv`` a subclass that counts edge weights. A
    layer without a variance-preserving form raises a ``UsageError``. A layer of your own gets
    ``VPAggregation`` in the place of its sum. Calling ``register`` again changes nothing.

    Args:
        *aggrs: Further linear aggregations by name, such as ``"power(0.3)"``.

    Example:
        >>> from torch_geometric.nn import GATConv, GraphConv
        >>> register("power(0.3)")
        >>> GATConv(8, 16, aggr="vpa")
        VPGATConv(8, 16, heads=1)
        >>> GraphConv(8, 16, aggr="power(0.3)").aggr_module
        LinearAggregation('power(0.3)')
    """
    # PyG's resolver looks a name up among the classes in this module's namespace.
    pyg_aggr.VPA = VPA
    for aggr in aggrs:
        name = LinearAggregation(aggr).aggr
        setattr(pyg_aggr, name, type(name, (Named,), {"named": name}))
    for layer in RULES:
        if issubclass(layer, MessagePassing) and "__init__" in vars(layer):
            _convert_when_made(layer)


@cache
def _convert_when_made(layer: Any) -> None:
    """Let instances of a class of PyG be converted when its constructor is through, once."""
    init = layer.__init__

    @wraps(init)
    def __init__(self: MessagePassing, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        if isinstance(self.aggr_module, VPA | Named):
            name, aggr = type(self).__name__, self.aggr_module.aggr
            reason = converted_in_place(self, [type(self)], aggr)
            if reason is not None:
                raise UsageError(f"aggr: {aggr!r} is not for {name}: {reason}. Leave aggr out.")

    layer.__init__ = __init__
