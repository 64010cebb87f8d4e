"""One call of a user's model for one lane: the plain loop."""

from collections.abc import Mapping

from torch import Tensor, nn
from torch.func import functional_call

from .adapter import Adapter
from .batches import Inputs
from .modes import HashedDropout


class Alone:
    """Calls a model with a batch of one lane."""

    def __init__(self, model: nn.Module, adapter: Adapter, outputs: int) -> None:
        self.model, self.adapter, self.outputs = model, adapter, outputs
        self.mode = HashedDropout()

    def __call__(self, inputs: Inputs, seed: Tensor | None = None) -> Tensor:
        """Return the scores of a batch, ``[B, outputs]``; with a seed for dropout in training."""
        if seed is None:
            return self._checked(self.adapter(self.model, inputs), inputs)
        with self.mode:
            self.mode.begin(seed, len(inputs.x), inputs.edge_index.shape[1])
            out = self.adapter(self.model, inputs)
        return self._checked(out, inputs)

    def functional(
        self, params: Mapping[str, Tensor], buffers: Mapping[str, Tensor], inputs: Inputs,
        seed: Tensor,
    ) -> Tensor:  # fmt: skip
        """Return the scores of a batch with weights that are handed over."""

        def model(*args: object, **kwargs: object) -> object:
            return functional_call(self.model, (dict(params), dict(buffers)), args, kwargs)

        with self.mode:
            self.mode.begin(seed, len(inputs.x), inputs.edge_index.shape[1])
            out = self.adapter(model, inputs)
        return self._checked(out, inputs)

    def _checked(self, out: object, inputs: Inputs) -> Tensor:
        return self.adapter.checked(out, len(inputs.ptr) - 1, self.outputs)
