"""The layers that PyG exports: the form that each takes, or the reason why it is left.

``HeteroConv``, ``DirGNNConv``, ``GPSConv`` and ``AntiSymmetricConv`` are not here: they pass no
messages themselves, and the layers inside them are converted.
"""

from collections.abc import Callable

from torch_geometric.nn import MessagePassing, conv

from ._forms import VPNormalised, VPSoftmax, VPSum, VPWeightedSum
from ._variants import Form
from .attention import VPGATConv, VPGATv2Conv
from .degree import VPGCNConv, VPSGConv
from .transformer import VPTransformerConv

Rule = Form | str | Callable[[MessagePassing], Form]

_CUGRAPH = "computes in kernels of cuGraph, which cannot be changed from here"

RULES: dict[type, Rule] = {
    conv.AGNNConv: VPSoftmax,
    conv.APPNP: VPNormalised,
    conv.ARMAConv: VPNormalised,
    conv.CGConv: VPSum,
    conv.ChebConv: "its recurrence needs the scaled Laplacian, with eigenvalues from -1 to 1",
    conv.ClusterGCNConv: "mixes a row-normalised matrix with its diagonal; no form keeps both",
    conv.CuGraphGATConv: _CUGRAPH,
    conv.CuGraphRGCNConv: _CUGRAPH,
    conv.CuGraphSAGEConv: _CUGRAPH,
    conv.DNAConv: VPNormalised,
    conv.DynamicEdgeConv: VPSum,
    conv.EdgeConv: VPSum,
    conv.EGConv: "normalises and aggregates in code of its own, several ways at once",
    conv.FAConv: "its attention, from -1 to 1, multiplies a degree normalisation; no form is known",
    conv.FastRGCNConv: "aggregates per relation in code of its own; use RGCNConv, which converts",
    conv.FeaStConv: VPSum,
    conv.FiLMConv: VPSum,
    conv.FusedGATConv: "computes in a fused kernel of dgNN; use GATConv, which converts",
    conv.GATConv: VPGATConv,
    conv.GatedGraphConv: VPWeightedSum,
    conv.GATv2Conv: VPGATv2Conv,
    conv.GCN2Conv: VPNormalised,
    conv.GCNConv: VPGCNConv,
    conv.GENConv: VPSum,
    conv.GeneralConv: lambda layer: VPSoftmax if layer.attention else VPSum,
    conv.GINConv: VPSum,
    conv.GINEConv: VPSum,
    conv.GMMConv: "weighs by Gaussian kernels within the message; their norm is not at hand",
    conv.GraphConv: VPWeightedSum,
    conv.GravNetConv: VPWeightedSum,
    conv.HANConv: VPSoftmax,
    conv.HEATConv: VPSoftmax,
    conv.HGTConv: VPSoftmax,
    conv.HypergraphConv: "normalises by the degrees of nodes and hyperedges within the message",
    conv.LEConv: VPWeightedSum,
    conv.LGConv: VPNormalised,
    conv.MeshCNNConv: VPSum,
    conv.MFConv: VPSum,
    conv.MixHopConv: VPNormalised,
    conv.NNConv: VPSum,
    conv.PANConv: "normalises the sum over path lengths, not the edges",
    conv.PDNConv: VPNormalised,
    conv.PNAConv: "rescales by degree on purpose (its scalers)",
    conv.PointGNNConv: VPSum,
    conv.PointNetConv: VPSum,
    conv.PointTransformerConv: VPSoftmax,
    conv.PPFConv: VPSum,
    conv.ResGatedGraphConv: VPSum,
    conv.RGATConv: "combines attention and degree in one of several ways within the message",
    conv.RGCNConv: VPSum,
    conv.SAGEConv: VPSum,
    conv.SGConv: VPSGConv,
    conv.SignedConv: VPSum,
    conv.SimpleConv: VPWeightedSum,
    conv.SplineConv: VPSum,
    conv.SSGConv: VPNormalised,
    conv.SuperGATConv: VPSoftmax,
    conv.TAGConv: VPNormalised,
    conv.TransformerConv: VPTransformerConv,
    conv.WLConv: "colours nodes; there are no features to aggregate",
    conv.WLConvContinuous: "divides by the degree itself, as the Weisfeiler-Lehman kernel asks",
    conv.XConv: "convolves a fixed number of points, without an aggregation",
}
