import json
from pathlib import Path

import gnn_vpa

from .conftest import Make


def test_json_holds_every_number_and_every_sentence(toys: Make, tmp_path: Path) -> None:
    found = gnn_vpa.audit(toys(12), folds=2, baselines=True)
    read = json.loads(found.to_json(tmp_path / "audit.json"))
    assert json.loads((tmp_path / "audit.json").read_text("utf-8")) == read
    assert read["name"] == "custom"
    assert read["classes"] == [12, 12]
    assert [one["ceiling"]["accuracy"] for one in read["rounds"]] == [0.5, 1, 1, 1, 1, 1]
    assert read["rounds"][5]["twins"] == {
        "tested": 24, "found": 24, "right": 24, "share": 1.0, "accuracy": 1.0
    }  # fmt: skip
    assert {one["name"] for one in read["baselines"]} == {
        "majority", "no_edges", "no_features", "wl"
    }  # fmt: skip
    assert len(read["variances"]["vpa"]) == 5
    assert [one["text"] for one in read["findings"]] == [one.text for one in found.findings]
    assert read["structure"]["nodes"]["mean"] == 3


def test_it_says_what_it_is(toys: Make) -> None:
    assert repr(gnn_vpa.audit(toys(4), folds=2, baselines=False)) == "Audit('custom', graphs=8)"
