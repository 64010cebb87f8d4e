"""The matrix products of a training step alone, of graphs that are merged by themselves.

A step that merges across graphs, as ours does on the CPU, has fewer of them.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from gnn_vpa.graphs import GraphSet, features, merge

from ._measure import Work, compare

WIDTH, DEPTH = 64, 4  # of the released GIN


class Linear(NamedTuple):
    """A layer in a step: ``[rows, inputs] -> [rows, outputs]``."""

    rows: int
    inputs: int
    outputs: int
    differentiated: bool = True  # whether its input needs a gradient too

    @property
    def flops(self) -> int:
        """Operations of its two or three products, a multiplication and an addition as two."""
        products = 3 if self.differentiated else 2
        return products * 2 * self.rows * self.inputs * self.outputs


def linears(
    nodes: int, graphs: int, in_channels: int, num_classes: int, *, looked_up: bool = False
) -> list[Linear]:
    """Return the layers of a GIN's step.

    Args:
        nodes: Rows of the layers.
        graphs: Rows of the heads.
        in_channels: Number of node features.
        num_classes: Number of classes.
        looked_up: Whether the features are one-hot and never multiplied, but looked up.
    """
    first = [] if looked_up else [Linear(nodes, in_channels, WIDTH, False)]
    first += [] if looked_up else [Linear(graphs, in_channels, num_classes, False)]
    inner = [Linear(nodes, WIDTH, WIDTH)] * (2 * DEPTH - 1)
    return first + inner + [Linear(graphs, WIDTH, num_classes)] * DEPTH


def step_of(graphs: GraphSet, batch_size: int) -> list[Linear]:
    """Return the layers of an average full step of ours: alike nodes merged, codes looked up."""
    own = features(graphs)
    looked_up = own.dense is None
    nodes = graphs.num_nodes
    if looked_up:
        assert own.codes is not None
        small = merge(graphs.node_ptr, graphs.rowptr, graphs.col, own.codes, DEPTH)
        nodes = len(small.node)
    rows = round(nodes / graphs.num_graphs * batch_size)
    return linears(rows, batch_size, own.width, graphs.num_classes, looked_up=looked_up)


def seconds_of(step: Sequence[Linear], lanes: int, seconds: float) -> float:
    """Return the seconds of the products of one step of all lanes, in the quicker of two ways."""
    works: dict[str, Work] = {
        "lane by lane": partial(_run, [p for _ in range(lanes) for p in _products(step)]),
        "batched": partial(_run, _products(step, lanes)),
    }
    return min(cost.seconds for cost in compare(works, "cpu", seconds).values())


def _products(step: Sequence[Linear], *lanes: int) -> list[Callable[[], Tensor]]:
    """Make the products' operands, of their own for each layer, with an axis of lanes if asked."""
    works: list[Callable[[], Tensor]] = []
    for layer in step:
        x = torch.randn(*lanes, layer.rows, layer.inputs)
        grad = torch.randn(*lanes, layer.rows, layer.outputs)
        weight = torch.randn(*lanes, layer.outputs, layer.inputs)
        pairs = [(x, weight.mT), (grad.mT, x)] + [(grad, weight)] * layer.differentiated
        for left, right in pairs:
            works.append(partial(torch.matmul, left, right, out=torch.matmul(left, right)))
    return works


def _run(works: Sequence[Callable[[], Tensor]]) -> None:
    for work in works:
        work()
