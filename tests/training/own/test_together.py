"""Lanes side by side compute what lanes alone do, or are found out."""

from types import ModuleType
from typing import Any

import pytest
import torch
from torch import nn
from torch.func import stack_module_state

from gnn_vpa.graphs import GraphSet
from gnn_vpa.training.own import Adapter
from gnn_vpa.training.own.batches import Source
from gnn_vpa.training.own.dropout import step_seeds
from gnn_vpa.training.own.modes import NotSideBySide
from gnn_vpa.training.own.together import Together, check_together

CPU = torch.device("cpu")
NAMES = ("gin", "gcn", "gat", "gatv2", "sage", "pna", "gine")


def check(bonds: GraphSet, models: list[nn.Module]) -> None:
    params, buffers = stack_module_state(models)
    draw = torch.Generator().manual_seed(0)
    ids = torch.stack([torch.randperm(90, generator=draw)[:16] for _ in models])
    ids[1, 13:] = -1  # a lane with fewer graphs in its last step
    source = Source(bonds, "auto", CPU, torch.float64)
    together = Together(models[0], Adapter.of(models[0], "mine"), 2, CPU)
    seeds = step_seeds(range(len(models)), 1)[0]
    check_together(together, params, buffers, source, ids, seeds)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [{}, {"norm": "batch_norm"}, {"dropout": 0.4}], ids=str)
def test_pyg_models_run_side_by_side(
    bonds: GraphSet, mynets: ModuleType, name: str, options: dict[str, Any]
) -> None:
    check(bonds, [getattr(mynets, name)(3, 2, **options) for _ in range(3)])


def test_a_model_that_takes_a_pyg_batch_runs_side_by_side(
    bonds: GraphSet, mynets: ModuleType
) -> None:
    check(bonds, [mynets.OfBatch(3, 2) for _ in range(3)])


@pytest.mark.parametrize(
    ("name", "why"),
    [("Leaky", "scores would differ"), ("Noisy", "random operation"), ("Counting", "differs")],
)
def test_a_model_that_would_compute_something_else_is_found_out(
    bonds: GraphSet, mynets: ModuleType, name: str, why: str
) -> None:
    with pytest.raises(NotSideBySide, match=why):
        check(bonds, [getattr(mynets, name)(3, 2) for _ in range(3)])
