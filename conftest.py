"""What pytest leaves alone when it looks for doctests in the sources."""

from importlib.util import find_spec

# Doctests import every module, and these are kernels in Triton, which comes with CUDA alone.
_KERNELS = [
    "src/gnn_vpa/ops/_triton.py",
    "src/gnn_vpa/ops/_triton_short.py",
    "src/gnn_vpa/nn/_norm_kernels.py",
    "src/gnn_vpa/nn/_fused_norm.py",
    "src/gnn_vpa/nn/_attention_kernels.py",
    "src/gnn_vpa/nn/_fused_attention.py",
]
collect_ignore = [] if find_spec("triton") else _KERNELS
