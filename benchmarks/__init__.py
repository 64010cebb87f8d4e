"""Speed and memory against PyTorch Geometric, all contenders in one run: ``make bench``."""
