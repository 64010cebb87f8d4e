"""
scikit-learn, and saved models
==============================

A graph network as an estimator: ``fit``, ``predict``, pipelines and searches. And a trained model
as a file that somebody else can use.
"""

# %%
# Fit and predict
# ---------------
#
# ``X`` is a list of PyG graphs; labels may be words.

from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import GridSearchCV, train_test_split

import gnn_vpa
from gnn_vpa.graphs import load

graphs = load("MUTAG").to_pyg()
labels = ["mutagenic" if graph.y == 1 else "safe" for graph in graphs]
train_graphs, test_graphs, train_labels, test_labels = train_test_split(
    graphs, labels, test_size=0.25, stratify=labels, random_state=0
)

classifier = gnn_vpa.GraphClassifier(
    "gin", aggr="vpa", epochs=40, learning_rate=0.01, random_state=0
)
classifier.fit(train_graphs, train_labels)
print(f"test accuracy {classifier.score(test_graphs, test_labels):.2f}")

# %%
# What scikit-learn offers for classifiers works with it:

import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(4.5, 3.6))
ConfusionMatrixDisplay.from_predictions(
    test_labels, classifier.predict(test_graphs), ax=ax, cmap="Blues", colorbar=False
)
ax.set_title("Confusion matrix of the test graphs")
plt.show()

# %%
# A search
# --------
#
# The aggregation is a parameter like any other.

search = GridSearchCV(
    gnn_vpa.GraphClassifier("gin", epochs=6, random_state=0),
    {"aggr": ["sum", "vpa"], "learning_rate": [0.01, 0.001]},
    cv=2,
)
search.fit(train_graphs, train_labels)
print(search.best_params_)

# %%
# A model to keep
# ---------------
#
# ``model_`` is what was trained. A folder holds weights, configuration and a card; loading it
# runs no code from the file.

classifier.model_.save("mutag-vpa")
again = gnn_vpa.load_model("mutag-vpa")
print(again.predict(test_graphs[:5]))
print(again.predict_proba(test_graphs[:2]).round(3))

# %%
# The card says how good the model is and how sure that is:

from pathlib import Path

print("\n".join(Path("mutag-vpa", "README.md").read_text("utf-8").splitlines()[:24]))

# %%
# Graphs that do not fit are refused with a sentence, and not guessed at:

try:
    again.predict([graphs[0].clone().update({"x": graphs[0].x[:, :3]})])
except gnn_vpa.UsageError as error:
    print(error)

# %%
# The same on the command line::
#
#    gnn-vpa train MUTAG --aggr vpa --out mutag-vpa
#    gnn-vpa predict mutag-vpa MUTAG --out predictions.csv    # or other graphs: NEW.zip
#    gnn-vpa export mutag-vpa --format pt2                    # runs without gnn-vpa
#
# More: :doc:`/scikit-learn`, :doc:`/models`.
