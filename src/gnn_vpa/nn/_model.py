"""What the paper's four models share: how they are called."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial

from torch import Tensor, nn

from ..ops import Graph
from ..ops._aggregate import Aggregation
from ._blocks import Blocks
from ._checks import check_counts, check_input, check_nodes, one_hot
from ._heads import LevelsHead, MLPHead
from ._layers import Joint, Layers, Readouts
from ._linear import Mix
from ._message import GraphLike, aggregate

Readout = GraphLike | Joint | Readouts


class Model(nn.Module, ABC):
    """A classifier of graphs: layers, then a head.

    Every model is called as ``model(x, graph, readout, nodes=None, uniform=None)``:

    ===========  ===================================================================================
    ``x``        features ``[rows, in_channels]``, or the codes ``[rows]`` of one-hot ones
    ``graph``    a ``Graph``, or anything that one is made from, such as an ``edge_index``
    ``readout``  ``Graph.readout(batch)``, or PyG's vector ``batch [rows]`` itself
    ``nodes``    how often the node of each row occurs, ``[rows]``: by default once
    ``uniform``  random numbers in [0, 1) for dropout, of shape ``dropout_shape(graphs)``
    returns      scores ``[graphs, num_classes]``
    ===========  ===================================================================================

    **Merged graphs.** Nodes that no message-passing network of this depth can tell apart may be
    merged: one row stands for all. ``graph`` and ``readout`` carry multiplicities then: an edge
    counts as often as its target has neighbours that were merged into its source, so degrees are
    the true ones, and a row counts in the readout as often as its node occurs. BatchNorm alone
    uses ``nodes``.

    **Many models at once.** Under ``torch.func.functional_call`` with the weights that
    ``torch.func.stack_module_state`` makes of L models, rows are those of the L models one after
    the other, equally many for each: ``x`` is ``[L * rows, in_channels]``, the scores are
    ``[L * graphs, num_classes]``, and ``uniform`` has its lanes along the axis of the graphs. A
    row that a model does not need has no edges, no graph in the readout, and 0 in ``nodes``.

    Example:
        A star of three leaves, and the same merged: the hub 0, one leaf 1 for all three.

        >>> import torch
        >>> from gnn_vpa import build_model
        >>> model = build_model("gin", in_channels=1, num_classes=2).eval()
        >>> star = torch.tensor([[1, 2, 3, 0, 0, 0], [0, 0, 0, 1, 2, 3]])
        >>> whole = model(torch.ones(4, 1), star, torch.zeros(4, dtype=torch.int64))
        >>> merged = Graph(torch.tensor([[1, 0], [0, 1]]), 2, multiplicity=torch.tensor([3, 1]))
        >>> nodes = torch.tensor([1, 3])
        >>> readout = Graph.readout(torch.tensor([0, 0]), multiplicity=nodes)
        >>> torch.allclose(model(torch.ones(2, 1), merged, readout, nodes), whole, atol=1e-5)
        True

        A fold's dropout can be its own, whatever else draws random numbers:

        >>> model = build_model("gcn", in_channels=1, num_classes=2)
        >>> own = torch.Generator().manual_seed(7)
        >>> uniform = torch.rand(model.dropout_shape(num_graphs=1), generator=own)
        >>> pair, batch = torch.tensor([[0, 1], [1, 0]]), torch.tensor([0, 0])
        >>> model(torch.ones(2, 1), pair, batch, uniform=uniform).shape
        torch.Size([1, 2])
    """

    head: MLPHead | LevelsHead

    def __init__(self, in_channels: int, width: int, depth: int) -> None:
        super().__init__()
        check_counts(in_channels=in_channels, width=width, depth=depth)
        self.in_channels = in_channels

    def dropout_shape(self, num_graphs: int) -> tuple[int, ...]:
        """Return the shape of ``uniform`` for so many graphs; the graphs are its last axis but one.

        Example:
            >>> from gnn_vpa import build_model
            >>> build_model("gcn", in_channels=7, num_classes=2).dropout_shape(num_graphs=32)
            (32, 64)
        """
        return self.head.dropout_shape(num_graphs)

    def row_parameters(self, graph: Layers | None, codes: bool = False) -> dict[str, int]:
        """Return the weights that rows of nodes meet, each with the level of these rows.

        With ``Blocks`` of rows these weights are needed for each block of the level, the others
        (the norms' and the head's) for each lane.

        Args:
            graph: The batch by levels that the model is called with; None: it has one level.
            codes: Whether the input is codes, which a head that reads it looks up first.
        """
        levels = self._row_parameters(graph)
        reads_input = codes and isinstance(self.head, LevelsHead)
        return levels | {"head.lins.0.weight": 0} if reads_input else levels

    @abstractmethod
    def _row_parameters(self, graph: Layers | None) -> dict[str, int]:
        """Return those of the layers."""

    def _checked(
        self, x: Tensor, nodes: Tensor | Blocks | None = None, *, written_out: bool = False
    ) -> Tensor:
        check_input(x, self.in_channels)
        check_nodes(nodes, x)
        if written_out and not x.is_floating_point():
            return one_hot(x, self.in_channels, next(self.parameters()).dtype)
        return x

    def _scores(
        self,
        levels: Sequence[Tensor],
        readout: Readout,
        aggr: Aggregation,
        uniform: Tensor | None,
    ) -> Tensor:
        first = None
        pools: list[Mix]
        if isinstance(readout, Joint):
            pools, first = [readout.pool], readout.first
        elif isinstance(readout, Readouts):
            pools = readout.pools(aggr)
        else:
            if isinstance(readout, Tensor) and readout.dim() == 1:
                readout = Graph.readout(readout)
            pools = [partial(aggregate, graph=readout, aggr=aggr)] * len(levels)
        scores: Tensor = self.head(levels, pools, uniform, first)
        return scores
