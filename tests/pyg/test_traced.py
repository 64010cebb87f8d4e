"""What a converted model is to a compiler on the CPU."""

from typing import Any
from unittest.mock import patch

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch_geometric.nn import GAT, GIN, GraphConv, GraphSAGE

import gnn_vpa
from gnn_vpa.ops import aggregate
from gnn_vpa.pyg import _traced
from gnn_vpa.pyg._traced import Traced


class Programs:
    """A compiler that keeps the programs it is given, forward and backward, and runs them."""

    def __init__(self) -> None:
        self.code: list[str] = []
        self.backend = aot_autograd(
            fw_compiler=self._keep, partition_fn=min_cut_rematerialization_partition
        )

    def _keep(self, program: torch.fx.GraphModule, _: object) -> Any:
        self.code.append(program.code)
        return make_boxed_func(program)


def compiled(model: nn.Module, threads: int, *inputs: Tensor) -> list[str]:
    """Compare a compiled model with itself; return its programs."""
    programs = Programs()
    torch.compiler.reset()
    weights = list(model.parameters())
    expected = model(*inputs)
    with patch("torch.get_num_threads", return_value=threads):
        found = torch.compile(model, fullgraph=True, dynamic=True, backend=programs.backend)(
            *inputs
        )
        torch.testing.assert_close(found, expected)
        grads = torch.autograd.grad(found.square().sum(), weights)
    torch.testing.assert_close(grads, torch.autograd.grad(expected.square().sum(), weights))
    return programs.code


@pytest.mark.parametrize("threads", [1, 2])
def test_edges_are_grouped_once_and_what_is_summed_is_kept(
    threads: int, generator: torch.Generator
) -> None:
    torch.manual_seed(0)
    model = gnn_vpa.convert(GIN(4, 8, 3))[0].double()
    x = torch.randn(9, 4, dtype=torch.float64, generator=generator)
    edges = torch.randint(9, (2, 30), generator=generator)
    forward, backward = compiled(model, threads, x, edges)
    assert forward.count("gnn_vpa.weighted_rows") == 1
    assert "weighted_rows" not in backward
    assert backward.count("gnn_vpa.sum_of_rows") == 2  # the first layer's input takes no gradient
    assert "aten.le" not in forward  # no mask of a ReLU is written


@pytest.mark.parametrize(("threads", "fuses"), [(1, True), (2, False)])
def test_with_one_thread_sums_over_few_edges_are_fused(
    threads: int, fuses: bool, generator: torch.Generator
) -> None:
    torch.manual_seed(0)
    model = gnn_vpa.convert(GraphSAGE(4, 8, 2))[0].double()
    x = torch.randn(9, 4, dtype=torch.float64, generator=generator)
    edges = torch.randint(9, (2, 30), generator=generator)
    forward, _ = compiled(model, threads, x, edges)
    assert ("weighted_rows" in forward) != fuses
    assert forward.count("gnn_vpa.checked") == fuses


@pytest.mark.parametrize("most", [0, 1 << 20], ids=["large", "small"])
def test_what_has_no_call_of_its_own_is_the_same(
    most: int, generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_traced, "_MOST", most)
    edges = torch.randint(9, (2, 30), generator=generator)
    x = torch.randn(9, 3, 4, dtype=torch.float64, generator=generator)
    weight = torch.rand(30, dtype=torch.float64, generator=generator, requires_grad=True)
    alpha = torch.rand(30, 3, dtype=torch.float64, generator=generator, requires_grad=True)
    along = Traced(edges, 9, 9)
    pairs = [
        (along.sum(x, 1.0, weight), aggregate(x, edges, "mean", weight), weight),
        (along.attend(x, alpha), aggregate(x, edges, "vpa", alpha, normalizer_grad=False), alpha),
    ]
    for found, expected, by in pairs:
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(
            torch.autograd.grad(found.square().sum(), by),
            torch.autograd.grad(expected.square().sum(), by),
        )


def test_weights_that_are_constants_and_those_that_learn(generator: torch.Generator) -> None:
    torch.manual_seed(0)
    conv = gnn_vpa.convert(GraphConv(4, 8, aggr="mean"))[0].double()
    x = torch.randn(9, 4, dtype=torch.float64, generator=generator)
    edges = torch.randint(9, (2, 30), generator=generator)
    weight = torch.rand(30, dtype=torch.float64, generator=generator)
    compiled(conv, 2, x, edges, weight)
    compiled(conv, 2, x, edges, weight.requires_grad_())


def test_attention_of_all_layers_is_grouped_once(generator: torch.Generator) -> None:
    torch.manual_seed(0)
    model = gnn_vpa.convert(GAT(4, 8, 3, heads=2))[0].double()
    x = torch.randn(9, 4, dtype=torch.float64, generator=generator)
    edges = torch.randint(9, (2, 30), generator=generator)
    forward, backward = compiled(model, 2, x, edges)
    assert forward.count("gnn_vpa.ways") == 1
    assert forward.count("gnn_vpa.attend_by_parts.") == 3
    assert backward.count("gnn_vpa.attend_by_parts_gradient.") == 3


@pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # PyTorch of itself
# … and of modules that it has imported for a trace before this one.
@pytest.mark.filterwarnings("ignore:While compiling, we found certain side effects:UserWarning")
def test_a_program_to_keep_is_exported(generator: torch.Generator) -> None:
    torch.manual_seed(0)
    model = gnn_vpa.convert(GIN(4, 8, 2))[0].double()
    x = torch.randn(9, 4, dtype=torch.float64, generator=generator)
    edges = torch.randint(9, (2, 30), generator=generator)
    with patch("torch.get_num_threads", return_value=2):
        program = torch.export.export(model, (x, edges), strict=True).run_decompositions()
    torch.testing.assert_close(program.module()(x, edges), model(x, edges))
