"""The peer trains what we train: otherwise its time would say nothing."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch

from gnn_vpa.graphs import features, load, splits
from gnn_vpa.training import Lane, Protocol, Task, fit
from gnn_vpa.training.seeds import generator, seed


class GivenDropout(nn.Module):
    """Dropout of 0.5 with the numbers at hand."""

    uniform: torch.Tensor

    def forward(self, x: Tensor) -> Tensor:
        return x * (self.uniform[:, : x.shape[1]] >= 0.5) * 2 if self.training else x


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("fold", [0, 7])
def test_the_peer_has_our_losses_and_accuracies(
    tu_dir: Path, benchmark_module: Callable[[str], ModuleType], fold: int, dropout: float
) -> None:
    peer = benchmark_module("peer")
    graphs = load("MUTAG", data_dir=tu_dir)
    task = Task("gin", "vpa", options=(("dropout", dropout),))
    protocol, lane = Protocol(epochs=2), Lane(fold, splits(graphs.y)[fold])
    (ours,) = fit(graphs, task, protocol, [lane], dtype=torch.float64)

    key = (graphs.seed_source, task, lane.fold, lane.seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed(key, "initial weights"))
        model = peer.GIN(features(graphs).width, graphs.num_classes, dropout=dropout).double()
    data = peer.pyg_graphs(graphs, torch.float64)
    training = peer.Peer(data, lane.split, model, protocol)
    train, size = lane.split.train, protocol.batch_size
    if dropout:
        model.dropout = GivenDropout()

    def batches(epoch: int) -> Iterator[Batch]:
        order = torch.randperm(len(train), generator=generator(key, "order", epoch))
        steps = train[order].split(size)
        shape = (len(steps), len(model.lins), size, graphs.num_classes)
        draw = generator(key, "dropout", epoch)
        for ids, uniform in zip(
            steps, torch.rand(shape, generator=draw, dtype=torch.float64), strict=True
        ):
            model.dropout.uniform = uniform
            yield Batch.from_data_list([data[i] for i in ids.tolist()])

    curves = [(training.train(batches(epoch)), *training.judge()) for epoch in range(2)]
    loss, valid, test = torch.tensor(curves, dtype=torch.float64).T.numpy()
    np.testing.assert_allclose(loss, ours.curve_train_loss, rtol=0, atol=1e-9)
    np.testing.assert_allclose(valid, ours.curve_val, rtol=0, atol=1e-6)
    np.testing.assert_allclose(test, ours.curve_test, rtol=0, atol=1e-6)


def test_its_loader_shows_every_training_graph_once(
    tu_dir: Path, benchmark_module: Callable[[str], ModuleType]
) -> None:
    peer = benchmark_module("peer")
    graphs = load("MUTAG", data_dir=tu_dir)
    split = splits(graphs.y)[0]
    model = peer.GIN(features(graphs).width, graphs.num_classes)
    training = peer.Peer(peer.pyg_graphs(graphs), split, model, Protocol())
    shown = list(training.loader)
    assert [batch.num_graphs for batch in shown] == [64, 64, len(split.train) - 128]
    sizes = torch.cat([batch.ptr.diff() for batch in shown]).sort().values
    assert torch.equal(sizes, graphs.node_ptr.diff()[split.train].sort().values)


@pytest.mark.gpu
# PyTorch's compiler recommends TF32, sets it in a way that PyTorch has given up, and imports
# modules that use what is deprecated (2.11). Nothing of this is ours.
@pytest.mark.filterwarnings("ignore:TensorFloat32 tensor cores")
@pytest.mark.filterwarnings("ignore:Please use the new API settings to control TF32")
@pytest.mark.filterwarnings(r"ignore::DeprecationWarning:torch\.")
def test_every_manner_of_the_gpu_computes_the_same(
    tu_dir: Path, benchmark_module: Callable[[str], ModuleType]
) -> None:
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    peer = benchmark_module("peer")
    graphs = load("MUTAG", data_dir=tu_dir)
    data, split = peer.pyg_graphs(graphs), splits(graphs.y)[0]
    order = [data[i] for i in split.train.tolist()]
    losses = []
    for manner in [peer.PLAIN, *peer.MANNERS["cuda"]]:
        torch.manual_seed(0)
        model = peer.GIN(features(graphs).width, graphs.num_classes, dropout=0.0)
        training = peer.Peer(data, split, model, Protocol(), "cuda", manner)
        losses.append(float(training.train([Batch.from_data_list(order[:64])] * 3)))
        assert torch.isfinite(training.train(training.loader))
    np.testing.assert_allclose(losses, losses[0], rtol=1e-3)
