"""The matrix products that are timed alone are those of a step."""

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode
from torch_geometric.data import Batch

from gnn_vpa.graphs import GraphSet, features, load


@pytest.fixture
def mutag(tu_dir: Path) -> GraphSet:
    return load("MUTAG", data_dir=tu_dir)


def test_their_operations_are_those_of_the_peers_step(
    mutag: GraphSet, benchmark_module: Callable[[str], ModuleType]
) -> None:
    peer, products = benchmark_module("peer"), benchmark_module("products")
    batch = Batch.from_data_list(peer.pyg_graphs(mutag)[:64])
    model = peer.GIN(features(mutag).width, mutag.num_classes)
    with FlopCounterMode(display=False) as counter:
        scores = model(batch.x, batch.edge_index, batch.batch, batch.num_graphs)
        cross_entropy(scores, batch.y).backward()
    step = products.linears(batch.num_nodes, 64, features(mutag).width, mutag.num_classes)
    assert sum(layer.flops for layer in step) == counter.get_total_flops()


def test_looking_codes_up_saves_the_products_of_the_features(
    benchmark_module: Callable[[str], ModuleType],
) -> None:
    products = benchmark_module("products")
    multiplied = products.linears(100, 8, 7, 2)
    looked_up = products.linears(100, 8, 7, 2, looked_up=True)
    saved = sum(s.flops for s in multiplied) - sum(s.flops for s in looked_up)
    assert saved == 2 * 2 * 7 * (100 * 64 + 8 * 2)  # forward and weight, each of both layers


def test_merged_nodes_are_not_multiplied_twice(
    mutag: GraphSet, benchmark_module: Callable[[str], ModuleType]
) -> None:
    products = benchmark_module("products")
    rows = max(layer.rows for layer in products.step_of(mutag, batch_size=64))
    whole = mutag.num_nodes / mutag.num_graphs * 64
    assert 0.5 * whole < rows < 0.9 * whole


@pytest.mark.parametrize("lanes", [(), (3,)], ids=["one", "three"])
def test_what_runs_has_as_many_operations(
    benchmark_module: Callable[[str], ModuleType], lanes: tuple[int, ...]
) -> None:
    products = benchmark_module("products")
    step = products.linears(100, 8, 7, 2)
    with FlopCounterMode(display=False) as counter:
        works = products._products(step, *lanes)
    count = lanes[0] if lanes else 1
    assert counter.get_total_flops() == count * sum(layer.flops for layer in step)
    assert all(torch.isfinite(work()).all() for work in works)
