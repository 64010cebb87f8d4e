"""What pytest leaves alone when it looks for doctests."""

from importlib.util import find_spec

# Doctests import every module, and these are kernels in Triton, which comes with CUDA alone.
_KERNELS = [
    "src/gnn_vpa/*/_triton*.py",
    "src/gnn_vpa/*/_*_kernels.py",
    "src/gnn_vpa/nn/_fused_*.py",
]
# Programs that a test starts: they find each other as scripts do.
_PROGRAMS = ["tests/experiments/faults/*.py"]
collect_ignore_glob = _PROGRAMS if find_spec("triton") else [*_PROGRAMS, *_KERNELS]
