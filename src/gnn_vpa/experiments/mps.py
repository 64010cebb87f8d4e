"""Several processes on a GPU at the same time, by NVIDIA's multi-process service.

One process leaves an H200 idle between its steps. Several share it where that service runs, and
take turns otherwise. Here the service is started for a run, in a folder of its own, and ended with
it.

CUDA decides at its first call whether a process uses the service, and the process that was started
by hand has called it before: to count GPUs, or for whatever its user did. So this process trains
nothing while the service is in use: as many processes as are wanted are started beside it, the
service is in their environment alone, and this one watches them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from .. import processes
from ..errors import UsageError
from .memory import in_bytes
from .schedule import Planned

# How much faster processes are together than one is, by their number. Seen on an H200.
_GAIN = {1: 1.0, 2: 1.19, 3: 1.25, 4: 1.31, 5: 1.35, 6: 1.36}

PROCESSES = max(_GAIN)
"""On each GPU, where nobody asks for another number: a seventh would gain next to nothing."""

CONTROL = "nvidia-cuda-mps-control"
"""The program that starts the service, asks it and ends it."""

# Processes start for ten seconds, and save a quarter of what one would take (`_GAIN`): they pay
# from a minute of one process on (`typical_paces`).
_LEAST_S = 60.0
_LEAST_GROUPS = 3  # for each GPU
_ROOM = 16 * 10**9  # bytes of a GPU for each process: the paper's largest groups take 3
_PROBE = Path(__file__).with_name("_gpu_probe.py")
_PATIENCE_S = 60.0  # for the service to begin, or to end
# It waits for the end of whoever has started it, however that comes, and takes the service away.
# Batch systems send SIGTERM to all processes of a job: it is still needed then.
_GUARD = 'trap "" TERM; read -r _; echo quit | "$0"; rm -rf -- "$1"'


@dataclass(frozen=True)
class Sharing:
    """How processes share a GPU.

    Attributes:
        processes: How many, on each GPU.
        is_served: Whether the service lets them use it at the same time.
        environment: Variables by which they find it.

    Example:
        >>> Sharing().processes
        1
    """

    processes: int = 1
    is_served: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)


class _Refused(Exception):
    """The service cannot be used; why, in words."""


@contextmanager
def shared_gpus(
    devices: Sequence[str],
    planned: Sequence[Planned],
    workers: int | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[Sharing]:
    """Let several processes use each GPU, where that helps and the service is there.

    Args:
        devices: The GPUs; on the CPU nothing is done.
        planned: What is to be trained, with the time it is expected to take.
        workers: Number of processes on each GPU; None: as many as help.
        note: Told in a sentence what was decided, and why not otherwise.

    Raises:
        UsageError: GNN_VPA_MPS is neither 0 nor 1.

    Example:
        >>> with shared_gpus(["cpu"], []) as sharing:
        ...     sharing.processes
        1
    """
    with ExitStack() as stack:
        if devices == ["cpu"] or workers == 1 or (not workers and not _pays(devices, planned)):
            sharing = Sharing()
        elif (obstacle := _obstacle()) is not None:
            if workers:
                note(f"{workers} processes on each GPU take turns: {obstacle}.")
            sharing = Sharing(workers or 1)
        else:
            sharing = _serve(stack, devices, workers, note)
        yield sharing


class Sooner:
    """`shared_gpus`, begun beside other work where it is foreseen; as a context, ended with it.

    Example:
        >>> with Sooner() as sooner, sooner.shared_gpus(["cpu"], []) as sharing:
        ...     sharing.processes
        1
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._notes: list[str] = []
        self._sharing: Future[Sharing] | None = None  # that is on its way

    def begin(
        self,
        devices: Sequence[str],
        planned: Sequence[Planned],
        workers: int | None,
        then: Callable[[Sharing], None] = lambda _: None,
    ) -> None:
        """Begin what `shared_gpus` will be asked for, and ``then`` what needs its answer."""

        def share() -> Sharing:
            context = shared_gpus(devices, planned, workers, self._notes.append)
            sharing = self._stack.enter_context(context)
            then(sharing)
            return sharing

        self._sharing = self._stack.enter_context(ThreadPoolExecutor(1)).submit(share)

    @contextmanager
    def shared_gpus(
        self,
        devices: Sequence[str],
        planned: Sequence[Planned],
        workers: int | None = None,
        note: Callable[[str], None] = lambda _: None,
    ) -> Iterator[Sharing]:
        """Do as `shared_gpus`; what was begun serves whoever asks first."""
        if self._sharing is None:
            with shared_gpus(devices, planned, workers, note) as sharing:
                yield sharing
            return
        with self:
            sharing = self._sharing.result()
            for text in self._notes:
                note(text)
            yield sharing

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._sharing is not None:
            wait([self._sharing])  # it may be about to start the service
        self._sharing = None
        self._stack.close()


def processes_for(
    devices: Sequence[str], planned: Sequence[Planned], workers: int | None = None
) -> int:
    """Return how many processes `shared_gpus` would try to put on each GPU.

    Example:
        >>> processes_for(["cuda"], [], workers=2)
        2
        >>> processes_for(["cuda"], [])
        1
    """
    if workers:
        return workers
    return PROCESSES if _pays(devices, planned) and _obstacle() is None else 1


def gain(processes: int) -> float:
    """Return how much faster so many processes on a GPU are together than one is.

    Example:
        >>> gain(1), gain(2)
        (1.0, 1.19)
        >>> gain(PROCESSES) == gain(PROCESSES + 1)
        True
    """
    return _GAIN[min(processes, PROCESSES)]


