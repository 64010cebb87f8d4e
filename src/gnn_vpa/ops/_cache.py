"""Graphs remembered by the ``edge_index`` they were made from.

A network calls every layer with the same ``edge_index``: the first call groups the edges, the
others (and the backward pass) find them grouped.
"""

import weakref
from typing import Any

import torch
from torch import Tensor

from ._csr import is_plain_list
from ._edge_index import is_edge_index
from ._formats import Sizes
from ._graph import Graph
from ._script import refuse_script

_memories: list["Memory"] = []


class Memory:
    """What is known of tensors, each for as long as it lives, or until all are forgotten."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[weakref.ref[Tensor], Any]] = {}
        _memories.append(self)

    def get(self, tensor: Tensor, otherwise: Any = None) -> Any:
        """Return what is known of a tensor."""
        ref, known = self._known.get(id(tensor), _NOTHING)
        return known if ref() is tensor else otherwise

    def put(self, tensor: Tensor, known: Any) -> None:
        """Remember what is known of a tensor."""
        key = id(tensor)

        def forget(ref: object) -> None:
            if self._known.get(key, _NOTHING)[0] is ref:
                del self._known[key]

        self._known[key] = (weakref.ref(tensor, forget), known)

    def clear(self) -> None:
        """Forget all."""
        self._known.clear()


def _nobody() -> None:
    """Stand for a reference to a tensor that is gone."""


_NOTHING: tuple[Any, Any] = (_nobody, None)
_graphs = Memory()


class Mark:
    """What can be seen of a tensor without reading it: if marks are equal, so is the content.

    It holds on to the memory that the tensor had: freed, it could become another tensor's, at the
    same address.
    """

    def __init__(self, tensor: Tensor) -> None:
        plain = tensor.as_tensor() if is_edge_index(tensor) else tensor
        self.storage = storage = plain.untyped_storage()
        versions = plain._version if plain is tensor else (tensor._version, plain._version)
        place = (storage._cdata, plain.data_ptr(), plain.shape, plain.stride(), plain.dtype)
        self.seen = (versions, place)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Mark) and self.seen == other.seen

    __hash__ = None  # type: ignore[assignment]  # marks are compared, and never looked up


def as_graph(graph: Graph | Tensor, num_nodes: Sizes | None = None) -> Graph:
    """Return ``graph`` as a ``Graph``, the same one for the same unchanged tensor."""
    if isinstance(graph, Graph):
        return graph
    refuse_script()
    if not memorable(graph):
        return Graph(graph, num_nodes)
    mark = Mark(graph)
    known: tuple[Mark, Sizes | None, Graph] | None = _graphs.get(graph)
    if known is None or known[1] != num_nodes or known[0] != mark:
        known = (mark, num_nodes, Graph.loose(graph, num_nodes))
        _graphs.put(graph, known)
    return known[2]


def graph_of_list(edge_index: Tensor, sizes: tuple[int, int]) -> Graph | None:
    """Return what ``as_graph`` does of a plain list of edges on the CPU, and else None.

    Nothing of a list that a layer before has seen needs to be looked at again.
    """
    if type(edge_index) is not Tensor or torch.compiler.is_compiling():
        return None
    known: tuple[Mark, Sizes | None, Graph] | None = _graphs.get(edge_index)
    if known is not None and known[1] == sizes and known[0] == Mark(edge_index):
        return known[2]
    if not is_plain_list(edge_index):
        return None
    graph = Graph.of_list(edge_index, sizes)
    if not edge_index.is_inference():  # whose changes could not be seen
        _graphs.put(edge_index, (Mark(edge_index), sizes, graph))
    return graph


def memorable(graph: object) -> bool:
    """Tell whether a change of ``graph`` would be seen."""
    # A sparse tensor's values may carry a gradient or change unseen.
    return isinstance(graph, Tensor) and graph.layout == torch.strided and is_traceable(graph)


def is_traceable(tensor: Tensor) -> bool:
    """Tell whether versions of ``tensor`` are those of the user's own tensor."""
    # Inference tensors have no version; under a transform or a compiler the tensor is not the
    # user's own, and other subclasses of Tensor hold their content where we do not look.
    return (
        not torch.compiler.is_compiling()
        and (type(tensor) is Tensor or is_edge_index(tensor))
        and not tensor.is_inference()
        and not torch._C._functorch.is_functorch_wrapped_tensor(tensor)
    )


def forget_graphs() -> None:
    """Forget all that is remembered of tensors of edges: the next call reads them anew.

    The edges of a tensor are grouped once, and remembered as long as it lives and is unchanged.
    Seen as changes are operations in place (``edge_index[0, 0] = 1``), another content
    (``edge_index.data = other``, ``set_``) and another shape. Not seen are writes into the same
    memory behind PyTorch's back: through ``edge_index.data[...]``, through a NumPy array that
    shares the memory, by a kernel of your own. Call this after them, or make a ``Graph`` yourself.

    Example:
        >>> import numpy as np
        >>> from gnn_vpa.ops import aggregate
        >>> edges = np.array([[0, 1], [2, 2]])
        >>> edge_index = torch.from_numpy(edges)
        >>> aggregate(torch.ones(3, 1), edge_index, "sum").squeeze(1)
        tensor([0., 0., 2.])
        >>> edges[1] = 1
        >>> forget_graphs()
        >>> aggregate(torch.ones(3, 1), edge_index, "sum").squeeze(1)
        tensor([0., 2., 0.])
    """
    for known in _memories:
        known.clear()
