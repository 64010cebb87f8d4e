"""Graphs remembered by the ``edge_index`` they were made from.

A network calls every layer with the same ``edge_index``: the first call groups the edges, the
others (and the backward pass) find them grouped.
"""

from collections.abc import MutableMapping

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from ._formats import Sizes
from ._graph import Graph

_graphs: MutableMapping[Tensor, tuple[object, Graph]] = WeakTensorKeyDictionary()


def as_graph(graph: Graph | Tensor, num_nodes: Sizes | None = None) -> Graph:
    """Return ``graph`` as a ``Graph``, the same one for the same unchanged tensor."""
    if isinstance(graph, Graph):
        return graph
    if not _memorable(graph):
        return Graph(graph, num_nodes)
    version = (graph._version, num_nodes)
    known = _graphs.get(graph)
    if known is None or known[0] != version:
        known = (version, Graph(graph, num_nodes))
        _graphs[graph] = known
    return known[1]


def _memorable(graph: object) -> bool:
    # A sparse tensor's values may carry a gradient or change unseen; inference tensors have no
    # version; under a transform or a compiler the tensor is not the user's own.
    return (
        not torch.compiler.is_compiling()
        and isinstance(graph, Tensor)
        and graph.layout == torch.strided
        and not graph.is_inference()
        and not torch._C._functorch.is_functorch_wrapped_tensor(graph)
    )
