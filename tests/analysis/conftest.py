"""Results that were never trained: made up with the published means, or as a test asks."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from gnn_vpa.analysis import render_report
from gnn_vpa.analysis.settings import MORE_KEYS
from gnn_vpa.analysis.style import DATASETS
from gnn_vpa.paper import published

Accuracies = dict[tuple[str, str, str], list[float]]


@pytest.fixture(scope="session")
def make_folds() -> Callable[..., pd.DataFrame]:
    """Folds from {(dataset, model, aggregation): accuracies}, NaN for one that diverged."""

    def make(
        accuracies: Accuracies,
        variant: str = "released",
        features: str = "auto",
        seed: int = 0,
        **more: str,
    ) -> pd.DataFrame:
        rows = [
            {
                **dict(zip(("dataset", "model", "aggregation"), cell, strict=True)),
                "variant": variant,
                **more,
                "features": features,
                "fold": fold,
                "seed": seed,
                "best_epoch": 7,
                "val_score": accuracy,
                "test_score": accuracy,
                "train_loss": 0.4,
                "seconds": 1.0,
                "device": "cpu",
                "status": "diverged" if np.isnan(accuracy) else "done",
                "diverged_epoch": 17 if np.isnan(accuracy) else None,
            }
            for cell, values in accuracies.items()
            for fold, accuracy in enumerate(values)
        ]
        return pd.DataFrame(rows)

    return make


@pytest.fixture(scope="session")
def make_curves() -> Callable[..., pd.DataFrame]:
    """Learning curves that fall at a rate of their own, for every fold of a frame."""

    def make(folds: pd.DataFrame, epochs: int = 20) -> pd.DataFrame:
        rates = {"sum": 40, "mean": 15, "max": 12, "default": 20, "vpa": 8}
        parts = []
        epoch = np.arange(epochs)
        for row in folds[~folds["model"].isin(["MAJORITY", "WL"])].itertuples():
            noise = np.random.default_rng(row.fold).normal(1, 0.06, epochs) * (1 + row.fold / 20)
            start = 3.0 if row.aggregation == "sum" else 0.8
            loss = (0.1 + start * np.exp(-epoch / rates.get(row.aggregation, 20))) * noise
            if row.status == "diverged":
                loss[epochs // 2 :] = np.nan
            keys = {
                "dataset": row.dataset,
                "model": row.model,
                "aggregation": row.aggregation,
                "variant": row.variant,
                **{name: getattr(row, name) for name in MORE_KEYS if name in folds.columns},
                "features": row.features,
                "fold": row.fold,
                "seed": row.seed,
            }
            accuracy = {"val_score": row.test_score, "test_score": row.test_score}
            parts.append(pd.DataFrame({**keys, "epoch": epoch, "train_loss": loss, **accuracy}))
        return pd.concat(parts, ignore_index=True)

    return make


@pytest.fixture(scope="session")
def full_run(make_folds: Callable[..., pd.DataFrame]) -> pd.DataFrame:
    """All 12 methods on all 9 sets, drawn around the published means, with two baselines."""
    rng = np.random.default_rng(0)
    accuracies: Accuracies = {}
    for row in published("table1").itertuples():
        drawn = rng.normal(row.mean, row.std, 10).clip(0, 100) / 100
        accuracies[row.dataset, row.model, row.aggregation] = list(drawn.round(4))
    for dataset in DATASETS:
        accuracies[dataset, "MAJORITY", ""] = [0.5] * 10
        accuracies[dataset, "WL", ""] = list(rng.normal(0.7, 0.03, 10))
    accuracies["MUTAG", "GIN", "sum"][3] = float("nan")
    return make_folds(accuracies)


@pytest.fixture(scope="session")
def provenance() -> dict[str, object]:
    """What a run says of itself."""
    return {
        "command": "gnn-vpa run MUTAG --model gin --aggr sum,vpa",
        "versions": {"gnn_vpa": "0.1.0", "python": "3.11.7", "torch": "2.13.0+cpu"},
        "configuration": {"epochs": 200, "folds": 10, "batch_size": 64, "learning_rate": 0.001},
        "data": {"MUTAG": "sha256:" + "c41a2b" * 10},
        "commit": "0123456789abcdef0123456789abcdef01234567",
        "device": "NVIDIA H200",
    }


@pytest.fixture(scope="session")
def full_page(
    full_run: pd.DataFrame,
    make_curves: Callable[..., pd.DataFrame],
    provenance: dict[str, object],
) -> str:
    """The report of the whole table."""
    return render_report(full_run, make_curves(full_run), provenance)
