"""The models: one definition each, for one model or for many trained side by side."""

from ._batch_norm import BatchNorm as BatchNorm
from ._lane_rows import LaneRows as LaneRows
from ._level_batch import Hop as Hop
from ._level_batch import LevelBatch as LevelBatch
from ._model import MODELS as MODELS
from ._model import Model as Model
from ._self_loops import with_self_loops as with_self_loops
from ._weighted_graph import WeightedGraph as WeightedGraph
from .build import all_options as all_options
from .build import build_model as build_model
from .gat import GAT as GAT
from .gcn import GCN as GCN
from .gin import GIN as GIN
from .sgc import SGC as SGC

from .deep import DeepGCN as DeepGCN  # isort: skip  # the order of imports is that of MODELS

__all__ = [
    "GAT",
    "GCN",
    "GIN",
    "MODELS",
    "SGC",
    "BatchNorm",
    "DeepGCN",
    "Hop",
    "LaneRows",
    "LevelBatch",
    "Model",
    "WeightedGraph",
    "all_options",
    "build_model",
    "with_self_loops",
]
