"""What lanes have come to so far: curves, the best epoch, and what the network said then."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from ..errors import GnnVpaError
from ..graphs import kind_of
from .metrics import Metric, metrics_for
from .task import Curves, Lane, Outcome, Predictions

_TOLERANCE = 1e-4  # of a metric that was rounded to the type of the weights


class Record:
    """The record of L lanes, on their device.

    To enter an epoch, no value is looked at on the host, so that it can be captured and replayed. A
    lane is alive until its loss is not finite, or its patience has ended; what it does later is
    not recorded.

    Attributes:
        metric: What chooses the epoch.
        y: The targets of the graphs that are evaluated, ``[L, B]`` or ``[L, B, T]``.
        parts: Which of them are for validation, and which for test: ``[2, L, B]``.
        state: All that changes, by name.
    """

    def __init__(
        self,
        metric: Metric,
        patience: int | None,
        epochs: int,
        y: Tensor,
        parts: Tensor,
        outputs: int,
        dtype: torch.dtype,
        weights: Mapping[str, Tensor] | None = None,
    ) -> None:
        self.metric, self.patience, self.y, self.parts = metric, patience, y, parts
        self._both = torch.cat([y, y]), parts.flatten(0, 1)  # in one go: validation, then test
        self._sign = 1.0 if metric.higher_is_better else -1.0
        lanes, graphs = y.shape[:2]
        some = torch.empty(0, dtype=dtype, device=y.device)
        number = torch.zeros(lanes, dtype=torch.int64, device=y.device)
        self.state: dict[str, Tensor] = {
            "epoch": number.new_zeros(1),
            "curves": some.new_full((3, lanes, epochs), torch.nan),
            "best": some.new_full((lanes,), -torch.inf),
            "best_epoch": number,
            "length": number.clone(),  # epochs in which a lane was alive
            "alive": number == 0,
            "scores": some.new_zeros(lanes, graphs, outputs),
        }
        for name, tensor in (weights or {}).items():
            self.state[f"weights.{name}"] = tensor.detach().clone()

    @torch.no_grad()
    def add(
        self, losses: Tensor, scores: Tensor, weights: Mapping[str, Tensor] | None = None
    ) -> None:
        """Enter an epoch.

        Args:
            losses: The training loss of each lane, ``[L]``.
            scores: What the networks say of the evaluated graphs, in the data's units:
                ``[L, B, outputs]``.
            weights: The weights, if they are kept.
        """
        state, alive = self.state, self.state["alive"]
        values = self.metric.by_lane(torch.cat([scores, scores]), *self._both)
        entry = torch.cat([losses, values.to(losses.dtype)]).view(3, -1)
        entry.masked_fill_(~alive, torch.nan)
        place = state["epoch"].clamp(max=state["curves"].shape[2] - 1)  # a trial may go beyond
        state["curves"].index_copy_(2, place, entry.unsqueeze(2))
        state["length"] += alive
        alive &= losses.isfinite()
        worth = entry[1] * self._sign
        improved = alive & (worth > state["best"])
        kept = {"best": worth, "best_epoch": state["epoch"], "scores": scores}
        kept |= {f"weights.{name}": tensor for name, tensor in (weights or {}).items()}
        for name, value in kept.items():
            old = state[name]
            torch.where(improved.view(-1, *[1] * (old.dim() - 1)), value, old, out=old)
        if self.patience is not None:
            alive &= state["epoch"] - state["best_epoch"] < self.patience
        state["epoch"] += 1

    def state_dict(self) -> dict[str, Tensor]:
        """Return a copy of the state."""
        return {name: tensor.clone() for name, tensor in self.state.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from a state."""
        for name, tensor in self.state.items():
            tensor.copy_(state[name])

    def curves(self) -> list[Curves]:
        """Return the curves of each lane, as many epochs as it was alive: ``[3, epochs]``.

        The last loss of a lane that has diverged is not finite.
        """
        lengths = self.state["length"].tolist()
        curves = self.state["curves"][:, :, : max(lengths)].float().cpu().numpy()
        return [curves[:, row, :length] for row, length in enumerate(lengths)]

    def outcomes(self, lanes: Sequence[Lane]) -> list[Outcome]:
        """Return what each lane came to."""
        state = {name: tensor.cpu() for name, tensor in self.state.items()}
        y, parts = self.y.cpu(), self.parts.cpu()
        values = {  # of each metric: validation and test of each lane
            metric.name: [metric.by_lane(state["scores"], y, part).tolist() for part in parts]
            for metric in metrics_for(kind_of(y[0]))
        }
        return [
            self._outcome(
                lane, row, state, {name: (v[row], t[row]) for name, (v, t) in values.items()}
            )
            for row, lane in enumerate(lanes)
        ]

    def _outcome(
        self,
        lane: Lane,
        row: int,
        state: dict[str, Tensor],
        scores: dict[str, tuple[float, float]],
    ) -> Outcome:
        curves, length = state["curves"][:, row], int(state["length"][row])
        if bool(curves[0, length - 1].isfinite()):  # otherwise it diverged
            curves = curves[:, :length]
        plain = Outcome.of(
            lane.fold, lane.seed, *curves.numpy(), higher_is_better=self.metric.higher_is_better
        )
        if plain.diverged_epoch is not None:
            return replace(plain, scores=dict.fromkeys(scores, (math.nan, math.nan)))
        sizes = [len(lane.split.valid), len(lane.split.test)]
        said = torch.split(state["scores"][row, : sum(sizes)], sizes)
        outcome = replace(
            plain,
            scores=scores,
            predictions=Predictions(*(part.clone() for part in said)),
            weights=self._weights(row, state),
        )
        self._check(outcome, int(state["best_epoch"][row]))
        return outcome

    def _weights(self, row: int, state: dict[str, Tensor]) -> dict[str, Tensor] | None:
        prefix = "weights."
        own = {
            name.removeprefix(prefix): t[row].clone() for name, t in state.items() if prefix in name
        }
        return own or None

    def _check(self, outcome: Outcome, kept_epoch: int) -> None:
        """What was kept must be of the epoch that the curves choose, and as good as they say."""
        pairs = zip(
            (outcome.val_score, outcome.test_score), outcome.scores[self.metric.name], strict=True
        )
        # Next to 0 an error is small in its own unit alone, and what is at most 1 by itself.
        beside = _TOLERANCE if self.metric.higher_is_better else 0.0
        same = all(math.isclose(*pair, rel_tol=_TOLERANCE, abs_tol=beside) for pair in pairs)
        if outcome.best_epoch != kept_epoch or not same:
            raise GnnVpaError(
                f"fold {outcome.fold}: {self.metric.title} {outcome.scores[self.metric.name]} of "
                f"what was kept in epoch {kept_epoch} is not that of epoch {outcome.best_epoch}, "
                f"{(outcome.val_score, outcome.test_score)}: this is a defect of gnn-vpa, please "
                "report it"
            )
