"""Users' own models: how they are found, made, called and told apart."""

from .adapter import Adapter as Adapter
from .adapter import pyg_batch as pyg_batch
from .batches import Inputs as Inputs
from .batches import Source as Source
from .build import build as build
from .build import check as check
from .build import conversion as conversion
from .build import own_model as own_model
from .build import unused_edge_features as unused_edge_features
from .factories import adopt as adopt
from .factories import elsewhere as elsewhere
from .factories import factory as factory
from .factories import is_own as is_own
from .factories import planned as planned
from .factories import register as register
from .factories import unknown as unknown
from .hashing import modules_of as modules_of
from .hashing import source_hash as source_hash
from .two_graphs import two_graphs as two_graphs
