"""
Many machines
=============

A run is a grid of cells: a method on a data set with one seed. Cells do not depend on each other,
each is recorded when it is finished, and what was interrupted goes on where it was. That is all
that more cores, GPUs or computers need.
"""

# %%
# What there is to do
# -------------------
#
# ``gnn-vpa run ... --plan`` prints it with the time that is expected. In Python, the cells of a
# grid:

from gnn_vpa.experiments import expand

grid = expand(["MUTAG"], ["gin", "gcn"], ["sum", "vpa"], seeds=(0, 1))
for cell in grid.cells:
    print(cell)

# %%
# Interrupt it, type it again
# ---------------------------
#
# Nothing that was finished is trained a second time: not after Ctrl-C, not after a power cut, and
# not when the grid has grown since. Here one aggregation first, then two.

import time

import gnn_vpa

setting = {"epochs": 4, "folds": 3, "device": "cpu", "out": "runs/grown"}
took = []
for aggrs in ("vpa", "vpa", "sum,vpa"):
    began = time.perf_counter()
    results = gnn_vpa.run("MUTAG", "gin", aggrs, **setting)
    took.append(time.perf_counter() - began)
    print(f"{aggrs}: {len(results.folds)} folds are there, {took[-1]:.1f} s")

# %%
# The second call trains nothing, the third only what is new:

import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(6, 2.4), layout="constrained")
ax.barh(["vpa", "vpa, again", "sum and vpa"], took, color="#0072B2")
ax.invert_yaxis()
ax.set(xlabel="seconds")
ax.set_title("Seconds of three calls of one run")
plt.show()

# %%
# One computer
# ------------
#
# On the CPU a run starts as many processes as cores and free memory allow and says how many and
# why; ``GNN_VPA_WORKERS=4`` asks for four. On a GPU ten folds, aggregations and settings that
# change no shapes train side by side as one step. Both need no option::
#
#    gnn-vpa run MUTAG NCI1 PROTEINS --model gin,gcn --aggr sum,mean,max,vpa
#
# Several computers
# -----------------
#
# Each needs the package and the data. With `Ray <https://docs.ray.io>`_ (``pip install
# 'gnn-vpa[ray]'``) one command hands the cells to all of them, and results come back to the
# folder of the computer where it was typed::
#
#    ray start --head                                   # here
#    ray start --address=HERE:6379                      # on every other computer
#    gnn-vpa run COLLAB REDDIT-BINARY --model gin,gcn --ray
#
# Without Ray, divide the grid by hand, a data set for each computer::
#
#    gnn-vpa run COLLAB --model gin,gcn --out runs/collab           # one computer
#    gnn-vpa run REDDIT-BINARY --model gin,gcn --out runs/reddit    # another
#
# and look at all folders together in Python: ``pandas.concat(gnn_vpa.Results(folder).folds for
# folder in ["runs/collab", "runs/reddit"])``. Processes that share a file system need not divide
# anything: the same command in each, with the same folder, and they share the cells.
#
# What is there on this: :doc:`many machines </_generated/machines/index>`.
