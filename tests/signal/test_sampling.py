import torch
from torch_geometric.data import Batch, Data

from gnn_vpa.graphs import GraphSet
from gnn_vpa.signal import sample


def _data() -> GraphSet:
    draw = torch.Generator().manual_seed(0)
    graphs = [
        Data(
            x=torch.full((n, 1), float(n)),
            edge_index=torch.randint(n, (2, 2 * n), generator=draw),
            y=n % 2,
        )
        for n in range(3, 13)
    ]
    return GraphSet.from_pyg(graphs)


def test_all_graphs_are_those_of_pyg() -> None:
    data = _data()
    x, graph, readout = sample(data, 99)
    whole = Batch.from_data_list(data.to_pyg())
    assert torch.equal(x, whole.x)
    assert torch.equal(readout.edge_targets.long(), whole.batch)
    assert torch.equal(graph.degree.long(), whole.edge_index[1].bincount(minlength=len(x)))


def test_some_are_chosen_by_the_seed() -> None:
    data = _data()
    first, again, other = (sample(data, 4, seed=seed) for seed in (1, 1, 2))
    assert first.readout.num_targets == 4
    assert torch.equal(first.x, again.x)
    assert not torch.equal(first.x, other.x)
    sizes = first.readout.degree.tolist()
    assert first.x.flatten().tolist() == [float(n) for n in sizes for _ in range(n)]
