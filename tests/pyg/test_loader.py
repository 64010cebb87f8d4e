"""Batches of the fast ``DataLoader``: PyG's, entry by entry."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import BatchSampler, SequentialSampler
from torch_geometric import EdgeIndex, loader
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset

import gnn_vpa
from gnn_vpa.graphs import load
from gnn_vpa.pyg.loader import _batch

Make = Callable[[int], Data]


def graph(seed: int, **others: Any) -> Data:
    """Return a graph of up to five nodes, some without edges, one without nodes."""
    draw = torch.Generator().manual_seed(seed)
    nodes = seed % 6
    count = int(torch.randint(9, (1,), generator=draw)) if nodes > 0 and seed % 4 > 0 else 0
    edges = torch.randint(max(nodes, 1), (2, count), generator=draw)
    x = torch.randn(nodes, 3, generator=draw)
    return Data(x=x, edge_index=edges, y=torch.tensor([seed % 2]), **others)


def of_edges(seed: int) -> Data:
    """Return a graph with attributes of edges, of nodes and of itself."""
    made = graph(seed, name=f"molecule {seed}", charge=seed, mass=0.5 * seed)
    made.edge_attr = torch.randn(made.num_edges, 2)
    made.edge_weight = torch.rand(made.num_edges, dtype=torch.float64)
    made.pos = torch.randn(made.num_nodes, 2).half()
    made.mask = torch.rand(made.num_nodes) > 0.5
    made.energy = torch.tensor(float(seed))
    made.edge_label_index = made.edge_index[:, :2]
    made.center_index = torch.tensor(seed)  # one node
    made.image = torch.randn(1, 4, 4)
    return made


def of_numbers(seed: int) -> Data:
    """Return a graph without features, in small integers, and its faces."""
    made = graph(seed, num_nodes=seed % 6)
    made.edge_index = made.edge_index.int()
    made.face = made.edge_index[:1].repeat(3, 1).long()
    del made.x
    return made


MADE: dict[str, Make] = {"plain": graph, "edges": of_edges, "numbers": of_numbers}


def assert_same(ours: Any, theirs: Any) -> None:
    """Compare batches: types, the order of attributes, values, and the parts they are made of."""
    assert type(ours) is type(theirs)
    assert list(ours.keys()) == list(theirs.keys())
    mine = ours.to_dict()
    for key, right in theirs.to_dict().items():
        assert_equal(mine[key], right)
    assert ours.num_graphs == theirs.num_graphs
    assert ours.num_nodes == theirs.num_nodes
    for name in ("_slice_dict", "_inc_dict"):
        mine, right = getattr(ours, name), getattr(theirs, name)
        assert mine.keys() == right.keys()
        for key in right:
            assert_equal(mine[key], right[key])
    for one, other in zip(ours.to_data_list(), theirs.to_data_list(), strict=True):
        part = one.to_dict()
        assert part.keys() == other.to_dict().keys()
        for key, right in other.to_dict().items():
            assert_equal(part[key], right)


def assert_equal(ours: Any, theirs: Any) -> None:
    """Compare two values of attributes."""
    assert type(ours) is type(theirs)
    if isinstance(theirs, Tensor):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)
        assert ours.is_contiguous() == theirs.is_contiguous()
    elif isinstance(theirs, list):
        for mine, right in zip(ours, theirs, strict=True):
            assert_equal(mine, right)
    else:
        assert ours == theirs


def batches(data: Any, **options: Any) -> list[tuple[Any, Any]]:
    """Return batches of ours and of PyG's, in the same order."""
    pairs = []
    for kind in (gnn_vpa.DataLoader, loader.DataLoader):
        draw = torch.Generator().manual_seed(0)
        pairs.append(list(kind(data, shuffle=True, generator=draw, **options)))
    return list(zip(*pairs, strict=True))


@pytest.mark.parametrize("make", MADE)
@pytest.mark.parametrize("batch_size", [1, 4, 13])
def test_batches_are_those_of_pyg(make: str, batch_size: int) -> None:
    data = [MADE[make](seed) for seed in range(13)]
    assert _batch(data, (), ()) is not None  # nothing here is left to PyG
    for ours, theirs in batches(data, batch_size=batch_size):
        assert_same(ours, theirs)


