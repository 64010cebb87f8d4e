"""Variance-preserving aggregation for graph neural networks.

The public names live in rooms of their own and are imported on first use, so that importing the
package, and asking the command line for help, is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from .errors import GnnVpaError as GnnVpaError
from .errors import UsageError as UsageError

if TYPE_CHECKING:
    from .auditing import Audit as Audit
    from .auditing import audit as audit
    from .estimators import GraphClassifier as GraphClassifier
    from .estimators import GraphRegressor as GraphRegressor
    from .estimators import cross_validate as cross_validate
    from .nn import build_model as build_model
    from .ops import Graph as Graph
    from .ops import aggregate as aggregate
    from .ops import attend as attend
    from .ops import backend as backend
    from .ops import forget_graphs as forget_graphs
    from .pyg import DataLoader as DataLoader
    from .pyg import GroupEdges as GroupEdges
    from .pyg import MergeAlike as MergeAlike
    from .pyg import VPAggregation as VPAggregation
    from .pyg import VPGATConv as VPGATConv
    from .pyg import VPGATv2Conv as VPGATv2Conv
    from .pyg import VPGCNConv as VPGCNConv
    from .pyg import VPSGConv as VPSGConv
    from .pyg import VPTransformerConv as VPTransformerConv
    from .pyg import convert as convert
    from .pyg import global_vpa_pool as global_vpa_pool
    from .pyg import register as register
    from .results import Results as Results
    from .running import run as run
    from .signal import calibrate as calibrate
    from .signal import init_ as init_
    from .signal.probing import probe as probe
    from .trained import TrainedModel as TrainedModel
    from .trained import load_model as load_model
    from .trained import train_model as train_model

__version__ = "0.3.0.dev0"

_ROOMS = {
    "auditing": ("Audit", "audit"),
    "estimators": ("GraphClassifier", "GraphRegressor", "cross_validate"),
    "nn": ("build_model",),
    "ops": ("Graph", "aggregate", "attend", "backend", "forget_graphs"),
    "pyg": (
        "DataLoader",
        "GroupEdges",
        "MergeAlike",
        "VPAggregation",
        "VPGATConv",
        "VPGATv2Conv",
        "VPGCNConv",
        "VPSGConv",
        "VPTransformerConv",
        "convert",
        "global_vpa_pool",
        "register",
    ),
    "results": ("Results",),
    "running": ("run",),
    "signal": ("calibrate", "init_", "probe"),
    "trained": ("TrainedModel", "load_model", "train_model"),
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "Audit",
    "DataLoader",
    "GnnVpaError",
    "Graph",
    "GraphClassifier",
    "GraphRegressor",
    "GroupEdges",
    "MergeAlike",
    "Results",
    "TrainedModel",
    "UsageError",
    "VPAggregation",
    "VPGATConv",
    "VPGATv2Conv",
    "VPGCNConv",
    "VPSGConv",
    "VPTransformerConv",
    "aggregate",
    "attend",
    "audit",
    "backend",
    "build_model",
    "calibrate",
    "convert",
    "cross_validate",
    "forget_graphs",
    "global_vpa_pool",
    "init_",
    "load_model",
    "probe",
    "register",
    "run",
    "train_model",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value  # the next look-up does not come here
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
