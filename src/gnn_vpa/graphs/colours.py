"""Colour refinement (1-WL): which nodes no message-passing network can tell apart."""

from itertools import islice

import torch
from torch import Tensor

from ..ops.internal import rows
from .colour_rounds import colour_rounds


def refine(rowptr: Tensor, col: Tensor, start: Tensor, rounds: int) -> Tensor:
    """Refine colours: a round tells nodes apart whose neighbours' colours differ as multisets.

    After ``k`` rounds two nodes have the same colour if and only if every message-passing network
    of ``k`` layers gives them the same features. Each round groups nodes by a hash of their
    neighbours' colours and then compares every node with the first of its group, so the answer is
    exact.

    Args:
        rowptr: The graph by target: row ``i`` has the sources ``col[rowptr[i]:rowptr[i + 1]]``.
        col: Sources, ``[E]``.
        start: First colours, ``[N]``, any integers.
        rounds: Number of rounds.

    Returns:
        Colours from 0 on, without gaps, ``[N]`` in int64.

    Example:
        A path of four nodes: its ends look alike, and so do its inner nodes.

        >>> rowptr, col = torch.tensor([0, 1, 3, 5, 6]), torch.tensor([1, 0, 2, 1, 3, 2])
        >>> refine(rowptr, col, torch.zeros(4, dtype=torch.int64), rounds=3)
        tensor([0, 1, 1, 0])
    """
    return refinements(rowptr, col, start, rounds)[-1]


def refinements(
    rowptr: Tensor, col: Tensor, start: Tensor, rounds: int, *, ignore_counts: bool = False
) -> list[Tensor]:
    """Return the colours before the first round and after each, as ``refine`` finds them.

    Args:
        rowptr: The graph by target, ``[N + 1]``.
        col: Sources, ``[E]``.
        start: First colours, ``[N]``, any integers.
        rounds: Number of rounds.
        ignore_counts: Whether to compare neighbours' colours as sets: what a network sees that
            takes the maximum, which is the same however often a colour occurs.

    Example:
        A star of two leaves and one of three, which a maximum does not tell apart.

        >>> rowptr = torch.tensor([0, 2, 3, 4, 7, 8, 9, 10])
        >>> col, same = torch.tensor([1, 2, 0, 0, 4, 5, 6, 3, 3, 3]), torch.zeros(7).long()
        >>> [colour.tolist() for colour in refinements(rowptr, col, same, rounds=1)]
        [[0, 0, 0, 0, 0, 0, 0], [0, 1, 1, 2, 1, 1, 1]]
        >>> refinements(rowptr, col, same, rounds=1, ignore_counts=True)[1].tolist()
        [0, 0, 0, 0, 0, 0, 0]
    """
    if start.is_cpu:
        found = colour_rounds(rowptr, col, start, ignore_counts=ignore_counts)
        return [torch.from_numpy(colour) for colour in islice(found, rounds + 1)]
    return _on_device(rowptr, col, start, rounds, ignore_counts)


def _on_device(
    rowptr: Tensor, col: Tensor, start: Tensor, rounds: int, ignore_counts: bool
) -> list[Tensor]:
    """Do the same in few calls, where sorting is quick."""
    colours = [_numbered(start.long())[0]]
    rowptr, col = rowptr.long(), col.long()
    row = rows(rowptr, len(col))
    draw = torch.Generator().manual_seed(0)
    while len(colours) <= rounds:
        colour = colours[-1]
        known = _count(colour)
        # Neighbours' colours, sorted within each row: what nodes are compared by.
        begin, around = rowptr, (row * known + colour[col]).sort().values - row * known
        if ignore_counts:
            key = torch.unique_consecutive(row * known + around)
            owner = key // max(known, 1)
            begin, around = torch.zeros_like(rowptr), key - owner * known
            begin[1:] = torch.bincount(owner, minlength=len(colour)).cumsum(0)
        refined = _grouped(colour, begin, around, known, draw)
        if _count(refined) == known:  # stable: no further round would tell more apart
            colours += [colour] * (rounds + 1 - len(colours))
        else:
            colours.append(refined)
    return colours


def _grouped(
    colour: Tensor, rowptr: Tensor, around: Tensor, known: int, draw: torch.Generator
) -> Tensor:
    degree = rowptr.diff()
    while True:
        salt = torch.randint(-(2**62), 2**62, (2, max(known, 1)), generator=draw).to(colour.device)
        # Sums of 64-bit numbers wrap around, which a hash may.
        sums = torch.cat([salt.new_zeros(1), salt[0][around].cumsum(0)])
        digest = sums[rowptr[1:]] - sums[rowptr[:-1]] + salt[1][colour]
        group, first = _numbered(digest)
        leader = first[group]
        same = (colour == colour[leader]) & (degree == degree[leader])
        if bool(same.all()) and _same_rows(rowptr, around, leader):
            return group


def _same_rows(rowptr: Tensor, around: Tensor, leader: Tensor) -> bool:
    """Say whether each row equals its leader's; the lengths do already."""
    shift = rowptr[leader] - rowptr[:-1]
    position = torch.arange(len(around), device=around.device) + torch.repeat_interleave(
        shift, rowptr.diff()
    )
    return torch.equal(around, around[position])


def _numbered(values: Tensor) -> tuple[Tensor, Tensor]:
    """Number equal values alike, in order of appearance: numbers, and who was the first of each."""
    ordered, place = values.sort(stable=True)
    fresh = torch.ones(len(values), dtype=torch.bool, device=values.device)
    fresh[1:] = ordered[1:] != ordered[:-1]
    first = place[fresh]  # stable: the earliest of its kind
    rank = torch.empty_like(first)
    order = first.argsort()
    rank[order] = torch.arange(len(first), device=values.device)
    number = torch.empty_like(place)
    number[place] = rank[fresh.cumsum(0) - 1]
    return number, first[order]


def _count(colour: Tensor) -> int:
    return int(colour.max()) + 1 if len(colour) > 0 else 0
