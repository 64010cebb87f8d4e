"""A run's models, and a model that is in the way of a run."""

from pathlib import Path

import pytest

from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import expand, run_grid
from gnn_vpa.experiments.kept import is_run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """A folder that looks like a saved model's."""
    for name in ("config.json", "model.safetensors"):
        (tmp_path / name).touch()
    return tmp_path


def test_a_run_into_a_models_folder_is_refused_before_anything_is_done(model: Path) -> None:
    with pytest.raises(UsageError, match="holds a saved model: name another folder"):
        run_grid(expand(["MUTAG"], [], baselines=["majority"]).cells, model)
    assert len(list(model.iterdir())) == 2


def test_a_configuration_of_somebodys_own_is_no_model(tmp_path: Path, tu_dir: Path) -> None:
    (tmp_path / "config.json").touch()
    run_grid(expand(["MUTAG"], [], baselines=["majority"]).cells, tmp_path, data_dir=tu_dir)
    assert is_run(tmp_path)


def test_a_folder_that_is_a_run_and_a_model_is_refused(model: Path) -> None:
    assert not is_run(model)
    (model / "results.sqlite").touch()
    with pytest.raises(UsageError, match=r"model \(config.json.*run \(results.sqlite\): move one"):
        is_run(model)
