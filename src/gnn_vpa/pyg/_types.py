"""Types of the arguments that PyG reads from the signatures of a layer's steps."""

from typing import Optional

from torch_geometric.typing import OptTensor as OptTensor

# PyG knows Optional, not the `|` of a union.
OptInt = Optional[int]  # noqa: UP045
