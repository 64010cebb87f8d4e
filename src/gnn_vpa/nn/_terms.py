"""What a layer adds up, as theory needs to know it."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from torch import Tensor, nn

#: What meets a product: the aggregated neighbours, the node itself, the sum of both, neighbours
#: weighted by attention, or neighbours after a propagation without weights.
TermKind = Literal["neighbours", "self", "with_self", "attention", "propagation"]


class LayerTerms(NamedTuple):
    """A layer up to its activation: ``z = keep * z_before + renew * (sum_t W_t mix_t(x) + b)``.

    Attributes:
        module: What computes ``sum_t W_t mix_t(x) + b``: ``x`` is its first argument.
        products: The weights ``W_t``, ``[out, in]``, each with what it meets.
        bias: The bias ``b``; None where there is none, or a norm takes it out again.
        normalised: Whether norms follow before the activation.
        keep: The factor of the layer before in a residual.
        renew: The factor of this layer in a residual.
    """

    module: nn.Module
    products: Sequence[tuple[Tensor, TermKind]]
    bias: Tensor | None
    normalised: bool = False
    keep: float = 0.0
    renew: float = 1.0
