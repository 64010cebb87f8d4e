"""Graphs that the tests of the drop-ins share."""

import warnings
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor


@pytest.fixture(autouse=True, scope="session")
def _known_beta_state() -> None:
    """Let PyTorch say, once and unheard, that its CSR tensors are in beta state."""
    with warnings.catch_warnings(action="ignore"):
        torch.eye(1).to_sparse_csr()


@pytest.fixture(autouse=True)
def _unchecked_sparse_tensors() -> Iterator[None]:
    """Say what PyG leaves unsaid: that sparse tensors, parallel edges included, go unchecked."""
    with torch.sparse.check_sparse_tensor_invariants(False):
        yield


@pytest.fixture
def edge_index() -> Tensor:
    """Node 5 has no neighbours, 1 -> 0 is there twice, 2 has a self-loop; not sorted."""
    return torch.tensor([[1, 0, 2, 3, 1, 2, 4, 0], [0, 1, 0, 0, 0, 2, 3, 4]])


@pytest.fixture
def x(dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Features of the six nodes, in both precisions."""
    return torch.randn(6, 4, generator=generator, dtype=torch.float64).to(dtype)
