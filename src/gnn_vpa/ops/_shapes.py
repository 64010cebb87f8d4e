"""Two changes of shape that the operators' callers share."""

from torch import Tensor


def flat(x: Tensor, axis: int) -> Tensor:
    """Merge all axes from ``axis`` on into one; make one where there is none."""
    return x.unsqueeze(axis) if x.dim() == axis else x.flatten(axis)


def lined_up(factor: Tensor, x: Tensor) -> Tensor:
    """Give ``factor`` axes of size 1 at its end, so that it multiplies the first axes of ``x``."""
    return factor.view(*factor.shape, *[1] * (x.dim() - factor.dim()))