def _pays(devices: Sequence[str], planned: Sequence[Planned]) -> bool:
    enough = len(planned) >= _LEAST_GROUPS * len(devices)
    return enough and sum(seconds for _, seconds in planned) >= _LEAST_S * len(devices)


def _obstacle() -> str | None:
    """Return what keeps the service from being started, if anything does."""
    asked = os.environ.get("GNN_VPA_MPS", "1")
    if asked not in ("0", "1"):
        raise UsageError(f"GNN_VPA_MPS: expected 0 (off) or 1, got {asked!r}.")
    if asked == "0":
        return "GNN_VPA_MPS=0 turns NVIDIA's multi-process service off"
    if not sys.platform.startswith("linux"):
        return "NVIDIA's multi-process service is for Linux"
    if shutil.which(CONTROL) is None:
        return f"{CONTROL}, NVIDIA's multi-process service, is not installed"
    return None


def _serve(
    stack: ExitStack, devices: Sequence[str], workers: int | None, note: Callable[[str], None]
) -> Sharing:
    """Start the service on a stack, and make sure that it works; else leave it out."""
    where = ", ".join(devices)
    with ExitStack() as here:
        try:
            environment = here.enter_context(_service())
            free = _free_memory(devices, environment)
        except _Refused as error:
            turns = f"{workers} processes take turns" if workers else "there is one process"
            note(f"NVIDIA's multi-process service cannot be used ({error}): {turns} on each GPU.")
            return Sharing(workers or 1)
        count = workers or min(PROCESSES, free // _ROOM)
        if count < 2:
            room = f"{in_bytes(free)} of GPU memory are free, too little for two"
            note(f"One process on {where}: {room}.")
            return Sharing()
        stack.push(here.pop_all())
    note(f"{count} processes on {where}, which share it by NVIDIA's multi-process service.")
    return Sharing(count, True, environment)


@contextmanager
def _service() -> Iterator[dict[str, str]]:
    """Run the service in a folder of its own, if none runs already; yield how it is found."""
    if _servers({}) is not None:
        yield {}
        return
    # Sockets have short names: a folder for temporary files may be too deep.
    folder = tempfile.mkdtemp(prefix="gnn-vpa-mps-", dir="/tmp")
    environment = {
        f"CUDA_MPS_{name}_DIRECTORY": str(Path(folder, name.lower())) for name in ("PIPE", "LOG")
    }
    for path in environment.values():
        Path(path).mkdir()
    guard = subprocess.Popen(
        ["sh", "-c", _GUARD, CONTROL, folder],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=_client(environment),
        start_new_session=True,  # Ctrl-C is not for it
    )
    assert guard.stdin is not None
    try:
        _start(environment, Path(folder, "start.log"))
        yield environment
    finally:
        guard.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            guard.wait(_PATIENCE_S)


def _start(environment: Mapping[str, str], log: Path) -> None:
    # The service sees all GPUs: it would number those in CUDA_VISIBLE_DEVICES anew, and processes
    # that have the same variable would look for theirs among the new numbers.
    variables = {k: v for k, v in _client(environment).items() if k != "CUDA_VISIBLE_DEVICES"}
    try:
        with log.open("wb") as file:  # not a pipe: the service keeps it open
            done = subprocess.run(
                [CONTROL, "-d"],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env=variables,
                timeout=_PATIENCE_S,
                check=False,
                start_new_session=True,
            )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise _Refused(str(error)) from error
    if done.returncode != 0:
        said = log.read_text(errors="replace").strip().partition("\n")[0]
        raise _Refused(said or f"{CONTROL} -d ends with {done.returncode}")


def _free_memory(devices: Sequence[str], environment: Mapping[str, str]) -> int:
    """Return the free bytes of the GPU that has least, as a process sees it that is served."""
    numbers = [device.partition(":")[2] or "0" for device in devices]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with processes.start([str(_PROBE), *numbers], environment, **pipes) as probe:
        try:
            line = _read_line(probe)
            if not line.isdigit():
                assert probe.stderr is not None
                last = probe.stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
                raise _Refused(last or "a process under it has ended at once")
            if not _servers(environment):  # while somebody uses it
                raise _Refused("CUDA does without it")
            return int(line)
        finally:
            processes.end(probe)


def _read_line(probe: subprocess.Popen[bytes]) -> str:
    """Return what a process prints first, unless it takes too long."""
    timer = threading.Timer(_PATIENCE_S, probe.kill)
    timer.start()
    try:
        assert probe.stdout is not None
        return probe.stdout.readline().decode().strip()
    finally:
        timer.cancel()


def clients(environment: Mapping[str, str]) -> int | None:
    """Return how many processes the service serves; None where it does not say.

    Example:
        >>> clients({"CUDA_MPS_PIPE_DIRECTORY": "/nowhere"}) is None
        True
    """
    total, servers = 0, _servers(environment)
    for server in servers or []:
        served = _told(f"get_client_list {server}", environment)
        if served is None:
            return None
        total += len(served)
    return None if servers is None else total


def _servers(environment: Mapping[str, str]) -> list[str] | None:
    """Return the numbers of the service's processes; None where it does not run."""
    return _told("get_server_list", environment)


def _told(command: str, environment: Mapping[str, str]) -> list[str] | None:
    """Return the numbers that the service answers with; None where it answers otherwise."""
    try:
        done = subprocess.run(
            [CONTROL],
            input=f"{command}\n".encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_client(environment),
            timeout=_PATIENCE_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    words = done.stdout.decode(errors="replace").split()  # numbers, or a sentence about an error
    return words if done.returncode == 0 and all(word.isdigit() for word in words) else None


def _client(environment: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, **environment}
