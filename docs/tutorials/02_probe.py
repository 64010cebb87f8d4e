"""
Why does it not train?
======================

A loss that does not move. Somewhere in the network the signal has grown, shrunk, or become the same
for all nodes. The probe says where, and tries what would help.
"""

# %%
# A network that does not train
# -----------------------------
#
# Sixteen layers that take the mean of their neighbours, on MUTAG, without any normalisation.

from itertools import pairwise

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GraphConv, global_mean_pool

import gnn_vpa
from gnn_vpa.graphs import load

torch.manual_seed(0)
graphs = load("MUTAG").to_pyg()
loader = DataLoader(graphs, batch_size=94, shuffle=True)
batch = next(iter(loader))


class Net(nn.Module):
    """Sixteen layers, a mean over nodes, a head."""

    def __init__(self, aggr="add", layers=16, width=32):
        super().__init__()
        widths = [7] + [width] * layers
        self.convs = nn.ModuleList(
            GraphConv(before, after, aggr=aggr) for before, after in pairwise(widths)
        )
        self.head = nn.Linear(width, 2)

    def forward(self, x, edge_index, batch):
        for conv in self.convs:
            x = conv(x, edge_index).relu()
        return self.head(global_mean_pool(x, batch))


def train(model, epochs=8):
    """Return the loss of every step."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    losses = []
    for _ in range(epochs):
        for step in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(step.x, step.edge_index, step.batch), step.y)
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


mean = Net(aggr="mean")

# %%
# Ask the probe
# -------------
#
# One forward and one backward pass, on a copy. The verdict names the layer, the cause, and a
# remedy that has been tried.

report = gnn_vpa.probe(mean, batch.x, batch.edge_index, batch.batch)
print(report.verdict)

# %%
# All of it as a picture: the variance forward and backward, by degree, and how different
# neighbours still are.

# Picture: Variance forward and backward, by degree, and the distance of neighbours, by layer.
report.plot("signal.png")

# %%
# And as a table: ``to_frame()`` has a row for every step of the network.

frame = report.to_frame()
updates = frame[frame["step"] == "update"]
updates[["layer", "variance", "backward_variance", "distance"]].iloc[[0, 5, 10, 15]]

# %%
# Do what it says
# ---------------
#
# The same network, converted and calibrated. Both are trained for as long, with the same
# settings.

fixed, _ = gnn_vpa.convert(mean)
gnn_vpa.init_(fixed)
gnn_vpa.calibrate(fixed, (batch.x, batch.edge_index, batch.batch))
print(gnn_vpa.probe(fixed, batch.x, batch.edge_index, batch.batch).verdict)

# %%
# The losses:

torch.manual_seed(1)
as_it_was = train(mean)
torch.manual_seed(1)
mended = train(fixed)

fig, ax = plt.subplots()
ax.plot(as_it_was, "--", color="#0072B2", label="mean, PyTorch's weights")
ax.plot(mended, color="#009E73", label="converted, init_, calibrate")
ax.set(xlabel="step", ylabel="training loss")
ax.set_title("Training loss of 16 layers without normalisation, before and after")
ax.legend()
plt.show()

# %%
# While a model trains
# --------------------
#
# ``probe.during`` measures one step in so many, and changes nothing:

with gnn_vpa.probe.during(fixed, every=4) as signal:
    train(fixed, epochs=4)

# Picture: The signal of the network by layer, at several steps of its training.
signal.plot("training.png")

# %%
# On the command line: ``gnn-vpa probe MUTAG --model gcn --aggr mean --depth 16``. What is
# measured, and what cannot be seen: :doc:`the probe </probe>`.
