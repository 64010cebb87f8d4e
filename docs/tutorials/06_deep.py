"""
Deep without normalisation
==========================

64 layers, no BatchNorm, no LayerNorm. What it takes, and what vpa alone does not do.
"""

# %%
# Four networks of 64 layers
# --------------------------
#
# The paper's GCN without normalisation: with sum, mean and vpa, and with vpa, weights that fit and
# one pass over the data. MUTAG, one batch.

import matplotlib.pyplot as plt
import torch
from torch_geometric.data import Batch

import gnn_vpa
from gnn_vpa.graphs import load

graphs = load("MUTAG").to_pyg()
batch = Batch.from_data_list(graphs)


def network(aggr):
    """Return 64 layers of the same initial weights, whatever the aggregation."""
    torch.manual_seed(0)
    return gnn_vpa.build_model("deep", 7, 2, aggr, width=32, depth=64, branch=1)


networks = {"sum": network("sum"), "mean": network("mean"), "vpa": network("vpa")}
calibrated = network("vpa")
gnn_vpa.init_(calibrated)
inputs = (batch.x, batch.edge_index, batch.batch)
print(str(gnn_vpa.calibrate(calibrated, inputs)).splitlines()[0])
networks["vpa, calibrated"] = calibrated

# %%
# The signal at the start
# -----------------------
#
# The variance of each layer, and of the gradient that comes back to it.

styles = {
    "sum": ("#D55E00", "--"),
    "mean": ("#0072B2", ":"),
    "vpa": ("#56B4E9", "-."),
    "vpa, calibrated": ("#009E73", "-"),
}
fig, axes = plt.subplots(1, 2, figsize=(8, 3.8), layout="constrained")
for name, model in networks.items():
    frame = gnn_vpa.probe(model, *inputs).to_frame()
    layers = frame[frame["step"] == "update"].reset_index()
    colour, line = styles[name]
    axes[0].semilogy(layers.index + 1, layers["variance"], line, color=colour, label=name)
    axes[1].semilogy(layers.index + 1, layers["backward_variance"], line, color=colour)
axes[0].set(xlabel="layer", ylabel="variance", title="forward")
axes[1].set(xlabel="layer", ylabel="variance of the gradient", title="backward")
axes[0].legend()
fig.suptitle("Variance by layer of 64 layers, forward and backward")
plt.show()

# %%
# vpa alone is not enough: messages in a real graph resemble each other, and PyTorch's initial
# weights are small. ``init_`` and ``calibrate`` give every layer variance 1 on these data.
#
# Do they train?
# --------------


def losses(model, steps=25):
    """Return the training loss of every step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(*inputs), batch.y)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


fig, ax = plt.subplots()
for name, model in networks.items():
    colour, line = styles[name]
    ax.plot(losses(model), line, color=colour, label=name)
ax.set(xlabel="step", ylabel="training loss", yscale="log")
ax.set_title("Training loss of 64 layers without normalisation")
ax.legend()
plt.show()

# %%
# On MUTAG, whose nodes have one to four neighbours, PyTorch's weights happen to fit the sum. On
# data with more neighbours they do not: there the sum is not finite at 64 layers, and calibration
# is what rescues it. All depths, with and without residuals, on two data sets: :doc:`/depth`.
