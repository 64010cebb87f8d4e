"""The tables of a data set by levels: whom rows stand for, and what they are linked to."""

import pytest
import torch

from gnn_vpa.graphs import GraphSet
from gnn_vpa.training import Task
from gnn_vpa.training.level_tables import level_tables, model_for
from gnn_vpa.training.tables import Tables, tables

CPU = torch.device("cpu")
FAMILIES = [
    [Task("gin", aggr) for aggr in ("sum", "mean", "vpa")],
    [Task("gcn", aggr) for aggr in ("vpa", "sum")],
    [Task("gin", "max")],
    [Task("gat", aggr) for aggr in ("default", "vpa")],
]


def tables_of(graphs: GraphSet, tasks: list[Task], merging: bool = True) -> Tables:
    model = model_for(tasks[0], graphs)
    return tables(
        level_tables(
            graphs, tasks, model, CPU, torch.float64,
            per_graph=True, max_dense_columns=64, merging=merging,
        )
    )  # fmt: skip


@pytest.mark.parametrize("tasks", FAMILIES, ids=lambda tasks: f"{tasks[0].model}-{tasks[0].aggr}")
@pytest.mark.parametrize("merging", [False, True], ids=["whole", "merged"])
def test_rows_stand_for_all_nodes_of_their_graph(
    toy: GraphSet, tasks: list[Task], merging: bool
) -> None:
    known = tables_of(toy, tasks, merging)
    sizes = toy.node_ptr.diff()
    for level in known.levels:
        rows = level.ptr.diff()
        owner = torch.repeat_interleave(rows)
        counted = torch.zeros(len(sizes)).index_add_(0, owner, level.multiplicity[:-1].float())
        assert torch.equal(counted, sizes.float())
        assert level.largest == int(rows.max())
        assert level.multiplicity[-1] == 0
        assert torch.equal(rows, sizes) or (merging and bool((rows <= sizes).all()))


@pytest.mark.parametrize("tasks", FAMILIES, ids=lambda tasks: f"{tasks[0].model}-{tasks[0].aggr}")
def test_links_stay_in_their_graph_in_both_groupings(toy: GraphSet, tasks: list[Task]) -> None:
    known = tables_of(toy, tasks)
    for below, level in zip(known.levels, known.levels[1:], strict=False):
        for links in level.links:
            for graph in range(toy.num_graphs):
                edges = slice(int(links.ptr[graph]), int(links.ptr[graph + 1]))
                source, target = links.col[edges] // links.stride, links.back_col[edges]
                for rows, ptr in ((source, below.ptr), (target, level.ptr)):
                    assert bool((rows >= ptr[graph]).all())
                    assert bool((rows < ptr[graph + 1]).all())
            row = torch.repeat_interleave(links.rowptr.diff())
            turned = links.back_edge[:-1].long()
            assert torch.equal(row[turned], links.back_col[:-1].long())
            by_source = torch.repeat_interleave(links.back_ptr.diff())
            assert torch.equal(links.col[:-1].long()[turned], by_source)


def test_for_the_maximum_equal_features_are_one_row(toy: GraphSet) -> None:
    """Without features a maximum sees nothing but whether there is a neighbour."""
    known = tables_of(toy, [Task("gin", "max", features="ones")])
    assert all(level.largest <= 2 for level in known.levels)
    assert known.levels[0].largest == 1


def test_weights_are_those_of_each_task(toy: GraphSet) -> None:
    aggrs = ("sum", "mean", "vpa", "power(0.3)")
    tasks = [Task("gcn", aggr, features="ones") for aggr in aggrs]
    first = tables_of(toy, tasks).levels[1].hop
    is_parent = first.col[:-1] % 2 == 1  # the odd sources; the even ones are neighbours'
    weight = first.weight[:, :-1]
    assert torch.equal(weight[:, is_parent], torch.ones(4, int(is_parent.sum())).double())
    total, mean, vpa, power = weight[:, ~is_parent]
    torch.testing.assert_close(mean, torch.ones_like(mean))  # N / N
    torch.testing.assert_close(vpa, total.sqrt())  # N / sqrt(N)
    torch.testing.assert_close(power, total**0.7)


def test_a_parent_and_neighbours_of_its_colour_are_one_edge(toy: GraphSet) -> None:
    tasks = [Task("gin", aggr, features="ones") for aggr in ("sum", "mean")]
    first = tables_of(toy, tasks).levels[1].hop
    assert bool((first.rowptr.diff() == 1).all())
    degree = first.weight[0, :-1] - 1
    assert torch.equal(first.weight[1, :-1], 1 + (degree > 0).double())
