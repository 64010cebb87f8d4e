"""What the paper's four models share: how they are called."""

from collections.abc import Sequence

from torch import Tensor, nn

from ._checks import check_counts, check_input, one_hot
from ._heads import LevelsHead, MLPHead
from ._linear import Mix
from ._message import Multiplicity, check_multiplicity


class Model(nn.Module):
    """A classifier of graphs: layers, then a head.

    Every model is called as ``model(x, graph, readout, multiplicity=None, uniform=None)``:

    ================  ==============================================================================
    ``x``             features ``[nodes, in_channels]``, or the codes ``[nodes]`` of one-hot ones
    ``graph``         a ``Graph``, or anything that one is made from, such as an ``edge_index``
    ``readout``       ``Graph.readout(batch)``, or PyG's vector ``batch [nodes]`` itself
    ``multiplicity``  how often merged nodes and edges occur, a ``Multiplicity``
    ``uniform``       random numbers in [0, 1) for dropout, of shape ``dropout_shape(graphs)``
    returns           scores ``[graphs, num_classes]``
    ================  ==============================================================================

    **Many models at once.** Under ``torch.func.functional_call`` with the weights that
    ``torch.func.stack_module_state`` makes of L models, rows are those of the L models one after
    the other, equally many for each: ``x`` is ``[L * nodes, in_channels]``, the scores are
    ``[L * graphs, num_classes]``, and ``uniform`` has its lanes along the axis of the graphs. A
    model with fewer nodes fills its slots with nodes of multiplicity 0.

    Example:
        A fold's dropout can be its own, whatever else draws random numbers:

        >>> import torch
        >>> from gnn_vpa import build_model
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

    def _checked(
        self, x: Tensor, multiplicity: Multiplicity | None, *, written_out: bool = False
    ) -> Tensor:
        check_input(x, self.in_channels)
        check_multiplicity(multiplicity, x.shape[0])
        if written_out and not x.is_floating_point():
            return one_hot(x, self.in_channels, next(self.parameters()).dtype)
        return x

    def _scores(self, levels: Sequence[Tensor], pool: Mix, uniform: Tensor | None) -> Tensor:
        scores: Tensor = self.head(levels, pool, uniform)
        return scores
