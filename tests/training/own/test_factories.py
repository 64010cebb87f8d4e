"""Factories by name, and which of them other processes have."""

import importlib
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch import nn

from gnn_vpa.errors import UsageError
from gnn_vpa.graphs import GraphSet, splits
from gnn_vpa.training import Lane, Protocol, Task, fit, workers
from gnn_vpa.training.own import elsewhere, factory, planned, register, source_hash

Write = Callable[[str, str], None]
MAKE = "def make(in_channels, out_channels):\n    return {}\n"


def test_a_factory_is_found_by_the_name_of_its_module_here(write_module: Write) -> None:
    write_module("mynet", MAKE.format(7))
    assert factory("mynet:make")(1, 2) == 7  # type: ignore[comparison-overlap]


@pytest.mark.parametrize("name", ["nowhere:make", "mynet:none", "mynet:make.inner", ":make"])
def test_what_is_not_there_is_named(write_module: Write, name: str) -> None:
    write_module("mynet", MAKE.format(7))
    with pytest.raises(UsageError, match=f"'{name}' must name a module and its function"):
        factory(name)


def test_a_name_that_is_no_function_is_refused(write_module: Write) -> None:
    write_module("mynet", "make = 3\n")
    with pytest.raises(UsageError, match=r"'mynet:make' must be a function .* but is of type int"):
        factory("mynet:make")


def test_another_source_than_planned_is_refused(write_module: Write) -> None:
    write_module("mynet", MAKE.format(7))
    other = source_hash(factory("mynet:make"))
    write_module("mynet", MAKE.format(8))
    with pytest.raises(UsageError, match="mynet:make: its source has changed"):
        factory("mynet:make", other)


def test_a_name_that_is_registered_again_means_the_latest_and_each_is_found_by_its_source() -> None:
    first: Any = lambda i, o: nn.Linear(i, o)  # noqa: E731
    second: Any = lambda i, o: nn.Linear(i, o, bias=False)  # noqa: E731
    name, source = planned(first)
    assert planned(second)[0] == name
    assert factory(name) is second
    assert factory(name, source) is first


@pytest.mark.parametrize(
    ("wrong", "message"), [(nn.Linear(1, 1), "Linear is a model already"), (3, "got int")]
)
def test_what_makes_no_models_is_refused(wrong: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        register(wrong)  # type: ignore[arg-type]


def test_a_function_of_this_place_is_not_elsewhere(write_module: Write) -> None:
    write_module("mynet", MAKE.format(7))
    imported = factory("mynet:make")
    assert elsewhere(register(imported)) is None
    assert "cannot import" in str(elsewhere(register(lambda i, o: nn.Linear(i, o))))


PATCHED = """
from torch import nn
from torch_geometric.nn import GIN, global_add_pool

SCALE = 1.0

class Net(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.body, self.head = GIN(i, 4, 2), nn.Linear(4, o)

    def forward(self, x, edge_index, batch):
        return self.head(SCALE * global_add_pool(self.body(x, edge_index), batch))

def make(i, o):
    return Net(i, o)
"""


def test_a_model_that_was_changed_from_outside_is_trained_where_it_was_changed(
    bonds: GraphSet,
    write_module: Write,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another process has the file's, and says so."""
    write_module("mypatched", PATCHED)
    module = importlib.import_module("mypatched")
    vars(module)["SCALE"] = 3.0
    task = Task("mypatched:make", "", source=source_hash(module.make))
    lanes = [Lane(fold, split) for fold, split in enumerate(splits(bonds.y, 5))]
    protocol = Protocol(epochs=3, batch_size=16)
    expected = fit(bonds, task, protocol, lanes, workers=1)
    served, serve = threading.Event(), workers._serve
    monkeypatch.setattr(workers, "_serve", lambda *given: (serve(*given), served.set()))

    def wait(_: int) -> None:
        served.wait(120.0)

    outcomes = fit(bonds, task, protocol, lanes, workers=2, progress=wait)
    for got, right in zip(outcomes, expected, strict=True):
        assert np.array_equal(got.curve_train_loss, right.curve_train_loss)
        assert np.array_equal(got.curve_test, right.curve_test)
    assert "Going on with 1 process" in caplog.text
    assert "mypatched:make: its source has changed" in caplog.text
