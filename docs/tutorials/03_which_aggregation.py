"""
Which aggregation for my data?
==============================

Ask before you train, then compare, then read how sure the answer is. The data are a list of PyG
graphs, a TU archive, or a name; here MUTAG, which comes with the package.
"""

# %%
# Before training: the audit
# --------------------------
#
# What is the best accuracy that any message-passing network can have? Which test graphs have a
# twin in the training part? What does no network at all reach?

import gnn_vpa

audit = gnn_vpa.audit("MUTAG", baselines=False)  # baselines take some seconds more
for finding in audit.findings:
    print("-", finding.text)

# %%
# Train
# -----
#
# Four aggregations on the same folds. The paper trains for 200 epochs on ten folds; this page for
# 15 on five, so that it is quick. What was run is kept in a folder: the same line again goes on
# where it was.

results = gnn_vpa.run(
    "MUTAG", "gin", "sum,mean,max,vpa", epochs=15, folds=5, device="cpu", out="runs/mutag"
)

# %%
# The answer
# ----------
#
# Which aggregations may be the best, which to avoid and what that costs, and what would make it
# surer.

print(results.answer.text)

# %%
# As data: what may be the best for each model and data set, and the default.

print(results.answer.may_be_best)
print(results.answer.default)

# %%
# Every fold is a row of a frame, so that anything else can be asked of it:

results.folds.pivot_table(index="aggregation", columns="fold", values="test_score").round(3)

# %%
# In a picture: the folds that are compared are the same graphs for all four.

import matplotlib.pyplot as plt

folds = results.folds
colours = {"sum": "#D55E00", "mean": "#0072B2", "max": "#CC79A7", "vpa": "#009E73"}
fig, ax = plt.subplots()
for place, name in enumerate(colours):
    scores = 100 * folds[folds["aggregation"] == name]["test_score"]
    ax.plot([place] * len(scores), scores, "o", color=colours[name], alpha=0.6)
    ax.hlines(scores.mean(), place - 0.25, place + 0.25, color=colours[name])
ax.set(xticks=range(4), xticklabels=list(colours), ylabel="test accuracy, %")
ax.set_title("Test accuracy of each fold, and its mean, by aggregation")
plt.show()

# %%
# The report
# ----------
#
# One page to show, tables to paste:

print(results.report().name)

# %%
# The same on the command line::
#
#    gnn-vpa audit MUTAG
#    gnn-vpa run MUTAG --model gin --aggr sum,mean,max,vpa
#    gnn-vpa report runs/mutag --format html,md,tex,csv
#
# How the answer is made: :doc:`/answer`. What was seen on other data: :doc:`/which-aggregation`.
