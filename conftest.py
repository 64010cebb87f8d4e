"""What pytest leaves alone when it looks for doctests in the sources."""

from importlib.util import find_spec

# The CUDA kernels import Triton, which comes with the CUDA builds of torch alone.
collect_ignore = [] if find_spec("triton") else ["src/gnn_vpa/ops/_triton.py"]
