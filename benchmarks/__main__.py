"""Run the benchmarks and print them as Markdown, as ``benchmarks/RESULTS.md`` holds them."""

import argparse
import platform
from pathlib import Path

import torch
import torch_geometric

from . import aggregation, imports


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seconds", type=float, default=6.0, help="time for each comparison")
    parser.add_argument("--out", type=Path, help="also write the tables to this file")
    options = parser.parse_args()
    cuda = options.device == "cuda"
    machine = torch.cuda.get_device_name() if cuda else f"{torch.get_num_threads()} CPU threads"
    versions = (
        f"Python {platform.python_version()}, torch {torch.__version__}, "
        f"PyG {torch_geometric.__version__}, {machine}"
    )
    parts = [versions, "## Aggregation", aggregation.report(options.device, options.seconds)]
    if cuda:
        parts += ["## Bandwidth", aggregation.bandwidth()]
    else:
        parts += ["## Import", imports.report()]
    text = "\n\n".join(parts)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
