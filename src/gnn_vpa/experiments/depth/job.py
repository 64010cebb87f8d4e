"""One job of the depth experiment: the networks of one depth that can share every step."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...graphs import FeatureKind, GraphSet, load, splits
from .train import Outcome, Told, train
from .variant import Training, Variant


@dataclass(frozen=True)
class Job:
    """Networks of one depth on one fold of a data set.

    Attributes:
        dataset: What ``gnn_vpa.graphs.load`` loads.
        fold: The fold of the paper's ten, from 0.
        depth: Number of layers.
        variants: The networks: those that take the maximum alone, or any of the others.
        training: How they are trained.
        features: Node features.
        data_dir: A folder to look for data in first.

    Example:
        >>> job = Job("MUTAG", 0, 64, (Variant("vpa", "default", False),), Training())
        >>> print(job)
        MUTAG, 64 layers, fold 1: vpa
    """

    dataset: str
    fold: int
    depth: int
    variants: tuple[Variant, ...]
    training: Training
    features: FeatureKind = "auto"
    data_dir: str | None = None

    def __str__(self) -> str:
        aggrs = ", ".join(dict.fromkeys(variant.aggr for variant in self.variants))
        return f"{self.dataset}, {self.depth} layers, fold {self.fold + 1}: {aggrs}"

    def work(self) -> float:
        """Return how much there is to do, in any unit: the time it takes is in proportion.

        The maximum costs about three times as much as all sums together.
        """
        graphs = _graphs(self.dataset, self.data_dir)
        steps = graphs.num_graphs / self.training.batch_size
        dear = 3.0 if self.variants[0].aggr == "max" else 1.0
        return self.depth * self.training.epochs * steps * dear


def jobs(
    datasets: Sequence[str],
    depths: Sequence[int],
    variants: Sequence[Variant],
    training: Training,
    *,
    folds: int = 1,
    features: FeatureKind = "auto",
    data_dir: str | None = None,
) -> list[Job]:
    """Divide an experiment into jobs, the longest first, so that the last ones end together.

    Example:
        >>> from .variant import variants
        >>> asked = jobs(["MUTAG"], [4, 32], variants(), Training())
        >>> [str(job) for job in asked][:2]
        ['MUTAG, 32 layers, fold 1: max', 'MUTAG, 32 layers, fold 1: sum, mean, vpa']
    """
    kinds = [
        tuple(variant for variant in variants if (variant.aggr == "max") == largest)
        for largest in (True, False)
    ]
    found = [
        Job(dataset, fold, depth, kind, training, features, data_dir)
        for fold in range(folds)
        for dataset in datasets
        for depth in depths
        for kind in kinds
        if kind
    ]
    return sorted(found, key=Job.work, reverse=True)


def run_job(job: Job, device: str, told: Told | None = None) -> list[Outcome]:
    """Train the networks of a job."""
    graphs = _graphs(job.dataset, job.data_dir)
    split = splits(graphs.y)[job.fold]
    return train(
        graphs, job.fold, split, job.depth, job.variants, job.training,
        features=job.features, device=device, told=told,
    )  # fmt: skip


def majority(job: Job) -> float:
    """Return the accuracy on the test graphs of whoever always names the most frequent class."""
    graphs = _graphs(job.dataset, job.data_dir)
    split = splits(graphs.y)[job.fold]
    most = graphs.y[split.train].bincount().argmax()
    return float((graphs.y[split.test] == most).float().mean())


@lru_cache(maxsize=8)
def _graphs(dataset: str, data_dir: str | None) -> GraphSet:
    return load(dataset, data_dir)
