"""
My PyG model keeps its signal
=============================

You have a model of PyTorch Geometric. Its layers add up messages, so a node with many neighbours
gets large numbers, and the next layer larger ones. One call gives the model back in a form that
divides by the square root of what was added.
"""

# %%
# A graph and a model
# -------------------
#
# 2,000 nodes with 2 to 60 neighbours, and a GIN as PyG makes it.

import matplotlib.pyplot as plt
import torch
from torch_geometric.nn import GIN

import gnn_vpa

torch.manual_seed(0)
nodes = 2_000
degree = torch.randint(2, 61, (nodes,))
target = torch.arange(nodes).repeat_interleave(degree)
source = torch.randint(nodes, (len(target),))
edge_index = torch.stack([source, target])
x = torch.randn(nodes, 16)

model = GIN(16, 32, num_layers=5)

# %%
# Convert it
# ----------
#
# ``convert`` returns a copy with the same weights, and a report of what was changed and what was
# left. Your model stays as it was.

converted, report = gnn_vpa.convert(model)
print(report)

# %%
# A state dict of the old one loads into the new one, and the other way round.

print(converted.load_state_dict(model.state_dict()))

# %%
# What it does to the signal
# --------------------------
#
# The probe runs a model once and measures what arrives at each layer.


def variances(network):
    """Return the variance behind each message-passing layer."""
    frame = gnn_vpa.probe(network, x, edge_index).to_frame()
    return frame[frame["step"] == "update"]["variance"].tolist()


before, after = variances(model), variances(converted)
fig, ax = plt.subplots()
ax.semilogy(range(1, 6), before, "s--", color="#D55E00", label="as it was (sum)")
ax.semilogy(range(1, 6), after, "o-", color="#009E73", label="converted (vpa)")
ax.set(xlabel="layer", ylabel="variance", xticks=range(1, 6))
ax.set_title("Variance by layer of a GIN, before and after convert")
ax.legend()
plt.show()

# %%
# The sum's variance grows from layer to layer. In the converted model it does not: here it falls
# a little, because PyTorch's initial weights are small. ``init_`` draws weights that fit, and
# ``calibrate`` looks at the data and makes every layer's variance 1:

gnn_vpa.init_(converted)
gnn_vpa.calibrate(converted, (x, edge_index))
print([round(value, 2) for value in variances(converted)])

# %%
# Attention and degree normalisation
# ----------------------------------
#
# A softmax sums to 1 and so divides by N, a GCN by degrees. To divide their sums by the root of N
# would not mend them; ``convert`` gives each the form that it needs.

from torch_geometric.nn import GAT, GCN, GraphConv

for parent in (GAT(16, 32, num_layers=2, heads=4), GCN(16, 32, num_layers=2)):
    print(gnn_vpa.convert(parent)[1])

# %%
# Without ``convert``
# -------------------
#
# Layers can also be built with it. After ``register`` a layer of PyG that is made with
# ``aggr="vpa"`` is what ``convert`` would make of it.

gnn_vpa.register()
layer = GraphConv(16, 32, aggr="vpa")
out = layer(x, edge_index)

# %%
# PyG itself has ``torch_geometric.nn.aggr.VariancePreservingAggregation``, the same sum over the
# root of N for unweighted messages. On those both give the same numbers:

from torch_geometric.nn import SimpleConv
from torch_geometric.nn.aggr import VariancePreservingAggregation

theirs = SimpleConv(aggr=VariancePreservingAggregation())(x, edge_index)
ours = gnn_vpa.aggregate(x, edge_index, "vpa")
print(f"largest difference {(theirs - ours).abs().max():.1e}")

# %%
# What is added here: kernels that make no edges x features tensor, weights in the count, the
# forms for attention and degrees, and the means to see whether it helps. Next: :doc:`why does it
# not train? </_generated/tutorials/02_probe>`
