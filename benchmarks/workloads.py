"""The graphs that are measured: a random one, and real batches."""

from dataclasses import dataclass

import torch
from torch import Tensor

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.graphs import load


@dataclass(frozen=True)
class Workload:
    """A graph as PyG holds it."""

    name: str
    edge_index: Tensor
    num_nodes: int


def random_graph(num_nodes: int, num_edges: int) -> Workload:
    draw = torch.Generator().manual_seed(0)
    edge_index = torch.randint(num_nodes, (2, num_edges), generator=draw)
    return Workload(f"random {num_nodes:,} x {num_edges:,}", edge_index, num_nodes)


def real_batch(name: str, num_graphs: int = 64) -> Workload | None:
    """Return a random batch of a data set, as PyG's loader would, or None where it is absent."""
    from torch_geometric.data import Batch

    try:
        graphs = load(name)
    except GnnVpaError as error:
        print(f"{name} left out: {error}")
        return None
    chosen = torch.randperm(graphs.num_graphs, generator=torch.Generator().manual_seed(0))
    batch = Batch.from_data_list([graphs.graph(int(i)) for i in chosen[:num_graphs]])
    label = f"{name}, {num_graphs} graphs"
    return Workload(label, batch.edge_index, batch.num_nodes)


def standard(device: str) -> list[Workload]:
    real = [real_batch("COLLAB"), real_batch("REDDIT-BINARY")]
    small = [random_graph(20_000, 400_000), *(work for work in real if work is not None)]
    # A GPU is done with those before Python has asked for the next: one that keeps it busy.
    return [*small, random_graph(500_000, 10_000_000)] if device == "cuda" else small
