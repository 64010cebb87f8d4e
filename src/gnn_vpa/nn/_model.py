"""What all models share: how they are called, and what they say of themselves."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from ..aggregations import AGGREGATIONS, PATTERN, Aggregation, aggregation
from ..errors import UsageError
from ._checks import check_counts, check_input, check_nodes, one_hot
from ._heads import LevelsHead, MLPHead
from ._lane_rows import LaneRows
from ._level_batch import LevelBatch
from ._terms import LayerTerms
from ._weighted_graph import GraphLike, WeightedGraph

MixKind = Literal["with_self", "root_and_neighbours", "attention", "propagation"]

#: The models by name: a subclass of ``Model`` that has a name enters itself.
MODELS: "dict[str, type[Model]]" = {}


class Model(nn.Module, ABC):
    """A classifier of graphs: layers, then a head.

    A model states its traits, and everything else reads them: ``build_model``, the command line,
    the engines that train, and theory.

    ================  ==============================================================================
    ``name``          what users type; a class without one is not in ``build_model``
    ``mixes``         what a layer does with neighbours: ``h_i + aggr_j h_j`` (with_self), one
                      product for each of both (root_and_neighbours), attention, or a propagation
                      without weights
    ``variants``      other defaults by variant, such as what the paper prints
    ``takes``         whether it has an aggregation
    ``exponent``      p of a layer's scale, for its aggregation; None for the maximum
    ``pooling``       p of the readout's scale ``N^(-p)``; None for the maximum
    ``terms``         what each layer adds up, for theory
    ``rounds``        rounds of 1-WL that know all that the model can know of a node
    ================  ==============================================================================

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
        >>> from gnn_vpa.ops import Graph
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

    name: ClassVar[str] = ""
    mixes: ClassVar[MixKind]
    variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    lane_options: ClassVar[Sequence[str]] = (
        "dropout",
    )  # options in which lanes of one step may differ
    keeps_parent: ClassVar[bool] = False  # whether layers read their rows' parents by themselves
    head: MLPHead | LevelsHead

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        if cls.__dict__.get("name"):
            MODELS[cls.name] = cls

    def __init__(self, in_channels: int, width: int, depth: int, aggr: str) -> None:
        super().__init__()
        check_counts(in_channels=in_channels, width=width, depth=depth)
        self.in_channels = in_channels
        self.aggr = self.checked_aggregation(aggr).name

    @classmethod
    def takes(cls, entry: Aggregation) -> bool:
        """Say whether the model has an aggregation.

        Example:
            >>> from gnn_vpa.nn import GAT, GIN
            >>> vpa, largest = aggregation("vpa"), aggregation("max")
            >>> GIN.takes(vpa), GIN.takes(largest), GAT.takes(largest)
            (True, True, False)
        """
        return entry.kind != "plain"

    @classmethod
    def aggregations(cls) -> list[str]:
        """List the aggregations that the model has.

        Example:
            >>> from gnn_vpa.nn import GAT, GIN
            >>> GIN.aggregations(), GAT.aggregations()
            (['sum', 'mean', 'max', 'vpa'], ['default', 'vpa'])
        """
        return [entry.name for entry in AGGREGATIONS.values() if cls.takes(entry)]

    @classmethod
    def checked_aggregation(cls, aggr: str) -> Aggregation:
        """Return an aggregation that the model has, or raise.

        Example:
            >>> from gnn_vpa.nn import GIN
            >>> GIN.checked_aggregation("power(0.3)").exponent
            0.3
        """
        entry = aggregation(aggr)
        if not cls.takes(entry):
            known = ", ".join([*cls.aggregations(), PATTERN])
            raise UsageError(
                f"aggr: {cls.__name__} has no {entry.name!r}, expected one of {known}."
            )
        return entry

    @property
    def exponent(self) -> float | None:
        """``p`` of the scale of a layer's sums; None for the maximum.

        Example:
            >>> from gnn_vpa.nn import GIN
            >>> GIN(7, 2, "mean").exponent
            1.0
        """
        return aggregation(self.aggr).exponent

    @property
    def pooling(self) -> float | None:
        """``p`` of the readout's scale ``N^(-p)``; None for the maximum.

        Example:
            >>> from gnn_vpa.nn import SGC
            >>> SGC(7, 2, "default").pooling
            0.0
        """
        entry = aggregation(self.aggr)
        return 0.0 if entry.kind == "plain" else entry.exponent

    @property
    def rounds(self) -> int:
        """Rounds of 1-WL that know all that the model can know of a node.

        Example:
            >>> from gnn_vpa.nn import GIN
            >>> GIN(7, 2, depth=3).rounds
            3
        """
        return len(self.convs)  # type: ignore[arg-type]

    def dropout_shape(self, num_graphs: int) -> tuple[int, ...]:
        """Return the shape of ``uniform`` for so many graphs; the graphs are its last axis but one.

        Example:
            >>> from gnn_vpa import build_model
            >>> build_model("gcn", in_channels=7, num_classes=2).dropout_shape(num_graphs=32)
            (32, 64)
        """
        return self.head.dropout_shape(num_graphs)

    def row_parameters(self, batch: LevelBatch, looked_up: bool = False) -> dict[str, int | None]:
        """Return the weights that rows of nodes meet, each with the level of these rows.

        With blocks of rows these weights are needed for each block of the level, the others (the
        norms' and the head's) for each lane.

        Args:
            batch: What the model is called with.
            looked_up: Whether the input is lanes and codes: the weights that it meets are needed
                for each lane then, and have no level.
        """
        return {
            name: None if looked_up and level == 0 and name.endswith("weight") else level
            for name, level in self._row_parameters(batch).items()
        }

    @abstractmethod
    def terms(self) -> list[LayerTerms]:
        """List what each layer adds up, in the order in which layers run: for theory.

        Example:
            >>> from gnn_vpa.nn import GCN
            >>> [kind for _, kind in GCN(7, 2, depth=1).terms()[0].products]
            ['neighbours', 'self']
        """

    @abstractmethod
    def _row_parameters(self, batch: LevelBatch) -> dict[str, int]:
        """Return those of the layers."""

    def _batch(
        self,
        graph: GraphLike | LevelBatch | None,
        readout: GraphLike | None,
        nodes: Tensor | LaneRows | None,
        layers: int,
    ) -> LevelBatch:
        """Return what the layers and the readout sum over."""
        if isinstance(graph, LevelBatch):
            return graph
        has_loops = isinstance(graph, WeightedGraph) and graph.loops and graph.weight is None
        if has_loops and self.mixes not in ("attention", "propagation"):
            raise UsageError(
                f"graph: {type(self).__name__} adds each node to its neighbours by itself. Pass "
                "the graph without self-loops."
            )
        for given in (graph, readout):
            is_scaled = isinstance(given, WeightedGraph) and given.scale is not None
            if is_scaled and aggregation(self.aggr).kind == "maximum":
                raise UsageError(
                    "graph: scaled sums cannot take the place of the aggregation 'max'."
                )
        levels = layers + 1 if isinstance(self.head, LevelsHead) else 1
        return LevelBatch.plain(graph, readout, nodes, layers, levels)

    def _checked(self, x: Tensor, batch: LevelBatch | None = None) -> Tensor:
        """Check the input; codes are written out for the maximum, which is not linear."""
        rows = None if batch is None else batch.rows
        check_input(x, self.in_channels, rows)
        check_nodes(rows, x)
        late = batch is not None and all(hop.is_sum for hop in batch.hops[:1])
        if aggregation(self.aggr).kind == "maximum" and not late and not x.is_floating_point():
            return one_hot(x, self.in_channels, next(self.parameters()).dtype)
        return x

    def _scores(
        self, levels: Sequence[Tensor], batch: LevelBatch, uniform: Tensor | None
    ) -> Tensor:
        if not batch.readouts:
            raise UsageError("readout: expected the graph of each node, such as PyG's batch.")
        aggr = "sum" if self.aggr == "default" else self.aggr
        scores: Tensor = self.head(levels, batch.pools(aggr), uniform, batch.first)
        return scores
