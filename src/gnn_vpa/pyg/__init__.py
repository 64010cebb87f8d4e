"""Drop-ins for PyTorch Geometric: aggregations, layers, and the conversion of a whole model."""

from ..nn import BatchNorm as BatchNorm
from ._aggregation import VPAggregation as VPAggregation
from ._convert import convert as convert
from ._norm import vp_gcn_norm as vp_gcn_norm
from ._pool import global_vpa_pool as global_vpa_pool
from ._register import register as register
from ._report import Change as Change
from ._report import ConversionReport as ConversionReport
from .attention import VPGATConv as VPGATConv
from .attention import VPGATv2Conv as VPGATv2Conv
from .degree import VPGCNConv as VPGCNConv
from .degree import VPSGConv as VPSGConv
from .group import GroupEdges as GroupEdges
from .loader import DataLoader as DataLoader
from .merge import MergeAlike as MergeAlike
from .merge import merged_graph as merged_graph
from .merge import merged_readout as merged_readout
from .transformer import VPTransformerConv as VPTransformerConv

__all__ = [
    "BatchNorm",
    "Change",
    "ConversionReport",
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
    "merged_graph",
    "merged_readout",
    "register",
    "vp_gcn_norm",
]
