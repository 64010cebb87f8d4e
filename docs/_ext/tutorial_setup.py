"""What every tutorial begins with and leaves: random numbers, the size of figures, no files."""

import shutil
from pathlib import Path
from typing import Any


def reset(gallery_conf: dict[str, Any], name: str, when: str) -> None:
    """Seed torch and draw figures alike; afterwards remove the folders that a tutorial wrote.

    A folder with a README, such as that of a saved model, would become a part of the gallery.
    """
    import matplotlib.pyplot as plt
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(1)
    plt.rcParams.update({"figure.figsize": (7, 3.6), "figure.dpi": 110, "savefig.bbox": "tight"})
    if when == "after":
        for folder in gallery_conf["examples_dirs"]:
            for path in Path(gallery_conf["src_dir"], folder).iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
