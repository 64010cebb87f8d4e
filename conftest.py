"""What pytest leaves alone when it looks for doctests."""

collect_ignore_glob = [
    # Doctests import every module. These need Triton, which some platforms lack; none has one.
    "src/gnn_vpa/*/_triton*.py",
    "src/gnn_vpa/*/_*_kernels.py",
    "src/gnn_vpa/nn/_fused_*.py",
    # Programs that a test starts: they find each other as scripts do.
    "tests/experiments/faults/*.py",
    "tests/training/own/mynets.py",
]
