"""Converted models under torch.compile: one graph, for batches of any size."""

import re

import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE

from gnn_vpa import UsageError, convert
from gnn_vpa.pyg import _traced

SIZES = ((11, 30), (19, 50), (7, 23), (17, 90))


@pytest.mark.parametrize("model", [GIN, GraphSAGE, GCN, GAT], ids=lambda model: model.__name__)
def test_no_break_and_no_compilation_for_each_size(
    model: type[nn.Module], generator: torch.Generator
) -> None:
    torch.manual_seed(0)
    layers, _ = convert(model(8, 8, num_layers=1).double())
    programs: list[str] = []

    def backend(program: torch.fx.GraphModule, _: object) -> object:
        programs.append(program.code)
        return program

    torch.compiler.reset()
    counters.clear()
    compiled = torch.compile(layers, fullgraph=True, dynamic=True, backend=backend)
    for nodes, edges in SIZES:
        x = torch.randn(nodes, 8, generator=generator, dtype=torch.float64)
        edge_index = torch.randint(nodes, (2, edges), generator=generator)  # with self-loops
        found, expected = compiled(x, edge_index), layers(x, edge_index)
        torch.testing.assert_close(found, expected)
        weights = list(layers.parameters())
        torch.testing.assert_close(
            torch.autograd.grad(found.square().sum(), weights),
            torch.autograd.grad(expected.square().sum(), weights),
        )
        edge_index[0, 3] = -1  # a compiler would take it for the last node
        with pytest.raises(UsageError, match="source index -1"):
            compiled(x, edge_index)
    assert not counters["graph_break"]
    assert len(programs) == 1
    assert "gnn_vpa.spmm" not in programs[0]  # but calls that are made for a compiler


def _compare(layers: nn.Module, device: str, generator: torch.Generator) -> None:
    """Compare a compiled model with itself on batches of several sizes: one program, no break."""
    torch.compiler.reset()
    counters.clear()
    compiled = torch.compile(layers.to(device), fullgraph=True, dynamic=True)
    for nodes, edges in SIZES:
        x = torch.randn(nodes, 8, generator=generator, dtype=torch.float64).to(device)
        edge_index = torch.randint(nodes, (2, edges), generator=generator).to(device)
        found, expected = compiled(x, edge_index), layers(x, edge_index)
        torch.testing.assert_close(found, expected)
        weights = list(layers.parameters())
        torch.testing.assert_close(
            torch.autograd.grad(found.square().sum(), weights),
            torch.autograd.grad(expected.square().sum(), weights),
        )
    assert not counters["graph_break"]
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
@pytest.mark.parametrize("model", [GIN, GraphSAGE, GCN, GAT], ids=lambda model: model.__name__)
def test_on_a_gpu_too(model: type[nn.Module], generator: torch.Generator) -> None:
    torch.manual_seed(0)
    _compare(convert(model(8, 8, num_layers=2).double())[0], "cuda", generator)


@pytest.mark.parametrize("model", [GIN, GCN, GAT], ids=lambda model: model.__name__)
def test_what_a_gpu_compiles_says_the_same_on_the_cpu(
    model: type[nn.Module], generator: torch.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_traced, "_CPU", "nowhere")
    monkeypatch.setattr(_traced, "_GPU", "cpu")
    monkeypatch.setattr(_traced, "may_be_small", lambda *_: True)
    programs: list[str] = []

    def backend(program: torch.fx.GraphModule, _: object) -> object:
        programs.append(program.code)
        return program

    torch.manual_seed(0)
    layers, _ = convert(model(8, 8, num_layers=1).double())
    torch.compiler.reset()
    compiled = torch.compile(layers, fullgraph=True, dynamic=True, backend=backend)
    x = torch.randn(7, 8, generator=generator, dtype=torch.float64)
    edge_index = torch.randint(7, (2, 23), generator=generator)
    found, expected = compiled(x, edge_index), layers(x, edge_index)
    torch.testing.assert_close(found, expected)
    weights = list(layers.parameters())
    torch.testing.assert_close(
        torch.autograd.grad(found.square().sum(), weights),
        torch.autograd.grad(expected.square().sum(), weights),
    )
    (program,) = programs
    assert "index_add_" in program
    assert set(re.findall(r"gnn_vpa\.(\w+)", program)) == {"checked"}
