"""How many of the pairs of graphs that 1-WL tells apart a random network tells apart too."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from ...aggregations import aggregation, operators
from ...errors import UsageError
from ...graphs import FeatureKind, GraphSet
from ...nn import build_model
from ...random_state import seeded
from .boxes import overlapping_pairs
from .quotient import Quotient, quotients

Precision = Literal["float64", "float32", "bfloat16"]


class Separation(NamedTuple):
    """How many pairs of graphs one network tells apart, or several together.

    Attributes:
        dataset: Name of the data set.
        graphs: Number of its graphs.
        aggr: The network's aggregation.
        precision: The type that it computes with.
        depth: Number of its layers.
        seed: The seed of its weights; None: told apart by at least one of the seeds.
        pairs: Pairs of graphs that ``depth`` rounds of 1-WL tell apart.
        told_apart: Those among them that the network tells apart.
        noise: Its largest relative rounding error on these graphs.

    Example:
        >>> Separation("mine", 3, "vpa", "float32", 2, 0, pairs=3, told_apart=2, noise=1e-7).missed
        1
    """

    dataset: str
    graphs: int
    aggr: str
    precision: Precision
    depth: int
    seed: int | None
    pairs: int
    told_apart: int
    noise: float

    @property
    def missed(self) -> int:
        """Pairs that 1-WL tells apart and the network does not."""
        return self.pairs - self.told_apart

    @property
    def share(self) -> float:
        """Share of the pairs that the network tells apart; 1 where there is none to tell."""
        return self.told_apart / self.pairs if self.pairs else 1.0


class _Outputs(NamedTuple):
    """What a network says of the distinct graphs, and how far rounding may have moved it."""

    values: Tensor  # [C, W], float64
    noise: float

    def box(self) -> tuple[Tensor, Tensor]:
        """Return the lowest and the highest that each output may be."""
        error = self.noise * self.values.abs().amax(1, keepdim=True)
        low, high = self.values - error, self.values + error
        lost = ~self.values.isfinite().all(1, keepdim=True)  # may be anything
        return low.masked_fill(lost, -torch.inf), high.masked_fill(lost, torch.inf)


def measure_expressivity(
    graphs: GraphSet,
    *,
    aggrs: Sequence[str] | None = None,
    precisions: Sequence[Precision] = get_args(Precision),
    depths: Sequence[int] = (1, 2, 3, 4),
    seeds: Iterable[int] = range(3),
    width: int = 64,
    features: FeatureKind = "auto",
    device: torch.device | str = "cpu",
) -> list[Separation]:
    """Compare random networks with 1-WL on all pairs of graphs of a data set.

    A network is the paper's GIN, untrained and in evaluation mode, with ``width`` outputs and the
    same aggregation for neighbours and for the readout. It tells two graphs apart if one of its
    outputs differs by more than rounding explains: by more than ``noise * (|a| + |b|)``, with the
    largest outputs ``|a|`` and ``|b|`` of the two graphs. ``noise`` is the network's largest
    relative error on these graphs, measured: in several orders of nodes and edges, against the same
    weights in float64 (for float64 itself, between orders, and as many ``eps`` as in float32). It
    is at least the last rounding, half an ``eps``.

    Args:
        graphs: The data set.
        aggrs: Aggregations; None: all but powers.
        precisions: Types to compute with.
        depths: Numbers of layers, and of the rounds of 1-WL that they are compared with.
        seeds: A network each.
        width: Width of the layers and number of outputs.
        features: Node features, as in ``gnn_vpa.graphs.features``.
        device: Where the networks run.

    Returns:
        For each depth, aggregation and precision one row a seed, and a last one for all seeds
        together, if there are several.

    Example:
        Two triangles and a hexagon are alike to 1-WL; a path of six is not, and its ends give it
        away to all but mean and max.

        >>> from torch_geometric.data import Data
        >>> ring = [(i, (i + 1) % 6) for i in range(6)]
        >>> triangles = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3)]
        >>> def undirected(edges):
        ...     pairs = torch.tensor(edges + [(b, a) for a, b in edges]).T
        ...     return Data(edge_index=pairs, num_nodes=6, y=0)
        >>> three = GraphSet.from_pyg(map(undirected, (ring, triangles, ring[:5])))
        >>> rows = measure_expressivity(three, precisions=["float64"], depths=[3], seeds=[0])
        >>> [(row.aggr, row.told_apart, row.pairs) for row in rows]
        [('sum', 2, 2), ('mean', 0, 2), ('max', 0, 2), ('vpa', 2, 2)]
    """
    seeds, aggrs = list(seeds), operators() if aggrs is None else aggrs
    _check(aggrs, precisions, depths, seeds)
    where = torch.device(device)
    return [
        row
        for quotient in quotients(graphs, depths, features)
        for aggr in aggrs
        for row in _separations(graphs, quotient, aggr, precisions, seeds, width, where)
    ]


def _check(
    aggrs: Sequence[str], precisions: Sequence[str], depths: Sequence[int], seeds: Sequence[int]
) -> None:
    for name, given in (
        ("aggrs", aggrs), ("precisions", precisions), ("depths", depths), ("seeds", seeds)
    ):  # fmt: skip
        if not given:
            raise UsageError(f"{name}: expected at least one")
    for aggr in aggrs:
        aggregation(aggr, among="operators")
    for value in precisions:
        if value not in get_args(Precision):
            known = ", ".join(get_args(Precision))
            raise UsageError(f"precisions: {value!r} is unknown, expected {known}")
    if any(depth < 1 for depth in depths):
        raise UsageError(f"depths: expected at least 1 layer, got {min(depths)}")


def _separations(
    graphs: GraphSet,
    quotient: Quotient,
    aggr: str,
    precisions: Sequence[Precision],
    seeds: Sequence[int],
    width: int,
    device: torch.device,
) -> Iterator[Separation]:
    for precision in precisions:
        networks: dict[int | None, _Outputs] = {
            seed: _outputs(quotient, aggr, precision, seed, width, device) for seed in seeds
        }
        boxes = {seed: outputs.box() for seed, outputs in networks.items()}
        noise = {seed: outputs.noise for seed, outputs in networks.items()}
        if len(seeds) > 1:
            # Side by side, several networks are one with more outputs.
            lows, highs = zip(*boxes.values(), strict=True)
            boxes[None], noise[None] = (
                (torch.cat(lows, 1), torch.cat(highs, 1)),
                max(noise.values()),
            )
        for seed, (low, high) in boxes.items():
            missed = overlapping_pairs(low, high, quotient.times)
            yield Separation(
                graphs.name, graphs.num_graphs, aggr, precision, quotient.depth, seed,
                quotient.pairs, quotient.pairs - missed, noise[seed],
            )  # fmt: skip


@torch.no_grad()
def _outputs(
    quotient: Quotient,
    aggr: str,
    precision: Precision,
    seed: int,
    width: int,
    device: torch.device,
) -> _Outputs:
    dtype: torch.dtype = getattr(torch, precision)
    with seeded(seed):
        model = build_model(
            "gin", quotient.x.shape[1], width, aggr, depth=quotient.depth, width=width
        )
    model.eval().to(device)
    draw = torch.Generator().manual_seed(seed)

    def run(computed_in: torch.dtype) -> Tensor:
        """Run it in another order, with weights and features that ``dtype`` can hold."""
        x, graph, readout = quotient.operands(draw, device)
        scores: Tensor = model.to(dtype).to(computed_in)(
            x.to(dtype).to(computed_in), graph, readout
        )
        return scores.double().cpu()

    exact, values, again = run(torch.float64), run(dtype), run(dtype)
    eps = torch.finfo(dtype).eps
    errors = [eps / 2, _error(values, exact), _error(again, exact)]
    if dtype == torch.float64:
        # Orders alone do not show an error that they share. It is as many eps in every type.
        errors.append(_error(run(torch.float32), exact) * eps / torch.finfo(torch.float32).eps)
    return _Outputs(values, max(errors))


def _error(outputs: Tensor, exact: Tensor) -> float:
    """Return the largest error of a finite output, relative to the largest output of its graph."""
    relative = (outputs - exact).abs() / exact.abs().amax(1, keepdim=True)
    return float(relative.nan_to_num(nan=0, posinf=0).max())
