"""Message passing through ``gnn_vpa.ops``, and through PyG's own steps where somebody watches."""

from inspect import Parameter
from typing import Any, ClassVar, NoReturn

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing
from torch_geometric.typing import Adj, Size

from ..ops import Graph
from ..ops.internal import (
    as_graph,
    graph_of_list,
    is_on_host,
    raise_unscriptable,
)
from ._along import Edges
from ._edges import graph_of_rows, has_unit_values, plain_edges
from ._small import small
from ._traced import traced

_HOOKS = tuple(
    f"_{step}_forward_{when}hooks"
    for step in ("propagate", "message", "aggregate", "message_and_aggregate")
    for when in ("", "pre_")
)
_VALUES = ("edge_weight", "edge_attr", "edge_type")  # what the values of a sparse matrix may be


class VPMessagePassing(MessagePassing):  # type: ignore[misc]
    """The base of all variance-preserving layers, to be mixed in before a layer of PyG.

    A layer whose message is the source's feature times a weight is computed by ``_fused``, without
    an edges x features tensor. Where the messages are needed (an explanation, a hook, feature
    decomposition, static graphs) or are something else, PyG's steps run one by one: ``message``,
    ``aggregate``, ``update``. Both ways give the same numbers.
    """

    _linear: ClassVar[bool] = False  # is the message the source's feature times a weight?
    _takes_small: ClassVar[bool] = False  # does ``_fused`` know edges that are not grouped?

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Keep PyG from writing code for the class, which fails for some names and instances."""
        super().__init_subclass__(**kwargs)
        for name in ("propagate", "edge_updater"):
            if name not in vars(cls):
                setattr(cls, name, vars(VPMessagePassing)[name])
        if "_linear" not in vars(cls) and vars(cls).keys() & {"message", "aggregate", "update"}:
            cls._linear = False

    def propagate(self, edge_index: Adj, size: Size = None, **kwargs: Any) -> Tensor:
        """Send messages along the edges, aggregate and update them, as in PyG."""
        ends = self._plain_ends(edge_index, size, self._features(kwargs))
        if ends is not None:
            return self._fused(*ends, kwargs)
        sizes = self._check_input(edge_index, size)
        kwargs = self._turned(kwargs)
        edge_index, values = plain_edges(edge_index)
        if values is not None:
            self._take_values(values, kwargs)
        if not self._unwatched(self._features(kwargs)):
            self._take_defaults(kwargs, ["message", "aggregate", "update"])
            # The class' own ``propagate`` is this one, and PyG may have written another over
            # that of MessagePassing; the original runs the steps and generates nothing.
            original = vars(MessagePassing).get("_orig_propagate", MessagePassing.propagate)
            out: Tensor = original(self, edge_index, size=sizes, **kwargs)
            return out
        source, graph = self._ends(edge_index, sizes, self._features(kwargs))
        return self._fused(source, graph, kwargs)

    def __prepare_scriptable__(self) -> NoReturn:  # called by torch.jit.script …
        raise_unscriptable()

    def _slow_forward(self, *_: Any, **__: Any) -> NoReturn:  # … and this by torch.jit.trace
        raise_unscriptable()

    def edge_updater(self, edge_index: Adj, size: Size = None, **kwargs: Any) -> Tensor:
        """Compute something for each edge, as in PyG."""
        for hook in self._edge_update_forward_pre_hooks.values():
            changed = hook(self, (edge_index, size, kwargs))
            edge_index, size, kwargs = (edge_index, size, kwargs) if changed is None else changed
        sizes = self._check_input(edge_index, size)
        self._take_defaults(kwargs, ["edge_update"])
        data = self._collect(self._edge_user_args, edge_index, sizes, self._turned(kwargs))
        out: Tensor = self.edge_update(**self.inspector.collect_param_data("edge_update", data))
        for hook in self._edge_update_forward_hooks.values():
            changed = hook(self, (edge_index, size, kwargs), out)
            out = out if changed is None else changed
        return out

    def _fused(self, source: Tensor, graph: Any, kwargs: dict[str, Any]) -> Tensor:
        """Compute all of message, aggregate and update at once, along ``Edges`` of any form."""
        raise NotImplementedError

    def _features(self, kwargs: dict[str, Any]) -> Any:
        """Return the features that messages are made of: of all nodes, or of both ends."""
        return kwargs.get("x")

    def _turned(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Let the first of a pair belong to the sources in both flows, as PyG's own code does."""
        if self.flow == "source_to_target":
            return kwargs
        return {k: v[::-1] if isinstance(v, tuple | list) else v for k, v in kwargs.items()}

    def _takes_values(self, matrix: Tensor) -> bool:
        """Say whether values of a sparse matrix matter: not as weights that are all 1."""
        asked = [name for name in _VALUES if name in self._user_args]
        return len(asked) > 0 and not (asked == ["edge_weight"] and has_unit_values(matrix))

    def _take_values(self, values: Tensor, kwargs: dict[str, Any]) -> None:
        """Read the values of a sparse matrix as PyG does: as what the message asks for."""
        for name in _VALUES:
            fits = values.dim() > 1 or name != "edge_attr"
            if fits and name in self._user_args and kwargs.get(name) is None:
                kwargs[name] = values

    def _take_defaults(self, kwargs: dict[str, Any], steps: list[str]) -> None:
        """Fill in what was not given, which PyG's generated code does and its steps do not."""
        for parameter in self.inspector.get_flat_params(steps, exclude=self.special_args):
            if parameter.default is not Parameter.empty:
                kwargs.setdefault(parameter.name, parameter.default)

    def _unwatched(self, x: Any) -> bool:
        """Say whether nobody sees the messages made of ``x``, the features of one end or both."""
        if not self._linear or self.explain or self.decomposed_layers != 1:
            return False
        if any(map(vars(self).get, _HOOKS)):
            return False
        for end in x if isinstance(x, tuple | list) else (x,):
            if end is not None and self.node_dim not in (0, -end.dim()):
                return False
        return True

    def _plain_ends(self, edge_index: Adj, size: Size, x: Any) -> tuple[Tensor, Edges] | None:
        """Return what ``_ends`` does, where edges are a plain list, of which PyG asks nothing.

        A sparse matrix is one too, where its values do not matter.
        """
        source, target = x if type(x) is tuple else (x, x)
        if self.flow != "source_to_target" or not isinstance(source, Tensor):
            return None
        if type(edge_index) is not Tensor or not self._unwatched(x):
            return None
        sizes = (source.shape[0], (source if target is None else target).shape[0])
        if size is not None and tuple(size) != sizes:
            return None
        is_traced = torch.compiler.is_compiling()
        if edge_index.layout != torch.strided:
            # On a GPU it is grouped at once: a matrix is made to be kept.
            fits = is_on_host(edge_index) and edge_index.shape == sizes[::-1]
            if not fits or self._takes_values(edge_index):
                return None
            graph = graph_of_rows(edge_index)
            if graph is not None:
                return source, graph
            edge_index, _ = plain_edges(edge_index)
        if self._takes_small and target is not None:
            # Under a compiler, or on a GPU.
            edges = (traced if is_traced else small)(edge_index, source, sizes[1])
            if edges is not None:
                return source, edges
        graph = graph_of_list(edge_index, sizes)
        return None if graph is None else (source, graph)

    def _ends(self, edge_index: Tensor, sizes: list[int | None], x: Any) -> tuple[Tensor, Graph]:
        """Return the features of the sources, and the graph, as PyG would find them."""
        i, j = (1, 0) if self.flow == "source_to_target" else (0, 1)
        ends = dict(enumerate(x)) if isinstance(x, tuple | list) else {j: x}
        for dim, end in ends.items():
            if end is not None:
                self._set_size(sizes, dim, end)
        num_sources, num_targets = sizes[j], sizes[j] if sizes[i] is None else sizes[i]
        if j == 1:
            edge_index = edge_index.flip(0)
        assert num_sources is not None
        assert num_targets is not None
        return ends[j], as_graph(edge_index, (num_sources, num_targets))
