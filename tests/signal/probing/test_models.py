"""The probe on every model of PyG that can be built from plain inputs."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, SAGEConv, models
from torch_geometric.nn.models.tgn import IdentityMessage, LastAggregator

import gnn_vpa

NODES, WIDTH, EDGES = 24, 8, 120
_draw = torch.Generator().manual_seed(0)
X = torch.randn(NODES, WIDTH, generator=_draw)
EDGE_INDEX = torch.randint(NODES, (2, EDGES), generator=_draw)
EDGE_ATTR = torch.randn(EDGES, 3, generator=_draw)
BATCH = torch.tensor([0] * 10 + [1] * 14)
POSITIONS = torch.randn(NODES, 3, generator=_draw)
ATOMS = torch.randint(1, 9, (NODES,), generator=_draw)

Call = tuple[Any, ...]


class _Variational(nn.Module):
    """The encoder of the documentation's example: a mean and a log-variance."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.mu, self.logstd = GCNConv(8, 8), GCNConv(8, 4), GCNConv(8, 4)

    def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        x = self.conv(x, edge_index).relu()
        return self.mu(x, edge_index), self.logstd(x, edge_index)


class _EdgeModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = nn.Linear(2 * WIDTH + 3, 3)

    def forward(self, src: Tensor, dst: Tensor, edge_attr: Tensor, *_: Any) -> Tensor:
        out: Tensor = self.lin(torch.cat([src, dst, edge_attr], dim=1))
        return out


def _distances(pos: Tensor, _: Tensor) -> tuple[Tensor, Tensor]:
    """All pairs of atoms, in the place of a radius graph, which needs a package of its own."""
    pairs = torch.combinations(torch.arange(len(pos))).T
    edge_index = torch.cat([pairs, pairs.flip(0)], dim=1)
    return edge_index, (pos[edge_index[0]] - pos[edge_index[1]]).norm(dim=1)


def _history() -> Data:
    """Two facts, each with three earlier objects of its subject and its object."""
    past = torch.tensor([0, 1, 2, 3, 4, 5])
    return Data(
        sub=torch.tensor([0, 1]),
        rel=torch.tensor([0, 1]),
        obj=torch.tensor([2, 3]),
        h_sub=past,
        h_sub_t=torch.tensor([0, 1, 2, 0, 1, 2]),
        h_sub_batch=torch.tensor([0, 0, 0, 1, 1, 1]),
        h_obj=past,
        h_obj_t=torch.tensor([0, 1, 2, 0, 1, 2]),
        h_obj_batch=torch.tensor([0, 0, 0, 1, 1, 1]),
    )


def _encoder() -> nn.Module:
    return models.GCN(WIDTH, 8, 2)


