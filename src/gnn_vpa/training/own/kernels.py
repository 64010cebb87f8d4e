"""Whether a user's model has the same numbers where our kernels compute its sums."""

import logging
from copy import deepcopy
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ...graphs import GraphSet
from ...pyg.internal import sum_by_kernels
from ..initial import initial_model
from ..task import Training
from .adapter import Adapter
from .alone import Alone
from .batches import Inputs, Source
from .dropout import step_seeds
from .global_seeds import seeded
from .modes import NotSideBySide
from .together import compare, gradients

_log = logging.getLogger("gnn_vpa")


class _Said(NamedTuple):
    """What a model says of a batch."""

    scores: Tensor
    gradients: dict[str, Tensor]  # of its weights, in training
    statistics: dict[str, Tensor]


def serve(graphs: GraphSet, training: Training, adapter: Adapter, source: Source) -> bool:
    """Say whether kernels of ours may compute a model's sums over neighbours.

    They do where there are such sums, and where scores, gradients and statistics of a step are the
    same in float64 as by PyG's own steps, in training and in evaluation.
    """
    plain = initial_model(graphs, training, torch.float64)
    changed = deepcopy(plain)
    if not sum_by_kernels(changed):
        return False
    ids = training.lane.split.train[: training.protocol.batch_size]
    inputs = _double(source.cut(ids.to(source.device)))
    try:
        for is_training in (True, False):
            expected, found = (
                _said(model, adapter, inputs, graphs.num_outputs, is_training)
                for model in (plain, changed)
            )
            compare("scores", found.scores, expected.scores)
            for name, tensor in expected.gradients.items():
                compare(f"the gradient of {name}", found.gradients[name], tensor)
            for name, tensor in expected.statistics.items():
                compare(name, found.statistics[name], tensor)
    except NotSideBySide as error:
        _log.info("%s: its sums are PyG's own (by our kernels they differ: %s)", adapter.name, error)
        return False
    except Exception:  # the training says what is wrong with the model
        return False
    return True


def _said(
    model: nn.Module, adapter: Adapter, inputs: Inputs, outputs: int, is_training: bool
) -> _Said:
    model.train(is_training)
    seed = step_seeds([0], 1)[0, 0] if is_training else None
    with seeded(0, inputs.x.device), torch.set_grad_enabled(is_training):
        scores = Alone(model, adapter, outputs)(inputs, seed)
    found = {}
    if is_training:
        everyone = torch.ones(len(scores), dtype=torch.bool, device=scores.device)
        found = gradients(scores, everyone, dict(model.named_parameters()))
    return _Said(scores, found, dict(model.named_buffers()))


def _double(inputs: Inputs) -> Inputs:
    return Inputs(
        *(t.double() if t is not None and t.is_floating_point() else t for t in inputs)
    )
