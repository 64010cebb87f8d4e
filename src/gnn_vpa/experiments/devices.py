"""Which devices a name stands for: one, or all GPUs of a host."""

import re

from ..errors import UsageError

_NAME = re.compile(r"auto|cpu|cuda(:[0-9]+)?")


def resolve_devices(device: str) -> list[str]:
    """Return the devices to use: `cuda` is every GPU that is visible, `cuda:0,cuda:2` are two.

    `auto` is CUDA where it is there. A GPU that is the only one keeps the name `cuda`.

    Raises:
        UsageError: There is no such device, or one is named twice.

    Example:
        >>> resolve_devices("cpu")
        ['cpu']
        >>> resolve_devices("cpu,cpu")
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: --device cpu,cpu: cpu cannot be one of several: several ...
    """
    names = [name.strip() for name in device.split(",")]
    for name in names:
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"unknown device {name!r}: use auto, cpu, cuda, or one or several of many GPUs "
                "like cuda:0,cuda:2"
            )
    if len(names) > 1 and (alone := next((name for name in names if ":" not in name), None)):
        what = "is all GPUs" if alone == "cuda" else "cannot be one of several"
        raise UsageError(
            f"--device {device}: {alone} {what}: several devices are GPUs with their numbers, like "
            "cuda:0,cuda:2"
        )
    count = _count_gpus() if names != ["cpu"] else 0
    if names == ["cpu"] or (names == ["auto"] and not count):
        return ["cpu"]
    if not count:
        raise UsageError(
            f"there is no device {device}: torch finds no CUDA device here; use --device cpu"
        )
    if ":" not in names[0]:
        return ["cuda"] if count == 1 else [f"cuda:{number}" for number in range(count)]
    numbers = [int(name.partition(":")[2]) for name in names]
    if repeated := [number for number in numbers if numbers.count(number) > 1]:
        raise UsageError(f"--device {device}: cuda:{repeated[0]} is named twice")
    if absent := [number for number in numbers if number >= count]:
        there = ", ".join(f"cuda:{n}" for n in range(count))
        raise UsageError(f"there is no device cuda:{absent[0]}: here is {there}")
    return [f"cuda:{number}" for number in numbers]


def resolve_device(device: str) -> str:
    """Return the one device to use: `auto` and `cuda` are the first GPU, `cuda:1` the second.

    Raises:
        UsageError: There is no such device, or several are named.

    Example:
        >>> resolve_device("cpu")
        'cpu'
        >>> resolve_device("cpu:3")
        Traceback (most recent call last):
            ...
        gnn_vpa.errors.UsageError: unknown device 'cpu:3': use auto, cpu, cuda, or one or several...
    """
    devices = resolve_devices(device)
    if ":" not in device and devices != ["cpu"]:
        return "cuda"
    if len(devices) > 1:
        raise UsageError(f"--device {device}: one device is used here, name one of them")
    return devices[0]


def _count_gpus() -> int:
    import torch

    return torch.cuda.device_count() if torch.cuda.is_available() else 0
