"""Prints the free bytes of the GPU that has least, as CUDA's driver tells a program that begins.

`mps.py` runs this file as a program, whose arguments are the numbers of the GPUs: what fails here
would fail in every process. It needs no torch, whose import takes seconds, and holds its contexts
until its standard input ends.
"""

import ctypes
import sys


def main() -> None:
    """Look at the GPUs, print, and wait."""
    cuda = ctypes.CDLL("libcuda.so.1")

    def call(name: str, *arguments: object) -> None:
        if code := getattr(cuda, name)(*arguments):
            text = ctypes.c_char_p()
            cuda.cuGetErrorName(code, ctypes.byref(text))
            sys.exit(f"{name}: {(text.value or b'').decode() or code}")

    call("cuInit", 0)
    least = None
    for number in map(int, sys.argv[1:]):
        device, context = ctypes.c_int(), ctypes.c_void_p()
        call("cuDeviceGet", ctypes.byref(device), number)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        call("cuCtxSetCurrent", context)
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        least = free.value if least is None else min(least, free.value)
    print(least, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
