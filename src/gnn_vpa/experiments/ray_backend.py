"""A grid on a Ray cluster. This is the one file that imports Ray, when it is asked for.

Here it is found or started, and what travels to its nodes is packed; `ray_pool.py` has the workers.
"""

import os
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from ..errors import UsageError
from ..host import Host
from ..processes import Termination
from ..training import own
from .cell import Cell
from .dispatch import Pool
from .ray_pool import RayPool, first_line, nodes_of, room_of

_CONNECT_S = 5.0  # seconds within which an address must answer; Ray itself would try for minutes

# What Ray tells about workers and nodes that are gone is said here in a sentence each. A local Ray
# tells nobody that it was used, and GPUs are shown to those that asked for them.
_SETTINGS = {
    "RAY_DEDUP_LOGS_SKIP_REGEX": "(?s).*",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


def _ray() -> Any:
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--ray needs Ray, which is not installed here ({error}): pip install 'gnn-vpa[ray]'"
        ) from None
    return ray


@contextmanager
def connected(
    address: bool | str = True, runtime_env: Mapping[str, object] | None = None
) -> Iterator["RayCluster"]:
    """Use a Ray cluster: the one of this process, one that runs, or one that is started here.

    Args:
        address: Of a cluster, ``host:port``; `True` for the one that RAY_ADDRESS names, or that
            runs on this machine, or else for one that is started, and ended with the context;
            ``local`` for the latter in any case.
        runtime_env: What Ray is to prepare on nodes, such as ``{"working_dir": "."}``.

    Raises:
        UsageError: Ray is not installed, or there is none at the address.
    """
    ray = _ray()
    asked = address if isinstance(address, str) else os.environ.get("RAY_ADDRESS", "")
    if ray.is_initialized():
        if runtime_env:
            raise UsageError(
                "runtime_env: Ray is in use in this process already: give it to ray.init there"
            )
        yield RayCluster(carries_code=False)
        return
    before = signal.getsignal(signal.SIGTERM)
    _connect(ray, asked, dict(runtime_env or {}))
    if isinstance(before, Termination):  # Ray puts a handler in its place
        signal.signal(signal.SIGTERM, before)
    try:
        yield RayCluster(carries_code=bool({"working_dir", "py_modules"} & {*(runtime_env or {})}))
    finally:
        ray.shutdown()


def _connect(ray: Any, asked: str, runtime_env: dict[str, object]) -> None:
    """Connect to the Ray that is asked for, or start one where none is."""
    settings = {"log_to_driver": False, "logging_level": "ERROR", "runtime_env": runtime_env}
    _check_answers(asked)
    try:
        if asked != "local":
            ray.init(address=asked or "auto", **settings)
            return
    except (ConnectionError, ValueError, RuntimeError) as error:
        if asked:
            raise UsageError(
                f"--ray {asked}: there is no Ray that can be used ({first_line(error)}): start it "
                "there with ray start --head, or leave the address away for a Ray of this machine"
            ) from error
    ray.init(address="local", num_cpus=Host.here().cores, include_dashboard=False, **settings)


def _check_answers(address: str) -> None:
    """Refuse an address at which nobody answers."""
    if address in ("", "auto", "local"):
        return
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        raise UsageError(
            f"--ray {address}: expected host:port of a Ray cluster, auto or local; a data set or "
            "an option that is meant goes before --ray"
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except OSError as error:
        raise UsageError(
            f"--ray {address}: nobody answers there ({error}): start Ray with ray start --head, or "
            "leave the address away for a Ray of this machine"
        ) from error


@dataclass(frozen=True)
class RayCluster:
    """The cluster that this process is connected to.

    Attributes:
        carries_code: Whether Ray brings the user's own files to nodes.
    """

    carries_code: bool = False

    def device(self, asked: str) -> Literal["cpu", "cuda"]:
        """Return what groups are trained on: GPUs where there are any, unless it is said.

        Raises:
            UsageError: There is no such device, or one is named that Ray gives away.
        """
        if asked not in ("auto", "cpu", "cuda"):
            raise UsageError(
                f"--device {asked}: with --ray it is auto, cpu or cuda, and Ray says which GPU"
            )
        gpus = self.slots("cuda")
        if asked == "cuda" and not gpus:
            raise UsageError(
                "--device cuda: no node of the Ray cluster has a GPU: use --device cpu, or start "
                "nodes with ray start --num-gpus"
            )
        return "cuda" if gpus and asked != "cpu" else "cpu"

    def slots(self, device: str) -> int:
        """Return how many groups its nodes can train at a time, by their cores or GPUs."""
        return sum(room_of(node, device) for node in nodes_of(_ray()))

    @contextmanager
    def pool(self, device: str, need: int, cells: Sequence[Cell]) -> Iterator[Pool]:
        """Return workers for cells, which need so many bytes each; they end with the context."""
        pool = RayPool(_ray(), device, need, self._packed(cells))
        try:
            yield pool
        finally:
            pool.close()

    def _packed(self, cells: Sequence[Cell]) -> bytes:
        """Return the functions that make users' own models, as they travel: by value.

        Where Ray carries the user's files, nodes import them from there.
        """
        from ray import cloudpickle

        tasks = dict.fromkeys(cell.task for cell in cells if cell.task.source)
        names = {(task.model, task.source) for task in tasks}
        if self.carries_code:
            return cloudpickle.dumps({})  # type: ignore[no-any-return]
        found = {name: own.factory(*name) for name in sorted(names)}
        modules = {m.__name__: m for made in found.values() for m in own.modules_of(made)}
        for module in modules.values():
            cloudpickle.register_pickle_by_value(module)
        try:
            return cloudpickle.dumps(found)  # type: ignore[no-any-return]
        except Exception as error:
            model = ", ".join(name for name, _ in sorted(names))
            raise UsageError(
                f"{model} cannot be sent to other machines as it is ({first_line(error)}): let "
                "Ray carry the folder that it is in, with --runtime-env working_dir=."
            ) from error
        finally:
            for module in modules.values():
                cloudpickle.unregister_pickle_by_value(module)
