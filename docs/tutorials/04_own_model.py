"""
My own model and task
=====================

A model is a function that returns a module. Labels may be classes, several at once, or numbers.
Both go through the same folds, the same statistics and the same report as the models of the
paper.
"""

# %%
# Graphs with a number to learn
# -----------------------------
#
# Random graphs; what is to be learned is how many triangles a node is in, on average. Any list of
# PyG graphs will do.

import networkx as nx
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GIN, global_mean_pool

import gnn_vpa


def random_graph(seed):
    """Return a graph of 12 to 24 nodes with its number of triangles for each node."""
    size = 12 + seed % 13
    drawn = nx.gnp_random_graph(size, 0.15 + 0.02 * (seed % 10), seed=seed)
    edges = torch.tensor([*drawn.edges, *((b, a) for a, b in drawn.edges)]).t().contiguous()
    triangles = sum(nx.triangles(drawn).values()) / size
    return Data(
        x=torch.ones(size, 1), edge_index=edges, y=torch.tensor([triangles]), num_nodes=size
    )


graphs = [random_graph(seed) for seed in range(150)]
print(graphs[0])

# %%
# A model
# -------
#
# It is called as ``make(in_channels, out_channels, **options)``. Where it takes ``aggr`` it is
# given the one that is compared; otherwise it is converted.


class Net(nn.Module):
    """Three layers of GIN, a mean over nodes, a head."""

    def __init__(self, in_channels, out_channels, hidden=16):
        super().__init__()
        self.body = GIN(in_channels, hidden, num_layers=3)
        self.head = nn.Linear(hidden, out_channels)

    def forward(self, x, edge_index, batch):
        return self.head(global_mean_pool(self.body(x, edge_index), batch))


# %%
# Compare it with the paper's GIN
# -------------------------------
#
# Numbers as labels make it a regression; the metric is an error, of which lower is better.

results = gnn_vpa.run(
    {"triangles": graphs},
    ["gin", Net],
    "sum,vpa",
    metric="mae",
    lr=0.01,
    epochs=15,
    folds=3,
    device="cpu",
    out="runs/triangles",
)
print(results.answer.text)

# %%
# Mean absolute error over the folds:

results.folds.groupby(["model", "aggregation"])["test_score"].agg(["mean", "std"]).round(3)

# %%
# In a picture, every fold a dot:

import matplotlib.pyplot as plt

fig, ax = plt.subplots(layout="constrained")
colours = {"sum": "#D55E00", "vpa": "#009E73"}
names = []
for (model, aggr), group in results.folds.groupby(["model", "aggregation"]):
    ax.plot(group["test_score"], [len(names)] * len(group), "o", color=colours[aggr])
    names.append(f"{'Net' if 'Net' in model else model}+{aggr}")
ax.set_yticks(range(len(names)), names)
ax.set(xlabel="mean absolute error of a fold (lower is better)", xscale="log", ylim=(-0.5, 3.5))
ax.set_title("Test error of each fold by method")
plt.show()

# %%
# Settings, chosen honestly
# -------------------------
#
# A list makes a grid. ``select=True`` chooses in each fold by validation alone, and trains what
# was chosen anew; test scores have no say.

chosen = gnn_vpa.run(
    {"triangles": graphs},
    Net,
    "vpa",
    metric="mae",
    lr=[0.01, 0.001],
    hidden=[8, 16],
    select=True,
    final_runs=1,
    epochs=8,
    folds=3,
    device="cpu",
    out="runs/chosen",
)
chosen.folds[["fold", "chosen", "val_score", "test_score"]].round(3)

# %%
# On the command line a model is ``module:function``, in a file beside you::
#
#    gnn-vpa run DATA.zip --model gin,mynets:make --metric mae --set hidden=8,16 --select
#
# More: :doc:`models of your own </own-models>`, :doc:`tasks </tasks>`,
# :doc:`grids and splits </grids>`.
