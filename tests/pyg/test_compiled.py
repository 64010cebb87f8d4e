"""Converted models under torch.compile: one graph, for batches of any size."""

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters
from torch_geometric.nn import GAT, GCN, GIN, GraphSAGE

from gnn_vpa import UsageError, convert
from gnn_vpa.pyg import _traced

SIZES = ((11, 30), (19, 50), (7, 23), (17, 90))


MODELS = pytest.mark.parametrize(
    "model", [GIN, GraphSAGE, GCN, GAT], ids=lambda model: model.__name__
)
on_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")


class Programs(list[str]):
    """A compiler that keeps the programs it is given, and runs them as they are."""

    def __call__(self, program: torch.fx.GraphModule, _: object) -> object:
        self.append(program.code)
        return program


def compare(
    layers: nn.Module, backend: Programs | str, generator: torch.Generator, device: str = "cpu"
) -> Callable[[Tensor, Tensor], Tensor]:
    """Compare a compiled model with itself on batches of several sizes, and return it."""
    torch.compiler.reset()
    counters.clear()
    compiled = torch.compile(layers.to(device), fullgraph=True, dynamic=True, backend=backend)
    for nodes, edges in SIZES:
        x = torch.randn(nodes, 8, generator=generator, dtype=torch.float64).to(device)
        edge_index = torch.randint(nodes, (2, edges), generator=generator)  # with self-loops
        edge_index = edge_index.to(device)
        found, expected = compiled(x, edge_index), layers(x, edge_index)
        torch.testing.assert_close(found, expected)
        weights = list(layers.parameters())
        torch.testing.assert_close(
            torch.autograd.grad(found.square().sum(), weights),
            torch.autograd.grad(expected.square().sum(), weights),
        )
    assert not counters["graph_break"]
    assert counters["stats"]["unique_graphs"] == 1
    return compiled


def converted(model: type[nn.Module], num_layers: int = 1) -> nn.Module:
    torch.manual_seed(0)
    return convert(model(8, 8, num_layers=num_layers).double())[0]


@MODELS
def test_no_break_and_no_compilation_for_each_size(
    model: type[nn.Module], generator: torch.Generator
) -> None:
    programs = Programs()
    compiled = compare(converted(model), programs, generator)
    assert "gnn_vpa.spmm" not in programs[0]  # but calls that are made for a compiler
    edge_index = torch.randint(7, (2, 23), generator=generator)
    edge_index[0, 3] = -1  # a compiler would take it for the last node
    with pytest.raises(UsageError, match="source index -1"):
        compiled(torch.randn(7, 8, generator=generator, dtype=torch.float64), edge_index)
    assert len(programs) == 1


@pytest.mark.gpu
@on_gpu
@MODELS
def test_on_a_gpu_too(model: type[nn.Module], generator: torch.Generator) -> None:
    compare(converted(model, num_layers=2), "inductor", generator, "cuda")


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=[pytest.mark.gpu, on_gpu])])
@MODELS
def test_a_gpu_compiles_a_gather_and_an_addition(
    model: type[nn.Module],
    device: str,
    generator: torch.Generator,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if device == "cpu":  # in the place of a GPU
        monkeypatch.setattr(_traced, "_CPU", "nowhere")
        monkeypatch.setattr(_traced, "_GPU", "cpu")
    programs = Programs()
    compare(converted(model), programs, generator, device)
    assert ".gather(" in programs[0]
    assert ".scatter_add(" in programs[0]
    assert "gnn_vpa." not in programs[0]


@pytest.mark.gpu
@on_gpu
@pytest.mark.parametrize("end", ["source", "target"])
@pytest.mark.parametrize("index", [-1, 7])
def test_on_a_gpu_an_index_out_of_range_ends_the_program(end: str, index: int) -> None:
    program = f"""
import torch, gnn_vpa
from torch_geometric.nn import GraphSAGE
model = torch.compile(gnn_vpa.convert(GraphSAGE(8, 8, 1))[0].cuda(), fullgraph=True, dynamic=True)
edges = torch.arange(14).view(2, 7) % 7
edges[{["source", "target"].index(end)}, 3] = {index}
out = model(torch.randn(7, 8, device="cuda"), edges.cuda())
torch.cuda.synchronize()
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "index out of bounds" in done.stderr
