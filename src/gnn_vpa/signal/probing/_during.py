"""The probe standing by while a model trains."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import nn

from ...errors import UsageError
from ...files import refuse_folder, save_figure
from ._hooks import layers, of_this_thread, unseen, watched
from ._inputs import arguments, atlas_of, real_tensor
from ._recorder import Recorder
from ._report import Report
from ._step import steps_of
from ._symptoms import layers_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class Watch:
    """The signal of a model while it trains, a report for each step that was measured.

    Made by ``gnn_vpa.probe.during(model, every=10)``. Between the measured steps the model runs
    with a single hook that counts; after the block with none. What a measured step computes is
    what it would have computed anyway.

    Example:
        >>> import gnn_vpa, torch
        >>> model = torch.nn.Linear(4, 1)
        >>> with gnn_vpa.probe.during(model, every=2) as signal:
        ...     for _ in range(4):
        ...         model(torch.ones(3, 4)).sum().backward()
        >>> signal.to_frame()["training_step"].unique().tolist()
        [0, 2]
    """

    def __init__(self, model: nn.Module, every: int) -> None:
        if not isinstance(model, nn.Module):
            raise UsageError(f"model: expected a torch.nn.Module, got {type(model).__name__}.")
        if isinstance(model, torch.jit.ScriptModule):
            raise UsageError(
                "model: a scripted module takes no hooks, so it cannot be watched. Watch it before "
                "torch.jit.script or trace."
            )
        if every < 1:
            raise UsageError(f"every: expected 1 or more steps, got {every}.")
        self._model, self._every = model, every
        self._calls = 0
        self._reports: list[tuple[int, Report]] = []
        self._watching: tuple[int, Recorder] | None = None
        self._open = ExitStack()  # hooks on the model's modules, while a measured step runs
        self._standing = ExitStack()  # the hook that counts

    def __enter__(self) -> Self:
        before = self._model.register_forward_pre_hook(self._begin, with_kwargs=True, prepend=True)
        self._standing.callback(before.remove)
        return self

    def __exit__(self, *_: object) -> None:
        self._standing.close()
        self._finish()

    @property
    def reports(self) -> list[tuple[int, Report]]:
        """The number of each measured step, from 0, and its report."""
        if self._watching is None:
            return list(self._reports)
        step, recorder = self._watching
        return [*self._reports, (step, Report(steps_of(recorder.entries), unseen(self._model)))]

    @property
    def verdict(self) -> str:
        """What is to be said of the first step and of the last; remedies are not tried here."""
        reports = self.reports
        if not reports:
            return "No training step was seen: call the model within the block, with gradients on."
        ends = dict([reports[0], reports[-1]])
        return "\n".join(f"At step {step}: {report.verdict}" for step, report in ends.items())

    def to_frame(self, by: str | None = None) -> pd.DataFrame:
        """Return the numbers as a pandas frame, with the training step in front.

        Args:
            by: As in ``Report.to_frame``.
        """
        import pandas as pd

        frames = []
        for step, report in self.reports:
            frame = report.to_frame(by)
            frame.insert(0, "training_step", step)
            frames.append(frame)
        return pd.concat(frames, ignore_index=True) if frames else Report(()).to_frame(by)

    def plot(self, path: str | Path | None = None) -> Figure:
        """Draw each layer's variance, and that of its gradient, over the training steps.

        Args:
            path: A file to write it to as well; its ending says as what.

        Raises:
            UsageError: The path is a folder, or ends in what is not drawn.
        """
        from ._figure import draw_training

        if path is not None:
            refuse_folder(path, "training.png")
        series = [(step, layers_of(report.steps)) for step, report in self.reports]
        figure = draw_training(series)
        if path is not None:
            save_figure(figure, path)
        return figure

    def __str__(self) -> str:
        reports = self.reports
        ends = dict(reports[:1] + reports[-1:])
        return "\n\n".join(f"Step {step}\n{report}" for step, report in ends.items())

    # What the hooks do

    def _begin(self, model: nn.Module, args: Any, kwargs: Any) -> None:
        if not torch.is_grad_enabled() or torch.compiler.is_compiling() or _capturing():
            return
        step, self._calls = self._calls, self._calls + 1
        if step % self._every:
            return
        self._finish()
        named = arguments(model, args, kwargs)
        recorder = Recorder(layers(model), atlas := atlas_of(named))
        self._watching = step, recorder
        after = model.register_forward_hook(of_this_thread(self._end), always_call=True)
        self._open.callback(after.remove)
        self._open.enter_context(watched(model, recorder, atlas))
        if (x := real_tensor(list(named.values()))) is not None:
            recorder.given(x)
        recorder.enter(model, (args, kwargs))

    def _end(self, model: nn.Module, _: Any, result: Any) -> None:
        if self._watching is not None:
            self._watching[1].leave(model, result)
        self._open.close()

    def _finish(self) -> None:
        """Put away what the last measured step, and the backward pass after it, have shown."""
        self._open.close()
        if self._watching is not None:
            self._reports = self.reports
            self._watching[1].close()
            self._watching = None


def _capturing() -> bool:
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
