"""What torch's functions do differently while a user's model is trained.

Dropout has its masks from a hash. With lanes side by side, norms leave padding out, and what
Python asks of a tensor is answered for all lanes.

`torch.overrides.TorchFunctionMode` sees every call of a torch function, from any code.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._C import _functorch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from .dropout import kept, row_numbers


class NotSideBySide(Exception):
    """Lanes of this model cannot run side by side; the message says why."""


class HashedDropout(TorchFunctionMode):
    """Gives dropout its masks (`dropout.py`).

    Attributes:
        calls: Dropouts since the step began.
    """

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def begin(self, seed: Tensor, nodes: int, edges: int) -> None:
        """Begin a step: with its seed, and the numbers of nodes and edges of its batch."""
        self.calls, self._seed, self._nodes, self._edges = 0, seed, nodes, edges

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is functional.dropout:
            return self._dropout(*args, **kwargs)
        return func(*args, **kwargs)

    def _dropout(
        self, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
    ) -> Tensor:
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        if not training or p == 0:
            return input
        call, self.calls = self.calls, self.calls + 1
        if p == 1:
            return input.mul_(0) if inplace else input * 0
        shape = input.shape if input.dim() else torch.Size([1])
        self._check_rows(shape[0])
        rows = row_numbers(shape[0], self._nodes, self._edges, input.device)
        stay = kept(shape, p, self._seed, call, rows).view(input.shape)
        scale = stay.to(input.dtype) * (1 / (1 - p))
        return input.mul_(scale) if inplace else input * scale

    def _check_rows(self, rows: int) -> None:
        """Any number of rows will do without padding."""


_ASKED = (
    torch.Tensor.__bool__,
    torch.Tensor.__float__,
    torch.Tensor.__index__,
    torch.Tensor.__int__,
    torch.Tensor.item,
    torch.Tensor.tolist,
)
_MADE: tuple[Callable[..., Tensor], ...] = (
    torch.empty,
    torch.full,
    torch.ones,
    torch.zeros,
    torch.Tensor.new_empty,
    torch.Tensor.new_full,
    torch.Tensor.new_ones,
    torch.Tensor.new_zeros,
)


class SideBySide(HashedDropout):
    """Runs one model's code for all lanes at once, under `torch.func.vmap`, with padded batches.

    - BatchNorm counts rows that are real: which ones, its number of rows tells.
    - A new tensor has a copy for each lane, so that it can be written to.
    - A question whose answer Python needs, such as ``int(batch.max()) + 1``, and a mask that must
      select all or nothing, such as the one that removes self-loops, are answered as they were the
      first time; whether all lanes agree, and whether that is still so, is noted in ``ok``, and
      nothing waits for the device.

    Attributes:
        ok: Whether all answers were right since it was last set; on the device.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__()
        self.ok = torch.ones((), dtype=torch.bool, device=device)
        self._answers: list[Any] | None = None
        self._recorded: list[Any] = []

    def begin_lanes(
        self, seed: Tensor, zero: Tensor, node: Tensor, edge: Tensor, graph: Tensor
    ) -> None:
        """Begin a call for all lanes: which nodes, edges and graphs are real, for each lane.

        Args:
            seed: Of the step.
            zero: A single 0 of each lane.
            node: ``[Np]``; their numbers tell rows apart, and so must be different, …
            edge: ``[Ep]``, … also from the sum of both.
            graph: ``[Gp]``.
        """
        self.begin(seed, len(node), len(edge))
        self._zero = zero
        both = torch.cat([edge, node])
        self._real = {len(rows): rows for rows in (node, edge, graph, both)}
        self._next = iter(self._answers or ())

    def learn(self) -> None:
        """Forget the answers, and learn them from the next call."""
        self._answers, self._recorded = None, []

    def learned(self) -> None:
        """Give the answers of the last call from now on."""
        self._answers = self._recorded

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is functional.batch_norm:
            return self._batch_norm(*args, **kwargs)
        if func in _ASKED and _functorch.is_batchedtensor(args[0]):
            return self._answer(func, args[0])
        if func is torch.Tensor.__getitem__:
            return func(args[0], self._without_masks(args[1]))
        if func is torch.Tensor.__setitem__:
            index = self._without_masks(args[1])
            if _is_empty(index):
                return None
            return func(args[0], index, args[2])
        if func in _MADE:
            made = func(*args, **kwargs)
            is_lanes = _functorch.is_batchedtensor(made)
            return made if is_lanes else made + self._zero.to(made.dtype)
        return super().__torch_function__(func, types, args, kwargs)

    def _answer(self, func: Any, asked: Tensor) -> Any:
        lanes = _lanes_first(asked)
        if self._answers is None:
            answers = [func(own) for own in lanes]
            if any(answer != answers[0] for answer in answers):
                raise NotSideBySide("it asks for a value that differs between folds")
            self._recorded.append((answers[0], lanes[0].detach().clone()))
            return answers[0]
        answer, expected = next(self._next)
        self.ok.logical_and_((lanes == expected).all())
        return answer

    def _without_masks(self, index: Any) -> Any:
        """Replace masks of lanes, which select all or nothing, by slices."""
        parts = index if isinstance(index, tuple) else (index,)
        if not any(map(_is_lanes_mask, parts)):
            return index
        return tuple(self._slice(part) if _is_lanes_mask(part) else part for part in parts)

    def _slice(self, mask: Tensor) -> slice:
        if mask.dim() != 1:
            raise NotSideBySide("it selects by a mask of several dimensions")
        lanes = _lanes_first(mask)
        if self._answers is None:
            selected = int(lanes.sum())
            if selected not in (0, lanes.numel()):
                raise NotSideBySide("it selects a part of the rows by a mask")
            self._recorded.append(selected > 0)
            is_all = selected > 0
        else:
            is_all = next(self._next)
        self.ok.logical_and_((lanes == is_all).all())
        return slice(None) if is_all else slice(0, 0)

    def _check_rows(self, rows: int) -> None:
        self._real_rows(rows)

    def _real_rows(self, rows: int) -> Tensor:
        if rows not in self._real:
            raise NotSideBySide(
                f"it has a norm or a dropout over {rows} rows, which are neither nodes, edges nor "
                "graphs"
            )
        return self._real[rows]

    def _batch_norm(
        self,
        input: Tensor,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Tensor:
        if input.dim() != 2:
            raise NotSideBySide("it has a BatchNorm over more than rows and columns")
        if training:
            real = self._real_rows(len(input)).to(input.dtype).unsqueeze(1)
            count = real.sum()
            self.ok.logical_and_((_lanes_first(count) > 1).all())  # PyTorch refuses a single row
            mean = (input * real).sum(0) / count
            centred = input - mean
            var = (centred.square() * real).sum(0) / count
            if running_mean is not None and running_var is not None:
                with torch.no_grad():
                    running_mean.mul_(1 - momentum).add_(momentum * mean)
                    running_var.mul_(1 - momentum).add_(momentum * var * (count / (count - 1)))
        else:
            assert running_mean is not None
            assert running_var is not None
            centred, var = input - running_mean, running_var
        out = centred * torch.rsqrt(var + eps)
        out = out if weight is None else out * weight
        return out if bias is None else out + bias


def _is_lanes_mask(part: Any) -> bool:
    is_mask = isinstance(part, Tensor) and part.dtype == torch.bool
    return is_mask and bool(_functorch.is_batchedtensor(part))


def _is_empty(index: Any) -> bool:
    """Say whether an assignment through this index changes nothing."""
    parts = index if isinstance(index, tuple) else (index,)
    return any(
        (isinstance(part, Tensor) and part.dtype != torch.bool and part.numel() == 0)
        or part == slice(0, 0)
        for part in parts
        if isinstance(part, Tensor | slice)
    )


def _lanes_first(tensor: Tensor) -> Tensor:
    """Return a tensor of lanes as what it is outside, ``[L, ...]``; one of all lanes as ``[1]``."""
    if not _functorch.is_batchedtensor(tensor):
        return tensor.unsqueeze(0)
    return _functorch.get_unwrapped(tensor).movedim(_functorch.maybe_get_bdim(tensor), 0)
