"""A checkpoint is what was written, by this code, or it is not used; it is never half one."""

import hashlib
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gnn_vpa
from gnn_vpa.graphs import GraphSet, splits
from gnn_vpa.training import Lane, Protocol, Task, fit
from gnn_vpa.training.checkpoint import Checkpoint, _sealed
from gnn_vpa.training.workers import Report

TASK, PROTOCOL = Task("sgc", "vpa"), Protocol(epochs=3, batch_size=16)
GROUP: list[Any] = [None, None]  # a checkpoint only counts the trainings of a group


@pytest.fixture
def lanes(toy: GraphSet) -> list[Lane]:
    return [Lane(fold, split) for fold, split in enumerate(splits(toy.y, 5))][:2]


@pytest.fixture
def opened(toy: GraphSet, lanes: list[Lane], tmp_path: Path) -> Callable[[], Checkpoint]:
    return lambda: Checkpoint(tmp_path / "state.pt", toy, [TASK], [PROTOCOL], lanes, ())


@pytest.fixture
def content(opened: Callable[[], Checkpoint], tmp_path: Path) -> bytes:
    opened().keep(Report(range(2), 1, {"epoch": 1, "weights": torch.arange(20.0)}))
    return (tmp_path / "state.pt").read_bytes()


def is_used(opened: Callable[[], Checkpoint]) -> bool:
    return opened().job(0, GROUP).state is not None


def test_what_was_written_is_used(content: bytes, opened: Callable[[], Checkpoint]) -> None:
    assert is_used(opened)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(place=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_flipped_bit_is_found_wherever_it_is(
    content: bytes, opened: Callable[[], Checkpoint], tmp_path: Path, place: float, bit: int
) -> None:
    damaged = bytearray(content)
    damaged[int(place * len(content))] ^= 1 << bit
    (tmp_path / "state.pt").write_bytes(damaged)
    assert not is_used(opened)


def test_a_flipped_byte_of_the_first_ones_is_found(
    content: bytes, opened: Callable[[], Checkpoint], tmp_path: Path
) -> None:
    for place in range(400):  # checksum, header and the beginning of the rest
        damaged = bytearray(content)
        damaged[place] ^= 0x20  # of a letter: upper and lower case
        (tmp_path / "state.pt").write_bytes(damaged)
        assert not is_used(opened)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(share=st.floats(0, 1, exclude_max=True), more=st.booleans())
def test_a_file_that_ends_early_or_late_is_found(
    content: bytes, opened: Callable[[], Checkpoint], tmp_path: Path, share: float, more: bool
) -> None:
    size = int(share * len(content))
    (tmp_path / "state.pt").write_bytes(content + content[: size + 1] if more else content[:size])
    assert not is_used(opened)


@pytest.mark.parametrize("part", ["format", "gnn-vpa", "torch"])
def test_another_version_starts_anew_and_is_named(
    content: bytes,
    opened: Callable[[], Checkpoint],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    part: str,
) -> None:
    _, header, body = content.split(b"\n", 2)
    other = json.loads(header) | {part: "0.0"}
    (tmp_path / "state.pt").write_bytes(_sealed(other, body))
    assert not is_used(opened)
    assert f"it was written with {part} 0.0, this is" in caplog.text
    assert caplog.text.rstrip().endswith("starting anew")


def test_the_file_tells_its_versions(content: bytes) -> None:
    checksum, rest = content.split(b"\n", 1)
    assert checksum.decode() == hashlib.sha256(rest).hexdigest()
    header = json.loads(rest.split(b"\n", 1)[0])
    assert header["gnn-vpa"] == gnn_vpa.__version__
    assert header["torch"] == str(torch.__version__)


def test_after_damage_training_starts_anew_to_the_same_numbers(
    toy: GraphSet,
    lanes: list[Lane],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("gnn_vpa.training.checkpoint._PAUSE", 0.0)
    path = tmp_path / "state.pt"
    expected = fit(toy, TASK, PROTOCOL, lanes, checkpoint=path)
    content = bytearray(path.read_bytes())
    # A bit of a number: torch itself would load it without a word.
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    epochs: list[int] = []
    again = fit(toy, TASK, PROTOCOL, lanes, checkpoint=path, progress=epochs.append)
    warnings = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(warnings) == 1
    assert "starting anew" in warnings[0].getMessage()
    assert epochs[-1] == PROTOCOL.epochs
    for got, right in zip(again, expected, strict=True):
        assert np.array_equal(got.curve_train_loss, right.curve_train_loss)
