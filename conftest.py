"""What pytest leaves alone when it looks for doctests in the sources."""

from importlib.util import find_spec

# Doctests import every module, and these are kernels in Triton, which comes with CUDA alone.
_KERNELS = [
    "src/gnn_vpa/*/_triton*.py",
    "src/gnn_vpa/*/_*_kernels.py",
    "src/gnn_vpa/nn/_fused_*.py",
]
collect_ignore_glob = [] if find_spec("triton") else _KERNELS