@pytest.mark.parametrize("make", MADE)
def test_attributes_are_followed_and_excluded_as_by_pyg(make: str) -> None:
    data = [MADE[make](seed) for seed in range(13)]
    keys = list(data[0].keys())
    for key in keys:
        if key != "num_nodes":
            for ours, theirs in batches(data, batch_size=5, follow_batch=[key]):
                assert_same(ours, theirs)
        for ours, theirs in batches(data, batch_size=5, exclude_keys=[key]):
            assert list(ours.keys()) == list(theirs.keys())
            for kept in theirs.keys():  # noqa: SIM118 (a batch of PyG is no dictionary)
                assert_equal(ours[kept], theirs[kept])


def test_real_graphs_and_their_order_are_those_of_pyg() -> None:
    data = load("MUTAG").to_pyg()
    pairs = batches(data, batch_size=64)
    assert len(pairs) == 3
    for ours, theirs in pairs:
        assert_same(ours, theirs)


class Shifted(Data):
    """A graph that says how its attributes are batched."""

    def __inc__(self, key: str, value: Any, *args: Any, **kwargs: Any) -> Any:
        return 100 if key == "y" else super().__inc__(key, value, *args, **kwargs)


def shifted(seed: int) -> Data:
    return Shifted(**graph(seed).to_dict())


def of_another(seed: int) -> HeteroData:
    made = HeteroData()
    made["a"].x = torch.ones(seed + 1, 2)
    made["a", "b"].edge_index = torch.zeros(2, 1, dtype=torch.long)
    made["b"].num_nodes = 1
    return made


def numbered(seed: int) -> Data:
    made = graph(seed)
    made[3] = torch.ones(1)
    return made


LEFT: dict[str, Callable[[int], Any]] = {
    "kind": shifted,
    "heterogeneous": of_another,
    "sparse": lambda seed: graph(seed, adj=torch.eye(seed % 6).to_sparse()),
    "edge index": lambda seed: Data(
        x=torch.ones(3, 1), edge_index=EdgeIndex([[0, 1], [1, 2]], sparse_size=(3, 3))
    ),
    "list": lambda seed: graph(seed, parts=[torch.ones(2), torch.ones(seed)]),
    "batch": lambda seed: graph(seed + 1, node_batch=torch.zeros((seed + 1) % 6 + 1).long()),
    "position": lambda seed: Data(pos=torch.ones(seed + 1, 2), edge_index=torch.zeros(2, 1).long()),
    "number": lambda seed: graph(seed, root_index=seed % 2),
    "tuple": lambda seed: (graph(seed), of_edges(seed), 3),
    "numbered": lambda seed: numbered(seed),
    "told by some": lambda seed: graph(seed, **({"num_nodes": 5} if seed == 5 else {})),
    "mask of nodes": lambda seed: graph(seed, index_mask=torch.rand(seed % 6) > 0.5),
}


@pytest.mark.parametrize("make", LEFT)
def test_what_is_not_plain_is_batched_as_by_pyg(make: str) -> None:
    data = [LEFT[make](seed) for seed in range(7)]
    for ours, theirs in batches(data, batch_size=7):
        if isinstance(theirs, list):  # of tuples
            assert len(ours) == len(theirs) == 3
            assert_same(ours[0], theirs[0])
            assert_same(ours[1], theirs[1])
            assert_equal(ours[2], theirs[2])
        elif make == "sparse":
            assert torch.equal(ours.adj.to_dense(), theirs.adj.to_dense())
        else:
            assert type(ours) is type(theirs)
            assert str(ours) == str(theirs)
            for store, right in zip(ours.stores, theirs.stores, strict=True):
                for key in right:
                    assert_equal(store[key], right[key])


def late(seed: int) -> Data:
    """Return a graph whose ``x`` has another length than the attribute that tells its nodes."""
    made = Data(pos=torch.zeros(3, 2), edge_index=torch.tensor([[0, 1, 2], [1, 2, 0]]))
    made.x = torch.ones(1, 4)
    return made


def ruled(seed: int) -> Data:
    """Return a graph with a rule of its own."""
    made = graph(seed)
    object.__setattr__(made, "__inc__", lambda key, *_: 100 if key == "y" else 0)
    return made


def of_mixed(seed: int) -> Data:
    """Return a graph whose features have one type or another."""
    made = graph(seed + 1, part_index=torch.zeros(1, dtype=[torch.int32, torch.int64][seed % 2]))
    made.x = made.x.double() if seed % 2 else made.x
    return made


