"""What the page shows, as plain values for its template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ..comparison import compare_with_paper
from ..figures import fold_dots, learning_curves, signal_lines
from ..findings import findings
from ..remarks import remarks
from ..settings import KEYS, Setting, require_columns, split_by_setting
from ..significance import dataset_tests, overall_tests
from ..style import DATASETS, MODELS, in_order
from ..summary import summarise
from ..tables import AccuracyTable, accuracy_table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Part:
    """Everything about one setting. Figures are trusted markup, made here and escaped there."""

    setting: Setting
    findings: list[str]
    remarks: list[str]
    table: AccuracyTable
    overall: pd.DataFrame
    by_dataset: pd.DataFrame
    has_paper: bool
    curves: dict[str, list[tuple[str, Markup]]]
    dots: list[tuple[str, Markup]]
    signals: dict[str, list[tuple[str, Markup]]]


def content(
    folds: pd.DataFrame,
    curves: pd.DataFrame,
    provenance: Mapping[str, object],
    signals: pd.DataFrame | None,
) -> dict[str, Any]:
    """All that the template asks for."""
    folds = _with_columns(folds, (*KEYS, "test_acc", "status"))
    curves = _with_columns(curves, (*KEYS, "epoch", "train_loss"))
    of_setting = dict(split_by_setting(curves))
    signals_of = {} if signals is None else dict(split_by_setting(signals.assign(fold=0, seed=0)))
    parts = [
        _part(setting, part, of_setting.get(setting, curves.iloc[:0]), signals_of.get(setting))
        for setting, part in split_by_setting(folds)
    ]
    return {
        "parts": parts or [_part(Setting("released", "auto"), folds, curves, None)],
        "trainings": len(folds),
        "datasets": in_order(folds["dataset"], DATASETS),
        "provenance": provenance,
    }


def _part(
    setting: Setting, folds: pd.DataFrame, curves: pd.DataFrame, signals: pd.DataFrame | None
) -> Part:
    has_paper = not compare_with_paper(folds).empty
    return Part(
        setting=setting,
        findings=findings(folds),
        remarks=list(remarks(setting, folds, curves)) if has_paper else [],
        table=accuracy_table(folds),
        overall=overall_tests(folds),
        by_dataset=dataset_tests(folds),
        has_paper=has_paper,
        curves={
            model: [
                (name, Markup(learning_curves(of_model[of_model["dataset"] == name])))
                for name in in_order(of_model["dataset"], DATASETS)
            ]
            for model in in_order(curves["model"], MODELS)
            for of_model in [curves[curves["model"] == model]]
        },
        dots=[
            (name, Markup(fold_dots(folds[folds["dataset"] == name])))
            for name in in_order(folds["dataset"], DATASETS)
        ],
        signals={} if signals is None else _signals(folds, signals),
    )


def _signals(folds: pd.DataFrame, signals: pd.DataFrame) -> dict[str, list[tuple[str, Markup]]]:
    """Figures of the signal by model, a data set each; a model of one layer has none."""
    signals = signals.drop_duplicates(["dataset", "model", "aggregation", "layer"])
    cells = summarise(folds).set_index(["model", "dataset", "aggregation"])
    figures: dict[str, list[tuple[str, Markup]]] = {}
    for model in in_order(signals["model"], MODELS):
        of_model = signals[signals["model"] == model]
        if of_model["layer"].nunique() < 2:
            continue
        figures[model] = [
            (
                name,
                Markup(
                    signal_lines(part, own_cells["mean"].to_dict(), own_cells["note"].to_dict())
                ),
            )
            for name in in_order(of_model["dataset"], DATASETS)
            for part in [of_model[of_model["dataset"] == name]]
            for own_cells in [cells.loc[model, name]]
        ]
    return figures


def _with_columns(frame: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    """An empty frame may come without columns; any other must have them."""
    if frame.empty:
        return frame.reindex(columns=[*columns])
    require_columns(frame, columns)
    return frame
