"""
My PyG model keeps its signal
=============================
"""

import torch

print(torch.__version__)
