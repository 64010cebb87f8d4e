"""The paper's models as theory sees them: products with random weights, and what they mix."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import leaky_relu

from ..nn import SGC, Model, with_self_loops
from ..nn._heads import MLPHead
from ..nn.deep import DeepGCN
from ..ops import Graph, aggregate
from ..ops._attend import softmax
from ..ops._edges import from_sources, from_targets
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
    match model.mixes:
        case "root_and_neighbours":
            yield from _convolutions(model, graph)
        case "with_self":
            for number, conv in enumerate(_layers(model)):
                mixing = aggregated(graph, model.aggr, rectified=number > 0, own=True)
                lin = conv.nn[0]
                # The norm behind it takes the bias out again.
                yield Step(lin, [Term(lin.weight, mixing)], None, normalised=True)
        case "attention":
            looped = with_self_loops(graph).graph
            for conv in _layers(model):
                mixing = _attention(conv, looped, _exponent(model))
                yield Step(conv, [Term(conv.lin.weight, mixing)], conv.bias)
        case "propagation":
            assert isinstance(model, SGC)
            lin = model.conv.lin
            yield Step(lin, [Term(lin.weight, _hops(model, graph))], lin.bias)
    if isinstance(model.head, MLPHead) and model.mixes != "with_self":
        last, aggr = model.head.lin1, model.aggr
        mixing = aggregated(readout, "sum" if aggr == "default" else aggr, rectified=True)
        yield Step(last, [Term(last.weight, mixing)], last.bias, reads=True)


def _layers(model: Model) -> Any:
    """Return the layers; their classes are private to the models."""
    return model.convs


def _exponent(model: Model) -> float:
    assert model.exponent is not None
    return model.exponent


def _convolutions(model: Model, graph: Graph) -> Iterator[Step]:
    for number, conv in enumerate(_layers(model)):
        around = aggregated(graph, model.aggr, rectified=number > 0)
        terms = [Term(conv.lin_rel.weight, around), Term(conv.lin_root.weight, unmixed)]
        step = Step(conv, terms, conv.lin_rel.bias)
        if number > 0 and isinstance(model, DeepGCN):
            step = step._replace(keep=model.keep.item(), renew=model.renew.item())
        yield step


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