def _infomax() -> Call:
    def corruption(x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
        return x[torch.randperm(len(x))], edge_index

    def summary(z: Tensor, *_: Any) -> Tensor:
        return z.mean(dim=0).sigmoid()

    return models.DeepGraphInfomax(8, _encoder(), summary, corruption), X, EDGE_INDEX


def _degrees() -> Tensor:
    return torch.bincount(torch.bincount(EDGE_INDEX[1], minlength=NODES))


METAPATH = [("a", "to", "b"), ("b", "to", "a")]

BUILT: dict[str, Callable[[], Call]] = {
    "MLP": lambda: (models.MLP([WIDTH, 16, 4]), X),
    "GCN": lambda: (models.GCN(WIDTH, 16, 3), X, EDGE_INDEX),
    "GraphSAGE": lambda: (models.GraphSAGE(WIDTH, 16, 3), X, EDGE_INDEX),
    "GIN": lambda: (models.GIN(WIDTH, 16, 3), X, EDGE_INDEX),
    "GAT": lambda: (models.GAT(WIDTH, 16, 3, heads=2), X, EDGE_INDEX),
    "PNA": lambda: (
        models.PNA(WIDTH, 16, 2, aggregators=["mean", "max"], scalers=["identity"], deg=_degrees()),
        X,
        EDGE_INDEX,
    ),
    "EdgeCNN": lambda: (models.EdgeCNN(WIDTH, 16, 2), X, EDGE_INDEX),
    "JumpingKnowledge": lambda: (models.JumpingKnowledge("lstm", WIDTH, 2), [X, X + 1]),
    "HeteroJumpingKnowledge": lambda: (
        models.HeteroJumpingKnowledge(["a", "b"], "max"),
        {"a": [X, X + 1], "b": [X, -X]},
    ),
    "MetaLayer": lambda: (models.MetaLayer(_EdgeModel()), X, EDGE_INDEX, EDGE_ATTR),
    "DeepGraphInfomax": _infomax,
    "InnerProductDecoder": lambda: (models.InnerProductDecoder(), X, EDGE_INDEX),
    "GAE": lambda: (models.GAE(_encoder()), X, EDGE_INDEX),
    "VGAE": lambda: (models.VGAE(_Variational()), X, EDGE_INDEX),
    "ARGA": lambda: (models.ARGA(_encoder(), nn.Linear(8, 1)), X, EDGE_INDEX),
    "ARGVA": lambda: (models.ARGVA(_Variational(), nn.Linear(4, 1)), X, EDGE_INDEX),
    "SignedGCN": lambda: (
        models.SignedGCN(WIDTH, 16, 2), X, EDGE_INDEX[:, :60], EDGE_INDEX[:, 60:],
    ),
    "RENet": lambda: (models.RENet(6, 2, 8, seq_len=3), _history()),
    "GraphUNet": lambda: (models.GraphUNet(WIDTH, 16, 4, depth=2), X, EDGE_INDEX, BATCH),
    "SchNet": lambda: (
        models.SchNet(16, 16, 2, interaction_graph=_distances), ATOMS, POSITIONS, BATCH,
    ),
    "GPSE": lambda: (
        models.GPSE(dim_in=WIDTH, dim_inner=16, layers_mp=2, virtual_node=False),
        Data(
            x=X, edge_index=EDGE_INDEX, batch=BATCH,
            y=torch.zeros(NODES, 51), y_graph=torch.zeros(2, 11),
        ),
    ),
    "GPSENodeEncoder": lambda: (
        models.GPSENodeEncoder(dim_emb=16, dim_pe_in=WIDTH, dim_pe_out=8, expand_x=False), X, X,
    ),
    "MetaPath2Vec": lambda: (
        models.MetaPath2Vec(dict.fromkeys(METAPATH, EDGE_INDEX), 4, METAPATH, 2, 2), "a",
    ),
    "DeepGCNLayer": lambda: (
        models.DeepGCNLayer(GCNConv(8, 8), nn.LayerNorm(8), nn.ReLU()), X, EDGE_INDEX,
    ),
    "TGNMemory": lambda: (
        models.TGNMemory(NODES, 4, 8, 6, IdentityMessage(4, 8, 6), LastAggregator()),
        torch.arange(5),
    ),
    "LabelPropagation": lambda: (
        models.LabelPropagation(2, 0.9), ATOMS, EDGE_INDEX, torch.arange(NODES) % 2 == 0,
    ),
    "AttentiveFP": lambda: (
        models.AttentiveFP(WIDTH, 16, 4, edge_dim=3, num_layers=2, num_timesteps=2),
        X, EDGE_INDEX, EDGE_ATTR, BATCH,
    ),
    "RECT_L": lambda: (models.RECT_L(WIDTH, 16), X, EDGE_INDEX),
    "LINKX": lambda: (models.LINKX(NODES, WIDTH, 16, 4, 2), X, EDGE_INDEX),
    "LightGCN": lambda: (models.LightGCN(NODES, 8, 2), EDGE_INDEX),
    "MaskLabel": lambda: (models.MaskLabel(9, WIDTH), X, ATOMS, torch.arange(NODES) % 2 == 0),
    "GroupAddRev": lambda: (models.GroupAddRev(SAGEConv(4, 4), num_groups=2), X, EDGE_INDEX),
    "PMLP": lambda: (models.PMLP(WIDTH, 16, 4, 2).eval(), X, EDGE_INDEX),  # an MLP in training
    "NeuralFingerprint": lambda: (
        models.NeuralFingerprint(WIDTH, 16, 4, 2), X, EDGE_INDEX, BATCH,
    ),
    "SGFormer": lambda: (models.SGFormer(WIDTH, 16, 4), X, EDGE_INDEX, BATCH),
    "Polynormer": lambda: (models.Polynormer(WIDTH, 16, 4), X, EDGE_INDEX, BATCH),
    "ARLinkPredictor": lambda: (models.ARLinkPredictor(WIDTH, 16, 8), X, EDGE_INDEX),
}  # fmt: skip

LEFT_OUT = {
    "Node2Vec": "cannot be built without pyg-lib or torch-cluster, whose random walks it needs",
    "DimeNet": "finds its edges with torch-cluster and its triplets with torch-sparse",
    "DimeNetPlusPlus": "as DimeNet",
    "GNNFF": "as DimeNet",
    "ViSNet": "finds its edges with torch-cluster",
    "LPFormer": "takes sparse matrices of personalised PageRank that torch-sparse makes",
    "CorrectAndSmooth": "has no forward: its two steps are methods that users call",
    "to_captum_model": "a function that wraps a model for an explainer",
    "to_captum_input": "a function",
    "captum_output_to_dicts": "a function",
}

#: Those in which no layer passes messages: autoencoders' decoders, embeddings, MLPs.
WITHOUT_MESSAGES = {
    "MLP",
    "JumpingKnowledge",
    "HeteroJumpingKnowledge",
    "MetaLayer",  # scatters, if at all, in the user's own code
    "InnerProductDecoder",
    "GPSENodeEncoder",
    "MetaPath2Vec",
    "RENet",
    "TGNMemory",
    "MaskLabel",
    "ARLinkPredictor",
}


def test_every_model_is_listed_with_a_reason_if_left_out() -> None:
    assert BUILT.keys() | LEFT_OUT.keys() == set(models.__all__)
    assert not BUILT.keys() & LEFT_OUT.keys()


@pytest.mark.filterwarnings("ignore:Sparse (CSR|invariant):UserWarning")  # of GraphUNet
@pytest.mark.parametrize("name", BUILT)
def test_it_runs_on(name: str) -> None:
    torch.manual_seed(0)
    model, *inputs = BUILT[name]()
    report = gnn_vpa.probe(model, *inputs)
    assert report.verdict
    assert not report.to_frame().empty or name == "MetaPath2Vec"  # returns a slice of a parameter
    kinds = {step.step for step in report.steps}
    assert ("aggregation" in kinds) == (name not in WITHOUT_MESSAGES)
    if name not in ("LabelPropagation", "MetaPath2Vec"):
        back = [s for s in report.steps if s.backward is not None]
        assert back, "no gradient came back"
