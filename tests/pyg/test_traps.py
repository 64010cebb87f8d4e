"""Traps of PyTorch Geometric, and that none of them is ours."""

import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GCNConv, GINConv, GraphConv
from torch_geometric.nn.resolver import aggregation_resolver
from torch_geometric.utils import to_torch_csr_tensor

from gnn_vpa import pyg
from gnn_vpa.pyg import VPAggregation, VPGATConv, VPGCNConv, convert, register

# Both run with PyG's own class, and with ours; what fails is printed.
PROGRAM = """
import torch
import torch_geometric.nn as gnn
{prepare}

def attempt(name, function):
    try:
        function()
    except Exception as error:
        print(name, error)

class {parent.__name__}({where}.{parent.__name__}):
    pass

def first_instance():
    x, edge_index = torch.ones(2, 4), torch.tensor([[0], [1]])
    adj_t = torch.sparse_coo_tensor(edge_index.flip(0), torch.ones(1), (2, 2)).coalesce()
    for make in (gnn.GraphConv, lambda i, o, **kw: gnn.GINConv(torch.nn.Linear(i, o), **kw)):
        make(4, 4, aggr={aggr})(x, edge_index)
        make(4, 4)(x, adj_t)

def same_name():
    {parent.__name__}(4, 4)(torch.ones(2, 4), torch.tensor([[0], [1]]))

attempt("first instance:", first_instance)
attempt("same name:", same_name)
"""


# Imports PyG once, and runs each program in a fork that knows of no other.
FORKS = """
import os, runpy, sys
import torch_geometric.nn
for program in sys.argv[1:]:
    child = os.fork()
    if child == 0:
        sys.stdout = open(program + ".said", "w")
        runpy.run_path(program)
        sys.stdout.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, program
"""


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What fails in a fresh process with PyG alone, and with ours."""
    variants = {
        "PyG": {"prepare": "", "where": "gnn", "parent": GATConv, "aggr": "'variance_preserving'"},
        "ours": {
            "prepare": "from gnn_vpa import pyg",
            "where": "pyg",
            "parent": VPGATConv,
            "aggr": "pyg.VPAggregation()",
        },
    }
    folder = tmp_path_factory.mktemp("trap")
    paths = {name: folder / f"{name}.py" for name in variants}  # PyG reads the source of classes
    for name, parts in variants.items():
        paths[name].write_text(PROGRAM.format(**parts))
    command = [sys.executable, "-c", FORKS, *map(str, paths.values())]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {name: Path(f"{path}.said").read_text() for name, path in paths.items()}


@pytest.mark.parametrize(
    ("trap", "message"),
    [
        ("first instance", "'message_and_aggregate' not implemented"),
        ("same name", "unexpected keyword argument"),
    ],
)
def test_a_layer_breaks_no_other(failures: dict[str, str], trap: str, message: str) -> None:
    assert trap not in failures["ours"], failures["ours"]
    if trap not in failures["PyG"]:
        pytest.skip("this version of PyG has mended its half")
    assert message in failures["PyG"]


def test_parallel_edges_count_in_every_format() -> None:
    edge_index = torch.tensor([[0, 0, 1], [1, 1, 0]])  # see test_propagate for all formats
    x, layer = torch.tensor([[1.0], [5.0]]), convert(GraphConv(1, 1))[0]
    coo = torch.sparse_coo_tensor(edge_index.flip(0), torch.ones(3), (2, 2))
    csr = torch.sparse_csr_tensor(
        torch.tensor([0, 1, 3]), torch.tensor([1, 0, 0]), torch.ones(3), (2, 2)
    )
    for adj_t in (coo, csr):
        torch.testing.assert_close(layer(x, adj_t), layer(x, edge_index))
    assert to_torch_csr_tensor(edge_index).values().numel() == 2, "PyG keeps parallel edges now"


@pytest.fixture
def star() -> tuple[Tensor, Tensor]:
    """A hub with 100 leaves, whose features are equal, so that attention is uniform."""
    leaves = torch.arange(1, 101)
    edge_index = torch.stack([leaves, torch.zeros_like(leaves)])
    return torch.randn(1, 4096).expand(101, -1), edge_index


def test_vpa_on_top_of_attention_is_not_the_method_and_ours_is(
    star: tuple[Tensor, Tensor],
) -> None:
    x, edge_index = star
    plain = GATConv(4096, 1, add_self_loops=False, bias=False)
    on_top = GATConv(4096, 1, add_self_loops=False, bias=False, aggr="variance_preserving")
    ours = VPGATConv(4096, 1, add_self_loops=False, bias=False)
    for layer in (on_top, ours):
        layer.load_state_dict(plain.state_dict())
    mean = plain(x, edge_index)[0]
    torch.testing.assert_close(on_top(x, edge_index)[0], mean / 10)  # twice too small
    torch.testing.assert_close(ours(x, edge_index)[0], mean * 10)  # sum / sqrt(100)
    mended, _ = convert(on_top)
    torch.testing.assert_close(mended(x, edge_index)[0], mean * 10)


def test_vpa_on_top_of_a_degree_normalisation_is_mended(star: tuple[Tensor, Tensor]) -> None:
    on_top = GCNConv(4096, 1, aggr="variance_preserving")
    ours = VPGCNConv(4096, 1)
    ours.load_state_dict(on_top.state_dict())
    mended, report = convert(on_top)
    assert [entry.after for entry in report] == ["VPGCNConv"]
    torch.testing.assert_close(mended(*star), ours(*star))


def test_the_name_resolves_and_weights_are_not_ignored() -> None:
    register()
    assert isinstance(aggregation_resolver("vpa"), VPAggregation)
    x, edge_index = torch.ones(3, 1), torch.tensor([[1, 2], [0, 0]])
    weight = torch.tensor([3.0, 4.0])
    theirs = GraphConv(1, 1, aggr="variance_preserving")
    ours, _ = convert(theirs)
    with torch.no_grad():
        for parameter in (*theirs.parameters(), *ours.parameters()):
            parameter.fill_(1)
    assert theirs(x, edge_index, weight)[0].item() == pytest.approx(7 / 2**0.5 + 2)
    assert ours(x, edge_index, weight)[0].item() == pytest.approx(7 / 5 + 2)


def test_a_variant_never_has_the_name_of_its_parent() -> None:
    converted, _ = convert(GINConv(nn.Linear(2, 2)))
    assert type(converted).__name__ == "VPGINConv"
    assert type(converted).propagate.__module__ == pyg._propagate.__name__
