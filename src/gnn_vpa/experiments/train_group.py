"""Training a group of cells: from data to results, without any store."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from ..errors import GnnVpaError
from ..graphs import GraphSet
from ..training import Lane, Outcome, Protocol, Task, fit
from ..training.task import Curves
from .baselines import fit_baseline
from .finals import train_chosen
from .groups import Group, first_fold
from .kept import keep_fold_models
from .progress import Grown, Progress
from .store import Result

CHECKPOINTS = "checkpoints"
"""The folder of what is being trained, in the folder of a run."""


class DeviceLostError(GnnVpaError):
    """A device cannot be used, or no longer; what was trained there may be trained elsewhere."""


@dataclass(frozen=True)
class GroupTrainer:
    """Trains groups of cells, one after the other.

    Attributes:
        out: Folder of the run, for checkpoints and for models that are kept.
        device: Where to train.
        progress: Told how far a group is.
        folds: Number of processes that divide the folds of a group.
        keep: Keys of cells whose models are kept.

    Example:
        >>> import tempfile
        >>> from gnn_vpa.experiments import Cell
        >>> from gnn_vpa.graphs import load
        >>> group = Group((Cell("MUTAG", Task("majority", ""), None, content="5b996644"),))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     (result,) = GroupTrainer(Path(folder), "cpu")(group, load("MUTAG"))
        >>> len(result.outcomes)
        10
    """

    out: Path
    device: str
    progress: Progress = field(default_factory=Progress)
    folds: int = 1
    keep: frozenset[str] = frozenset()

    def __call__(
        self, group: Group, graphs: GraphSet, choice: Sequence[int] | None = None
    ) -> list[Result]:
        """Train all cells of a group, and return what came of each.

        Args:
            group: The cells.
            graphs: Their data.
            choice: For a cell that chooses between settings, which one in each fold.
        """
        first = group.cells[0]
        if first.selection is not None:
            assert choice is not None
            train = _Finals(self, group, graphs, parts=len(set(choice)))
            return [train_chosen(first, graphs, choice, train)]
        lanes, methods = group.lanes(graphs), group.methods
        if first.protocol is None:
            outcomes = fit_baseline(
                first.task.model, graphs, first.task.features, lanes, first.metric
            )
        else:
            outcomes = self.fit(
                graphs,
                [task for task, _ in methods],
                [protocol for _, protocol in methods if protocol is not None],
                lanes,
                checkpoint=f"{group.key}.pt",
                progress=partial(self.progress.epochs, group),
                curves=partial(self._grown, group),
                keep_weights=any(cell.key in self.keep for cell in group.cells),
            )
        count = first.folds
        self._keep(group, graphs, lanes, outcomes)
        sizes = [(len(lane.split.train), len(lane.split.test)) for lane in lanes] * len(methods)
        return [
            Result(cell, outcomes[begin : begin + count], sizes=sizes[begin : begin + count])
            for begin, cell in zip(range(0, len(outcomes), count), group.cells, strict=True)
        ]

    def fit(
        self,
        graphs: GraphSet,
        tasks: Sequence[Task],
        protocols: Sequence[Protocol],
        lanes: Sequence[Lane],
        *,
        checkpoint: str,
        progress: Callable[[int], None],
        curves: Callable[[Sequence[int], Sequence[Curves]], None],
        keep_weights: bool = False,
    ) -> list[Outcome]:
        """Train, with as many processes and on the device that was said."""
        with _explained(self.device):
            return fit(
                graphs,
                tasks,
                protocols,
                lanes,
                device=self.device,
                checkpoint=self.out / CHECKPOINTS / checkpoint,
                progress=progress,
                curves=curves,
                workers=self.folds,
                keep_weights=keep_weights,
            )

    def _grown(self, group: Group, places: Sequence[int], curves: Sequence[Curves]) -> None:
        """Tell the curves of trainings, which go fold by fold and cell after cell."""
        each = [divmod(place, group.cells[0].folds) for place in places]
        self.progress.curves(
            group,
            [
                Grown(group.cells[cell], fold, grown)
                for (cell, fold), grown in zip(each, curves, strict=True)
            ],
        )

    def _keep(
        self, group: Group, graphs: GraphSet, lanes: Sequence[Lane], outcomes: Sequence[Outcome]
    ) -> None:
        """Write the models of a group's folds, before its results say that it is finished."""
        every = [lane for _ in group.methods for lane in lanes]
        for number, cell in enumerate(group.cells):
            if cell.key in self.keep and cell.protocol is not None:
                own = slice(number * cell.folds, (number + 1) * cell.folds)
                keep_fold_models(
                    self.out, cell, graphs, cell.task, cell.protocol, every[own], outcomes[own]
                )


@dataclass
class _Finals:
    """Trains the settings that were chosen in a cell's folds, one after the other."""

    trainer: GroupTrainer
    group: Group
    graphs: GraphSet
    parts: int  # number of different settings
    done: int = 0

    def __call__(
        self, task: Task, protocol: Protocol, lanes: Sequence[Lane], name: str
    ) -> list[Outcome]:
        cell = self.group.cells[0]
        kept = cell.key in self.trainer.keep
        outcomes = self.trainer.fit(
            self.graphs,
            [task],
            [protocol],
            lanes,
            checkpoint=f"{self.group.key}.{name}.pt",
            progress=partial(self._tell, protocol.epochs),
            curves=partial(self._grown, lanes),
            keep_weights=kept,
        )
        if kept:
            out = self.trainer.out
            keep_fold_models(out, cell, self.graphs, task, protocol, lanes, outcomes)
        self.done += 1
        return outcomes

    def _tell(self, epochs: int, done: int) -> None:
        """Tell how far all of them are, as a part of the epochs that the group shows."""
        assert self.group.protocol is not None
        share = (self.done + done / epochs) / self.parts
        self.trainer.progress.epochs(self.group, int(share * self.group.protocol.epochs))

    def _grown(
        self, lanes: Sequence[Lane], places: Sequence[int], curves: Sequence[Curves]
    ) -> None:
        """Tell the curves of final runs: those of one seed for each fold."""
        cell = self.group.cells[0]
        folds = [lanes[place].fold - first_fold(cell) for place in places]
        grown = [Grown(cell, fold, own) for fold, own in zip(folds, curves, strict=True)]
        self.trainer.progress.curves(self.group, grown)


@contextmanager
def _explained(device: str) -> Iterator[None]:
    """Say what to do about a GPU that disappears, or that others do not share."""
    try:
        yield
    except RuntimeError as error:
        reason = str(error).partition("\n")[0]
        if not reason.startswith("CUDA error"):
            raise
        raise DeviceLostError(
            f"{device} cannot be used ({reason}). What is finished is kept: run the same command "
            "again when it can, or with --device cpu."
        ) from error
