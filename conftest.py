"""What pytest leaves alone when it looks for doctests in the sources."""

# Doctests import every module. These need Triton, which some platforms lack, and hold no example.
collect_ignore_glob = [
    "src/gnn_vpa/*/_triton*.py",
    "src/gnn_vpa/*/_*_kernels.py",
    "src/gnn_vpa/nn/_fused_*.py",
    "tests/experiments/faults/*.py",  # programs that tests run
]
