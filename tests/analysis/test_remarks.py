"""A run that departs from the paper's protocol says so, and one that does not is silent."""

import pandas as pd
import pytest

from gnn_vpa.analysis import split_by_setting
from gnn_vpa.analysis.remarks import remarks


def said(variant: str, folds: int, epochs: int, **more: str) -> str:
    cell: dict[str, object] = {
        "dataset": "MUTAG",
        "model": "GIN",
        "aggregation": "vpa",
        "variant": variant,
    }
    cell |= {"features": "auto", "seed": 0} | more
    rows = pd.DataFrame([cell | {"fold": fold} for fold in range(folds)])
    curves = pd.DataFrame([cell | {"fold": 0, "epoch": epoch} for epoch in range(epochs)])
    ((setting, own),) = split_by_setting(rows)
    return " ".join(remarks(setting, own, curves))


def test_the_papers_own_protocol_needs_no_remark() -> None:
    assert said("released", folds=10, epochs=200) == ""


@pytest.mark.parametrize(
    ("variant", "folds", "epochs", "remark"),
    [
        ("released", 10, 5, "5 epochs instead of 200"),
        ("released", 3, 200, "3 folds instead of 10"),
        ("printed", 10, 200, "not as released but printed"),
    ],
)
def test_a_departure_is_named(variant: str, folds: int, epochs: int, remark: str) -> None:
    assert remark in said(variant, folds, epochs)


def test_another_protocol_does_not_make_the_models_others() -> None:
    assert "models" not in said("released", folds=5, epochs=15, protocol="15 epochs, 5 folds")
    assert "as released but have K=5, every" in said(
        "released", folds=5, epochs=15, options="K=5", protocol="15 epochs"
    )
