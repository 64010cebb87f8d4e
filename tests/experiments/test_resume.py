"""With the real training: an interrupted cell goes on where it was."""

from pathlib import Path

import pandas as pd
import pytest

from gnn_vpa.experiments import Group, Progress, expand, identify, read_curves, run_grid
from gnn_vpa.training import Protocol, checkpoint


class Seen(Progress):
    def __init__(self, stop_at: int | None = None) -> None:
        self.done: list[int] = []
        self._stop_at = stop_at

    def epochs(self, group: Group, done: int) -> None:
        self.done.append(done)
        if done == self._stop_at:
            raise KeyboardInterrupt


@pytest.mark.parametrize("pause", [0.0, 1e9], ids=["written each epoch", "written at Ctrl-C"])
def test_an_interrupted_cell_goes_on_to_the_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pause: float
) -> None:
    monkeypatch.setattr(checkpoint, "_PAUSE", pause)
    cells = identify(
        expand(["MUTAG"], aggrs=["vpa"], protocol=Protocol(epochs=4), folds=2).cells
    ).cells
    run_grid(cells, tmp_path / "whole", device="cpu")
    broken = tmp_path / "broken"
    with pytest.raises(KeyboardInterrupt):
        run_grid(cells, broken, device="cpu", progress=Seen(stop_at=2))
    kept = [path.name for path in (broken / "checkpoints").iterdir()]
    assert kept == [f"{cells[0].key}.pt"]  # and no lock
    rest = Seen()
    run_grid(cells, broken, device="cpu", progress=rest)
    assert rest.done == [2, 3, 3, 4]  # of two folds one was done, and each counts by half
    whole, resumed = read_curves(tmp_path / "whole"), read_curves(broken)
    pd.testing.assert_frame_equal(resumed, whole, check_exact=True)
