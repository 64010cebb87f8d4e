"""A program for an installed package: what the README promises, without the repository.

It is run by the Python of an environment that has the package and nothing else.
"""

import sys
from importlib.metadata import metadata, version
from importlib.resources import files
from pathlib import Path

import gnn_vpa

place = Path(gnn_vpa.__file__).resolve()
assert place.is_relative_to(Path(sys.prefix).resolve()), f"imported from {place}"
assert version("gnn-vpa") == gnn_vpa.__version__
assert metadata("gnn-vpa")["License-Expression"] == "MIT"
for name in ("graphs/data/MUTAG.zip", "graphs/data/NOTICE.md", "paper/table1.csv", "py.typed"):
    assert files("gnn_vpa").joinpath(name).is_file(), f"{name} was not installed"

import torch  # noqa: E402
from torch_geometric.nn import GAT  # noqa: E402

model, report = gnn_vpa.convert(GAT(16, 8, num_layers=2, heads=2))
edge_index = torch.tensor([[1, 2, 3, 0], [0, 0, 0, 1]])
x = torch.randn(4, 16)
assert model(x, edge_index).shape == (4, 8), report
out = gnn_vpa.aggregate(x, edge_index, "vpa")
assert torch.allclose(out[0], (x[1] + x[2] + x[3]) / 3**0.5)
out = gnn_vpa.aggregate(x.requires_grad_(), edge_index, "max")
out.sum().backward()  # type: ignore[no-untyped-call]

signal = gnn_vpa.probe(model, x.detach(), edge_index)
signal.to_html("signal.html")
assert signal.verdict

results = gnn_vpa.run(["MUTAG"], models=["gin"], aggrs=["sum", "vpa"], epochs=2, out="runs/smoke")
assert len(results.folds) == 20, results.folds
print(f"gnn-vpa {gnn_vpa.__version__} works with torch {torch.__version__}")
