"""``gnn-vpa info``: what is installed, and what will be used."""

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import gnn_vpa

from ..errors import GnnVpaError
from ._console import print_table

_LIBRARIES = ("torch", "torch_geometric", "triton", "numpy", "scipy", "scikit-learn", "pandas")
_EXTRAS = {"ray": "ray", "tensorboard": "tracking", "onnxscript": "onnx"}


def info() -> None:
    """Show versions, devices, the backend in use on each, models, and where the data are.

    Example:

      gnn-vpa info
    """
    rows = [("gnn-vpa", gnn_vpa.__version__), *_versions(), *_devices(), *_models(), *_data()]
    print_table("gnn-vpa", ["what", "found"], rows)


def _versions() -> Iterator[tuple[str, str]]:
    yield "python", f"{platform.python_version()} on {platform.platform(terse=True)}"
    for name in (*_LIBRARIES, *_EXTRAS):
        try:
            yield name, version(name)
        except PackageNotFoundError:
            remedy = f": pip install 'gnn-vpa[{_EXTRAS[name]}]'" if name in _EXTRAS else ""
            yield name, f"not installed{remedy}"


def _devices() -> Iterator[tuple[str, str]]:
    import torch

    from gnn_vpa.ops import backend

    yield "cpu", f"{torch.get_num_threads()} threads, backend {backend('cpu')}"
    for number in range(torch.cuda.device_count()):
        device = torch.cuda.get_device_properties(number)
        memory = device.total_memory / 2**30
        yield f"cuda:{number}", f"{device.name}, {memory:.0f} GiB, backend {backend('cuda')}"


def _models() -> Iterator[tuple[str, str]]:
    from gnn_vpa.nn import MODELS

    yield "models", ", ".join(MODELS)


def _data() -> Iterator[tuple[str, str]]:
    from gnn_vpa.graphs import find_archives

    try:
        found = find_archives()
    except GnnVpaError as error:
        yield "data", str(error)
        return
    folders = sorted({archive.parent for archive in found.values()})
    for folder in folders:
        names = (name for name, archive in sorted(found.items()) if archive.parent == folder)
        yield "data", f"{', '.join(names)} in {folder}"
    if not folders:
        yield "data", "none: gnn-vpa data get MUTAG"
