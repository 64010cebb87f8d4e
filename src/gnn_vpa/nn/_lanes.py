"""Lanes: many models side by side, each with its own weights and its own block of rows.

``torch.func.stack_module_state`` puts a lane axis in front of every parameter. Rows have no such
axis: lane ``l`` of ``L`` owns the ``S`` rows from ``l * S`` on, so that one graph holds the edges
of all lanes. A layer sees from its parameters' number of dimensions whether there are lanes.
"""

from torch import Tensor

from ..errors import UsageError


def by_lane(x: Tensor, lanes: int) -> Tensor:
    """Give every lane its rows: ``[L * S, F] -> [L, S, F]``."""
    if x.shape[0] % lanes != 0:
        raise UsageError(
            f"x: {x.shape[0]} rows do not divide into {lanes} lanes. Give every lane as many "
            "slots, and those that hold no node neither edges nor a graph, and 0 in nodes."
        )
    return x.view(lanes, x.shape[0] // lanes, *x.shape[1:])


def add_bias(x: Tensor, bias: Tensor) -> Tensor:
    """Add ``bias``, ``[F]`` or ``[L, F]``, to the rows of ``x``."""
    if bias.dim() == 1:
        return x + bias
    return (by_lane(x, bias.shape[0]) + bias.unsqueeze(1)).flatten(0, 1)
