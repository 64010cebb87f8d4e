"""What every tutorial begins with: the same random numbers, and a folder of its own."""

import os
import tempfile
from typing import Any


def reset(gallery_conf: dict[str, Any], name: str) -> None:
    """Seed torch, draw figures alike, and go where a tutorial may write."""
    import matplotlib.pyplot as plt
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    plt.rcParams.update({"figure.figsize": (7, 3.6), "figure.dpi": 110, "savefig.bbox": "tight"})
    os.chdir(tempfile.mkdtemp(prefix="gnn-vpa-tutorial-"))
