"""Whether a user's model has the same numbers where our kernels compute its sums."""

import logging

import torch
from torch import Tensor, nn

from ...graphs import GraphSet
from ...pyg.internal import sum_by_kernels
from ...random_state import seeded
from ..initial import initial_model
from ..task import Training
from .adapter import Adapter
from .alone import Alone
from .batches import Inputs, Source
from .dropout import step_seeds
from .together import differ, gradients

_log = logging.getLogger("gnn_vpa")


def serve(graphs: GraphSet, training: Training, adapter: Adapter, source: Source) -> bool:
    """Say whether kernels of ours may compute a model's sums over neighbours.

    They do where there are such sums, and where scores, gradients and statistics of a step are the
    same in float64 as by PyG's own steps, in training and in evaluation.
    """
    try:
        changed, plain = (initial_model(graphs, training, torch.float64) for _ in range(2))
        if not sum_by_kernels(changed):
            return False
        ids = training.lane.split.train[: training.protocol.batch_size]
        inputs = _double(source.cut(ids.to(source.device)))
        for is_training in (True, False):
            found, expected = (
                _said(model, adapter, inputs, graphs.num_outputs, is_training)
                for model in (changed, plain)
            )
            wrong = [name for name, said in expected.items() if differ(found[name], said)]
            if wrong:
                _log.info(
                    "%s: its sums are PyG's own, as %s differs by ours", adapter.name, wrong[0]
                )
                return False
    except Exception:  # the training says what is wrong with the model
        return False
    return True


def _said(
    model: nn.Module, adapter: Adapter, inputs: Inputs, outputs: int, is_training: bool
) -> dict[str, Tensor]:
    """Return what a model says of a batch, and what becomes of it, by name."""
    model.train(is_training)
    seed = step_seeds([0], 1)[0, 0] if is_training else None
    with seeded(0), torch.set_grad_enabled(is_training):
        scores = Alone(model, adapter, outputs)(inputs, seed)
    found = {"its scores": scores, **dict(model.named_buffers())}
    if is_training:
        everyone = torch.ones(len(scores), dtype=torch.bool, device=scores.device)
        slopes = gradients(scores, everyone, dict(model.named_parameters()))
        found |= {f"the gradient of {name}": slope for name, slope in slopes.items()}
    return found


def _double(inputs: Inputs) -> Inputs:
    wide = {
        name: value.double()
        for name, value in inputs._asdict().items()
        if value is not None and value.is_floating_point()
    }
    return inputs._replace(**wide)
