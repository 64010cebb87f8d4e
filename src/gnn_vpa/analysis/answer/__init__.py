"""The answer: which aggregations may be the best, which to avoid, how sure that is.

`vpa` is one candidate among the others. The tests of whether vpa is better, the paper's question,
are in `significance`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ..format import capital, count, listing
from ..measure import ACCURACY
from ..settings import (
    MORE_KEYS,
    ceilings_of,
    left_out,
    setting_columns,
    shown_settings,
    split_by_setting,
)
from ..style import BASELINES
from ._choice import Candidate as Candidate
from ._choice import Choice as Choice
from ._choose import choices as choices
from ._picture import answer_dots as answer_dots
from ._words import headline as headline
from ._words import sentences as sentences
from ._words import short as short
from ._words import summary as summary

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Answer", "Candidate", "Choice", "answer", "answer_dots"]


@dataclass(frozen=True)
class Answer:
    """What a run has to say on which aggregation is right.

    Attributes:
        choices: For each setting and model, the choice over all data sets, where there are
            several, and that on each.
        warnings: What must be known of the run as a whole, in sentences.

    Example:
        >>> Answer(()).text
        'No network has finished a fold, so there is nothing to choose from.'
    """

    choices: tuple[Choice, ...]
    warnings: tuple[str, ...] = ()

    @property
    def may_be_best(self) -> dict[str, tuple[str, ...]]:
        """For each question, as in "GIN on MUTAG", what may be the best; the best mean first."""
        return {self.name(choice): choice.may_be_best for choice in self.choices}

    @property
    def avoid(self) -> dict[str, tuple[str, ...]]:
        """For each question what is shown not to be the best."""
        return {self.name(choice): choice.avoid for choice in self.choices}

    @property
    def default(self) -> dict[str, str | None]:
        """For each question what to take; None where nothing can be told."""
        return {self.name(choice): choice.default for choice in self.choices}

    @property
    def main(self) -> Iterator[Choice]:
        """The choices to read first: of each model over all of its data sets, or on its one."""
        seen = set()
        for choice in self.choices:
            if (key := (choice.setting, choice.model)) not in seen:
                seen.add(key)
                yield choice

    def parts(self, main: Choice) -> list[Choice]:
        """The choices on single data sets that one over several is made of; none for another."""
        if len(main.datasets) == 1:
            return []
        same = (main.setting, main.model)
        return [c for c in self.choices if (c.setting, c.model) == same and c is not main]

    @property
    def text(self) -> str:
        """All of it in words."""
        if not self.choices:
            return "No network has finished a fold, so there is nothing to choose from."
        lines = list(self.warnings)
        previous = None
        for main in self.main:
            if self._is_several and main.setting != previous:
                lines.append(f"{capital(str(main.setting))}:")
            previous = main.setting
            lines.append(" ".join(sentences(main)))
            for choice in self.parts(main):
                best, avoid = short(choice)
                lines.append(f"- {choice.place}: {best}" + (f"; avoid {avoid}" if avoid else ""))
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text

    def json(self) -> str:
        """Return all of it for a program; what is not known is null.

        Example:
            >>> Answer(()).json()
            '{"warnings": [], "choices": []}'
        """
        found = [
            {
                "setting": asdict(choice.setting),
                "model": choice.model,
                "datasets": list(choice.datasets),
                "metric": choice.setting.metric,
                "unit": choice.unit,
                "confidence": 0.95,
                "may_be_best": list(choice.may_be_best),
                "avoid": list(choice.avoid),
                "default": choice.default,
                "text": " ".join(sentences(choice)),
                "folds": choice.folds,
                "repeats": choice.repeats,
                "candidates": [_plain(asdict(candidate)) for candidate in choice.candidates],
                "left_out": dict(choice.left_out),
                "lines": choice.lines,
            }
            for choice in self.choices
        ]
        return json.dumps({"warnings": list(self.warnings), "choices": found}, ensure_ascii=False)

    def name(self, choice: Choice) -> str:
        """The question that a choice answers, with its setting where there are several."""
        return f"{choice.where} ({choice.setting})" if self._is_several else choice.where

    @property
    def _is_several(self) -> bool:
        return len({choice.setting for choice in self.choices}) > 1


def answer(
    folds: pd.DataFrame,
    signals: pd.DataFrame | None = None,
    ceiling: Mapping[tuple[str, str], float] | None = None,
) -> Answer:
    """Say which aggregations may be the best, of each model, on each data set and over all.

    May be the best is what the best mean does not beat in a corrected paired test (Nadeau and
    Bengio), at a level that allows for the number of aggregations: with 95 % confidence the true
    best is among them, also where the best mean is one by luck.

    Args:
        folds: a row for each finished training, of one setting or several.
        signals: the signal at the start, which tells what to take where the scores do not.
        ceiling: the best accuracy that any of the networks can reach, as a fraction, by data set
            and node features.

    Example:
        >>> import pandas as pd
        >>> columns = ["dataset", "model", "aggregation", "variant", "features", "fold", "seed",
        ...            "test_score", "status"]
        >>> rows = [["mine", "GIN", aggr, "released", "auto", fold, 0, score + fold / 100, "done"]
        ...         for aggr, score in (("mean", 0.6), ("vpa", 0.8)) for fold in range(10)]
        >>> answer(pd.DataFrame(rows, columns=columns)).may_be_best
        {'GIN on mine': ('vpa',)}
    """
    if folds.empty:
        return Answer(())
    signals_of = {} if signals is None else dict(split_by_setting(signals.assign(fold=0, seed=0)))
    found: list[Choice] = []
    for setting, part in shown_settings(folds):
        without = replace(setting, metric=ACCURACY)
        own = signals_of.get(setting, signals_of.get(without))
        found += choices(setting, part, own, ceilings_of(setting, ceiling))
    return Answer(tuple(found), tuple(warnings(folds)))


def warnings(folds: pd.DataFrame) -> Iterator[str]:
    """Yield what must be known of a run as a whole.

    That is where more settings were run than are shown, where several settings of a network invite
    to take the one that tests best, and where a model was edited while results were made with it.
    """
    if folds.empty:
        return
    yield from left_out(folds)
    yield from _edited(folds)
    tried = folds[~folds["model"].isin(BASELINES)]
    if "chosen" in tried.columns:
        tried = tried[tried["chosen"].isna()]
    keys = setting_columns(tried).assign(**tried[["dataset", "model"]]).drop_duplicates()
    same = [name for name in keys if name not in MORE_KEYS]
    if (most := keys.groupby(same).size().max()) > 1:
        yield (
            f"The same networks were run under {count(most, 'setting')}. Do not take the one that "
            "tests best: its score would be too good by luck, and so would be a comparison with "
            "others. --select chooses in each fold by the validation graphs."
        )


def _edited(folds: pd.DataFrame) -> Iterator[str]:
    """Name own models of several sources, whose names end in the hash of each."""
    if "source" not in folds.columns:
        return
    own = folds[folds["source"].fillna("") != ""]
    versions: dict[str, set[str]] = {}
    for model in own["model"].unique():
        versions.setdefault(model.rpartition("@")[0], set()).add(model)
    for name, models in versions.items():
        if name and len(models) > 1:
            yield (
                f"The source of {name} was edited between trainings: each version is another "
                f"method ({listing(sorted(models))})."
            )


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Numbers that JSON has; others are null."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in values.items()
    }