@pytest.mark.parametrize("make", [late, ruled, of_mixed])
@pytest.mark.parametrize("num_workers", [0, 1])
def test_what_pyg_sees_otherwise_is_left_to_it(make: Make, num_workers: int) -> None:
    data = [make(seed) for seed in range(4)]
    if num_workers > 0 and make is ruled:
        pytest.skip("a function in a graph cannot be sent to a process")
    for ours, theirs in batches(data, batch_size=4, num_workers=num_workers):
        assert_same(ours, theirs)


def test_keys_are_sets_as_in_pyg() -> None:
    data = [graph(seed) for seed in range(4)]
    for options in ({"exclude_keys": "edge_index"}, {"follow_batch": "x"}):
        for ours, theirs in batches(data, batch_size=4, **options):
            assert list(ours.keys()) == list(theirs.keys())


def test_a_worker_refuses_gradients_as_in_pyg() -> None:
    data = [graph(seed) for seed in (1, 2)]
    for one in data:
        one.x.requires_grad_()
    for kind in (gnn_vpa.DataLoader, loader.DataLoader):
        with pytest.raises(RuntimeError, match="automatic differentiation"):
            next(iter(kind(data, batch_size=2, num_workers=1)))


def test_a_class_of_the_users_keeps_its_name() -> None:
    script = """
import torch, torch_geometric, gnn_vpa
gnn_vpa.convert
class Data(torch_geometric.data.Data):
    pass
batch = torch_geometric.data.Batch.from_data_list([Data(x=torch.ones(1, 1))])
assert type(batch.to_data_list()[0]) is Data
"""
    subprocess.run([sys.executable, "-c", script], check=True)


class Numbered(InMemoryDataset):
    """A data set whose transform is different each time."""

    def __init__(self) -> None:
        super().__init__(transform=self._count)
        self.data, self.slices = self.collate([graph(seed) for seed in range(6)])
        self.looks = 0

    def _count(self, made: Data) -> Data:
        self.looks += 1
        made.look = self.looks
        return made


def test_a_transform_runs_once_for_each_graph_of_a_batch() -> None:
    parts = BatchSampler(SequentialSampler(range(6)), 3, drop_last=False)
    made = gnn_vpa.DataLoader(Numbered(), batch_size=None, sampler=parts)
    assert [one.look.tolist() for one in made] == [[1, 2, 3], [4, 5, 6]]  # PyG's runs it five times


def test_a_missing_attribute_is_an_error_as_in_pyg() -> None:
    data = [of_edges(seed) for seed in range(4)]
    del data[2].pos
    for kind in (gnn_vpa.DataLoader, loader.DataLoader):
        with pytest.raises(KeyError, match="pos"):
            next(iter(kind(data, batch_size=4)))


def test_a_batch_owns_its_numbers() -> None:
    data = [graph(seed) for seed in (1, 2)]
    batch = next(iter(gnn_vpa.DataLoader(data, batch_size=2)))
    for value in (batch.x, batch.edge_index, batch.ptr, batch.batch):
        value.add_(1)
    fresh = [graph(seed) for seed in (1, 2)]
    assert all(torch.equal(a.x, b.x) for a, b in zip(data, fresh, strict=True))
    assert all(torch.equal(a.edge_index, b.edge_index) for a, b in zip(data, fresh, strict=True))
    assert [len(one.x) for one in batch.to_data_list()] == [1, 2]


def test_a_graph_that_changes_is_batched_as_it_is() -> None:
    data = [graph(seed) for seed in (1, 2)]
    batched = gnn_vpa.DataLoader(data, batch_size=2)
    next(iter(batched))
    data[1].x = torch.zeros(4, 3)
    data[1].edge_index += 1
    assert_same(next(iter(batched)), Batch.from_data_list(data))


def test_gradients_flow_to_the_graphs() -> None:
    data = [graph(seed) for seed in (1, 2)]
    data[0].x.requires_grad_()
    next(iter(gnn_vpa.DataLoader(data, batch_size=2))).x.sum().backward()
    assert data[0].x.grad is not None


def test_workers_make_the_same_batches() -> None:
    data = [of_edges(seed) for seed in range(13)]
    for ours, theirs in batches(data, batch_size=5, num_workers=2):
        assert_same(ours, theirs)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
@pytest.mark.parametrize("make", MADE)
def test_graphs_on_a_gpu_are_batched_there(make: str) -> None:
    data = [MADE[make](seed).to("cuda") for seed in range(13)]
    for ours, theirs in batches(data, batch_size=5, follow_batch=["y"]):
        assert ours.batch.is_cuda
        assert ours.ptr.is_cuda
        assert_same(ours, theirs)
