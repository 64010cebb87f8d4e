"""The one formula: ``out_i = s_i * sum_j w_ij x_j``, fast, exact and differentiable."""

from ._aggregate import aggregate as aggregate
from ._attend import attend as attend
from ._backend import backend as backend
from ._backend import use_backend as use_backend
from ._cache import forget_graphs as forget_graphs
from ._graph import Graph as Graph

__all__ = ["Graph", "aggregate", "attend", "backend", "forget_graphs", "use_backend"]
