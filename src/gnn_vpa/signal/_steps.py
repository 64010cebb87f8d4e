"""The paper's models as theory sees them: products with random weights, and what they mix."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from ..nn import SGC, Model, with_self_loops
from ..nn.internal import MLPHead, TermKind
from ..ops import Graph, aggregate
from ..ops.internal import from_sources, from_targets, softmax
from .expectation import Mixed, Mixing, Variances, aggregated, unmixed, weighted_sum


class Term(NamedTuple):
    """``W mix(x)``, one of those that a step adds."""

    weight: Tensor  # [out, in]
    mixing: Mixing


class Step(NamedTuple):
    """A layer up to its activation: ``z = sum_t W_t mix_t(x) + b``, and maybe a residual.

    Attributes:
        module: What computes it: ``x`` is its first argument.
        terms: The products.
        bias: The bias.
        keep: The factor of the step before in a residual.
        renew: The factor of this step in a residual.
        normalised: Whether norms follow before the activation.
        reads: Whether it reads the nodes out: ``x`` is then what its mixing makes of them.
    """

    module: nn.Module
    terms: list[Term]
    bias: Tensor | None
    keep: float = 0.0
    renew: float = 1.0
    normalised: bool = False
    reads: bool = False

    def expect(self, v: Variances, x: Tensor, correlated: bool) -> Mixed:
        """Return ``E z^2 = sum_t |W_t|^2 v_t + b^2``, ``|W|^2`` a row's mean sum of squares."""
        mixed = [term.mixing(v, x, correlated) for term in self.terms]
        total = torch.zeros(1, 1).to(v)
        for term, (variances, _) in zip(self.terms, mixed, strict=True):
            total = total + term.weight.double().square().sum(1).mean() * variances
        if self.bias is not None:
            total = total + self.bias.double().square().mean()
        return Mixed(total, mixed[0].rho)


def steps_of(model: Model, graph: Graph, readout: Graph) -> Iterator[Step]:
    """Yield the steps of a model, in the order in which they run."""
    for number, layer in enumerate(model.terms()):
        terms = [
            Term(weight, _mixing(kind, model, layer.module, graph, rectified=number > 0))
            for weight, kind in layer.products
        ]
        yield Step(layer.module, terms, layer.bias, layer.keep, layer.renew, layer.normalised)
    if isinstance(model.head, MLPHead) and not model.terms()[-1].normalised:
        last, aggr = model.head.lin1, model.aggr
        mixing = aggregated(readout, "sum" if aggr == "default" else aggr, rectified=True)
        yield Step(last, [Term(last.weight, mixing)], last.bias, reads=True)


def _mixing(
    kind: TermKind, model: Model, module: nn.Module, graph: Graph, rectified: bool
) -> Mixing:
    match kind:
        case "neighbours":
            return aggregated(graph, model.aggr, rectified=rectified)
        case "with_self":
            return aggregated(graph, model.aggr, rectified=rectified, own=True)
        case "self":
            return unmixed
        case "attention":
            assert model.exponent is not None
            return _attention(module, with_self_loops(graph).graph, model.exponent)
        case "propagation":
            assert isinstance(model, SGC)
            return _hops(model, graph)


def _attention(conv: Any, graph: Graph, exponent: float) -> Mixing:
    """Expect a sum with the attention's own coefficients, taken as constants: Lemma 3."""

    def mixing(v: Variances, x: Tensor, correlated: bool) -> Mixed:
        sent, received = (conv.lin(x) @ att.flatten() for att in (conv.att_src, conv.att_dst))
        logits = from_sources(sent.unsqueeze(1), graph) + from_targets(received.unsqueeze(1), graph)
        share = softmax(leaky_relu(logits.squeeze(1), 0.2), graph, None, x).double()
        total = aggregate(torch.ones_like(v), graph, "sum", share.square())
        share = share * from_targets(total, graph).pow(-exponent).squeeze(1)
        return weighted_sum(graph, torch.ones(graph.num_targets, 1).to(v), edges=share)(
            v, x, correlated
        )

    return mixing


def _hops(model: SGC, graph: Graph) -> Mixing:
    """Expect ``P^K x``: K weighted sums with the coefficients ``(d_i d_j)^(-p)``."""
    looped = with_self_loops(graph).graph
    scale = looped.scale(model.exponent, torch.float64)
    hop = weighted_sum(looped, scale, weight=scale)

    def mixing(v: Variances, x: Tensor, correlated: bool) -> Mixed:
        mixed = hop(v, x, correlated)
        for done in range(1, model.K):
            so_far = SGC(x.shape[1], 1, model.aggr, K=done).to(x).propagate(x, graph)
            mixed = hop(mixed.variances, so_far, correlated)
        return mixed

    return mixing
