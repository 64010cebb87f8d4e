"""Detection of trained weights."""

import math
from collections.abc import Iterator
from statistics import NormalDist

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy
from torch_geometric.nn import MessagePassing

from ._rebind import reads

_LARGE = (
    1.2  # 2,900 fresh matrices, uniform and normal, from 2 x 64 to 256 x 256, gave 1.09 at most
)
_STEPS = 20  # of the power iteration


@torch.no_grad()
def signs_of_training(model: nn.Module) -> Iterator[str]:
    """Yield signs of training: paths of weights, and normalisations that have seen data.

    Weights of any scale look fresh, whether PyG, torch, ``init_`` or ``calibrate`` made them. So do
    those of a small network without biases that start at 0 (matrices of fewer than 256 entries).
    """
    for path, module in model.named_modules():
        batches = getattr(module, "num_batches_tracked", None)
        if isinstance(batches, Tensor) and not batches.is_meta and batches > 0:
            yield f"{path or type(module).__name__} has seen {int(batches):,} batches"
        for name, weight in module.named_parameters(path, recurse=False):
            if is_lazy(weight) or weight.is_meta or not weight.is_floating_point():
                continue
            if _starts_even(module, name.rpartition(".")[2]) and weight.numel() > 1:
                if bool((weight != weight.flatten()[0]).any()):
                    yield name
            elif weight.dim() > 1 and (_is_neither(weight) or _has_direction(weight.flatten(1))):
                yield name


def _starts_even(module: nn.Module, name: str) -> bool:
    """Tell whether the entries of a parameter are equal at first: a norm's, or a layer's bias."""
    if isinstance(module, MessagePassing) and name == "bias":
        return reads(module.reset_parameters, "zeros")  # FeaStConv draws it
    return "Norm" in type(module).__name__


def _is_neither(weight: Tensor) -> bool:
    """Tell whether a weight is drawn from neither a uniform distribution nor a normal one.

    A training moves entries beyond the bound that they were drawn within, and their largest, or
    their fourth moment, lies between those of the two then. Of 20,000 fresh weights of 256, 512
    and 1,024 entries, uniform and normal, 1 in 10,000 at most lay between the limits.
    """
    count = weight.numel()
    if count < 256:
        return False
    scaled, root = weight.double() / weight.double().square().mean().sqrt(), math.sqrt(count)
    largest, fourth = scaled.abs().max().item(), scaled.pow(4).mean().item()
    is_between = math.sqrt(3) * (1 + 2 / root) < largest < NormalDist().inv_cdf(1 - 5 / count)
    return is_between or 1.8 + 6 / root < fourth < 3 - 16 / root


def _has_direction(weight: Tensor) -> bool:
    """Tell whether a matrix is larger in one direction than independent entries are.

    Of M x N independent entries of standard deviation 1 the largest singular value is about
    ``sqrt(M) + sqrt(N)``, whatever their distribution. A step of a training adds to few directions.
    """
    apart = weight.float() - weight.float().mean()
    vector = torch.randn(apart.shape[1], generator=torch.Generator().manual_seed(0)).to(apart)
    for _ in range(_STEPS):
        vector = apart.T @ (apart @ vector)
        vector = vector / vector.norm()
    edge = apart.square().mean().sqrt() * sum(size**0.5 for size in apart.shape)
    return bool((apart @ vector).norm() > _LARGE * edge)
