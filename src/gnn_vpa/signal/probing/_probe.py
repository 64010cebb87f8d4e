"""The probe itself: called once, or standing by while a model trains."""

from __future__ import annotations

from typing import Any

from torch import nn

from ._during import Watch
from ._report import Report
from ._run import Call, Kept, Loss, observe
from ._symptoms import symptoms


class Probe:
    """Measures the signal in a network: ``gnn_vpa.probe(model, *inputs)``.

    Example:
        >>> import gnn_vpa, torch
        >>> from torch_geometric.nn import GCN
        >>> _ = torch.manual_seed(0)
        >>> model = GCN(8, 16, num_layers=2)
        >>> x, edge_index = torch.randn(50, 8), torch.randint(50, (2, 400))
        >>> report = gnn_vpa.probe(model, x, edge_index)
        >>> [f"{step.name} {step.step}" for step in report.steps][:4]
        ['(input) input', 'convs.0.lin output', 'convs.0 message', 'convs.0 aggregation']
        >>> report.steps[3].aggr, report.steps[3].shape
        ('sum', (50, 16))
    """

    def __call__(
        self, model: nn.Module, *inputs: Any, loss: Loss | None = None, **kwargs: Any
    ) -> Report:
        """Run a model once, forward and backward, and measure the signal at every layer.

        The model runs as it is (in training mode or not), on a copy that shares its parameters:
        it gets no hook, no ``.grad`` and no new buffer, inputs stay as they are, and so do the
        states of all random generators. Statistics are formed in float64 as each layer runs;
        activations are not kept.

        Args:
            model: Any module: one's own, of PyG, converted, or of ``gnn_vpa.nn``.
            *inputs: What it is called with.
            loss: A function of what the model returns, whose gradient is sent back. By default a
                random gradient of variance 1 is, so that gains can be read off.
            **kwargs: What else it is called with, by name.

        Returns:
            A report: the steps, frames, a figure, a page, and a verdict in words.

        Raises:
            UsageError: The model does not run on these inputs, is on another device than they are,
                or the loss does not fit; the message says where and what to do.

        Example:
            >>> import gnn_vpa, torch
            >>> report = gnn_vpa.probe(torch.nn.Linear(4, 2), torch.randn(10, 4))
            >>> report.steps[-1].shape
            (10, 2)
        """
        call = Call(model, inputs, kwargs)
        run = observe(call, loss)
        if next(symptoms(run.steps), None) is None:
            return Report(run.steps, run.notes)
        return Report(run.steps, run.notes, Kept(call, run), loss)

    def during(self, model: nn.Module, *, every: int = 10) -> Watch:
        """Stand by while a model trains, and measure every so many steps.

        Args:
            model: The model that is going to be called.
            every: Measure one forward pass, and the backward pass that follows, in so many. Only
                passes that can be differentiated count, so evaluation does not.

        Returns:
            A context manager: the signal, as it is collected.

        Example:
            >>> import gnn_vpa, torch
            >>> model = torch.nn.Linear(4, 1)
            >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            >>> with gnn_vpa.probe.during(model, every=5) as signal:
            ...     for _ in range(10):
            ...         optimizer.zero_grad()
            ...         model(torch.randn(20, 4)).square().mean().backward()
            ...         optimizer.step()
            >>> [step for step, _ in signal.reports]
            [0, 5]
        """
        return Watch(model, every)


probe = Probe()
