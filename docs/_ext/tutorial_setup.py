"""What every tutorial begins with: the same random numbers and figures of one size."""

from typing import Any


def reset(gallery_conf: dict[str, Any], name: str) -> None:
    """Seed torch and draw figures alike."""
    import matplotlib.pyplot as plt
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    plt.rcParams.update({"figure.figsize": (7, 3.6), "figure.dpi": 110, "savefig.bbox": "tight"})
