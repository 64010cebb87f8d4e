from pathlib import Path

import numpy as np
import pytest

from gnn_vpa.errors import UsageError
from gnn_vpa.experiments import Cell, Result, Store, usual_precision
from gnn_vpa.graphs import GraphSet
from gnn_vpa.training import Outcome, Protocol, Task
from gnn_vpa.training.task import Precision


def _record(folder: Path, graphs: GraphSet, *precisions: Precision) -> None:
    curve = np.array([0.25, 0.5], np.float32)
    outcomes = [Outcome.of(0, 0, curve, curve, curve)]
    with Store(folder) as store:
        store.register("toy", graphs)
        session = store.begin("cuda", {})
        for precision in precisions:
            protocol, content = Protocol(precision=precision), graphs.checksum()
            cell = Cell("toy", Task("gin", "vpa"), protocol, folds=1, content=content)
            store.record([Result(cell, outcomes)], session=session, seconds=1.0, device="cuda")


@pytest.mark.parametrize(
    ("recorded", "on_gpu"),
    [
        ((), "bfloat16"),
        (("float32",), "float32"),
        (("bfloat16",), "bfloat16"),
        (("float32", "bfloat16"), "bfloat16"),
    ],
)
def test_a_gpu_goes_on_with_what_a_folder_has_and_begins_with_bfloat16(
    tmp_path: Path, toy: GraphSet, recorded: tuple[Precision, ...], on_gpu: Precision
) -> None:
    _record(tmp_path, toy, *recorded)
    assert usual_precision(tmp_path, "cuda:1") == on_gpu


def test_a_cpu_does_not_train_again_what_a_gpu_has_trained(tmp_path: Path, toy: GraphSet) -> None:
    _record(tmp_path, toy, "bfloat16")
    with pytest.raises(UsageError, match="--precision bfloat16 on a GPU, or train all of them"):
        usual_precision(tmp_path, "cpu")
    _record(tmp_path, toy, "float32")
    assert usual_precision(tmp_path, "cpu") == "float32"
