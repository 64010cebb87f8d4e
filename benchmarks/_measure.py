"""Fair clocks: contenders take turns, medians are compared, memory is what PyTorch allocates."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch

Work = Callable[[], object]


@dataclass(frozen=True)
class Cost:
    """Median seconds of a run and its peak of allocated bytes beyond what was there before."""

    seconds: float
    bytes: int


def compare(contenders: dict[str, Work], device: str, seconds: float = 6.0) -> dict[str, Cost]:
    """Measure all contenders in turns, so that a noisy moment meets each of them alike."""
    memory = {name: peak_memory(work, device) for name, work in contenders.items()}
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for work in contenders.values():
        for _ in range(3):
            work()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times[next(iter(times))]) < 7:
        for name, work in contenders.items():
            times[name].append(_once(work, device))
    return {name: Cost(statistics.median(times[name]), memory[name]) for name in contenders}


def captured(work: Work) -> Work:
    """Return a replay of ``work`` as a CUDA graph: the kernels alone, without Python's share."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return graph.replay


def _once(work: Work, device: str) -> float:
    if device == "cpu":
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin
    # Several launches between two events: a single one would time the launch, not the kernel.
    repeats = 10
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    start.record()
    for _ in range(repeats):
        work()
    stop.record()
    stop.synchronize()
    return start.elapsed_time(stop) / 1e3 / repeats


def peak_memory(work: Work, device: str) -> int:
    """Return the peak of live bytes that PyTorch allocated while ``work`` ran."""
    work()
    if device != "cpu":
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        work()
        torch.cuda.synchronize()
        return torch.cuda.max_memory_allocated() - before
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profiler:
        work()
    results = profiler.profiler.kineto_results  # type: ignore[union-attr]
    events = [event for event in results.events() if event.name() == "[memory]"]
    live, peak = 0, 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    return peak
