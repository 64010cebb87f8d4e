"""The answer so far, worked out beside everything else: it may take longer than a page waits."""

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import GnnVpaError
from ..training.seldom import Seldom

if TYPE_CHECKING:
    from ..analysis import Answer

_PAUSE_S, _SHARE = 3.0, 0.1  # between two answers, and of the time


class Answering:
    """Keeps the answer of a run up to date, in a thread.

    Args:
        folder: The run's folder.

    Example:
        >>> Answering(Path("no/such/run")).latest(0, is_last=True) is None
        True
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pause = Seldom(_PAUSE_S, _SHARE)
        self._thread: threading.Thread | None = None
        self._of: tuple[int, bool] | None = None  # what the last answer was asked for
        self._answer: dict[str, Any] | None = None

    def latest(self, cells: int, *, is_last: bool) -> dict[str, Any] | None:
        """Return the last answer that there is, and have a new one made if that is due.

        Args:
            cells: How many cells are finished.
            is_last: Whether there will be no more: then what the run records at its end counts too.
        """
        asked = cells, is_last
        at_work = self._thread is not None and self._thread.is_alive()
        if cells and asked != self._of and not at_work and (is_last or self._pause.is_due()):
            self._of = asked
            self._thread = threading.Thread(target=self._work, args=asked, daemon=True)
            self._thread.start()
        return self._answer

    def _work(self, cells: int, is_last: bool) -> None:
        from ..analysis import answer
        from ..results import Results

        with self._pause:
            try:
                results = Results(self._folder)
                # Before its end a run has not recorded what networks start with, and to measure
                # that takes long: without it less can be said on what to take.
                found = results.answer if is_last else answer(results.folds, None, results.ceilings)
                self._answer = {"cells": cells, **described(found, is_last=is_last)}
            except GnnVpaError as error:
                self._answer = {"cells": cells, "warnings": [str(error)], "questions": []}


def described(answer: "Answer", *, is_last: bool) -> dict[str, Any]:
    """Return an answer in words, for a page.

    Args:
        answer: The answer.
        is_last: Whether it will stay as it is: otherwise where there is one aggregation, others
            will follow, and nobody needs to be told to run them.

    Example:
        >>> from gnn_vpa.analysis import Answer
        >>> described(Answer(()), is_last=True)["warnings"]
        ['No network has finished a fold, so there is nothing to choose from.']
    """
    from ..analysis.answer import sentences, short

    if not answer.choices:
        return {"warnings": [answer.text], "questions": []}
    questions = []
    several = len({choice.setting for choice in answer.choices}) > 1
    for main in answer.main:
        first, *rest = sentences(main)
        if not is_last and len(main.candidates) < 2:
            first, rest = f"{main.where}: there is nothing to compare yet.", []
        sets = [
            [choice.place, *short(choice)]
            for choice in answer.parts(main)
            if is_last or len(choice.candidates) > 1
        ]
        setting = str(main.setting) if several else ""
        said = [text.replace(" %", "\N{NO-BREAK SPACE}%") for text in (first, *rest)]
        questions.append({"setting": setting, "headline": said[0], "more": said[1:], "sets": sets})
    return {"warnings": list(answer.warnings), "questions": questions}
