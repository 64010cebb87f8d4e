"""The paper's models: one definition each, for one model or for many trained side by side."""

from ._blocks import Blocks as Blocks
from ._message import Scaled as Scaled
from ._message import WithSelf as WithSelf
from ._model import Model as Model
from ._self_loops import Looped as Looped
from ._self_loops import with_self_loops as with_self_loops
from .build import build_model as build_model
from .deep import DeepGCN as DeepGCN
from .gat import GAT as GAT
from .gcn import GCN as GCN
from .gin import GIN as GIN
from .sgc import SGC as SGC

__all__ = [
    "GAT",
    "GCN",
    "GIN",
    "SGC",
    "Blocks",
    "DeepGCN",
    "Looped",
    "Model",
    "Scaled",
    "WithSelf",
    "build_model",
    "with_self_loops",
]
