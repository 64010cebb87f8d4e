"""A grid on a Ray cluster. This is the one file that imports Ray, when it is asked for.

A worker is an actor that stays on its node: it has imported what it needs and keeps the data that
it was sent, and this process knows what each of them is at. Nothing that matters is in Ray's object
store alone, and nothing is retried by Ray: what a lost worker was at is known here, and goes out
again (`dispatch.py`).
"""

import os
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import gnn_vpa

from ..errors import GnnVpaError, UsageError
from ..graphs import GraphSet
from ..host import Host
from ..training import own
from ..versions import versions
from .cell import Cell
from .dispatch import Event, Finished, Lost, Noted, Pool, Raised, Refused, Told, Worker
from .slot import Job, Place

_CONNECT_S = 5.0  # seconds within which an address must answer; Ray itself would try for minutes
_RECOUNT_S = 1.0  # between two looks at which nodes there are
_NEWS_S = 1.0  # between two questions to a worker how far it is
_PATIENCE_S = 60.0  # without any worker until that is said
_SHORT = 4  # digits of a node's number that are shown

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
    _connect(ray, asked, dict(runtime_env or {}))
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
                f"--ray {asked}: there is no Ray that can be used ({_first_line(error)}): start it "
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
        return sum(_room(node, device) for node in _nodes())

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
                f"{model} cannot be sent to other machines as it is ({_first_line(error)}): let "
                "Ray carry the folder that it is in, with --runtime-env working_dir=."
            ) from error
        finally:
            for module in modules.values():
                cloudpickle.unregister_pickle_by_value(module)


def _nodes() -> list[dict[str, Any]]:
    return [node for node in _ray().nodes() if node["Alive"]]


def _room(node: Mapping[str, Any], device: str, need: int = 0) -> int:
    """Return how many workers a node has room for: by its cores and memory, or by its GPUs."""
    there: Mapping[str, float] = node["Resources"]
    if device != "cpu":
        return int(there.get("GPU", 0))
    cores = int(there.get("CPU", 0))
    return min(cores, max(1, int(there.get("memory", 0) // need))) if need else cores


@dataclass(eq=False)
class _Actor(Worker):
    """A worker, and how Ray calls it."""

    handle: Any = None
    contents: set[str] = field(default_factory=set)  # of data that it has
    asked: float = 0.0  # when it was last asked for news


Question = Literal["place", "train", "news", "probe"]


class RayPool:
    """Workers on all nodes of a cluster, as many as there are cores or GPUs.

    Args:
        ray: The library.
        device: What workers train on.
        need: Bytes that a worker needs.
        factories: What makes users' own models, pickled.
        clock: Tells the time in seconds.
    """

    def __init__(
        self,
        ray: Any,
        device: str,
        need: int,
        factories: bytes,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ray, self._device, self._need, self._clock = ray, device, need, clock
        self._class = ray.remote(max_concurrency=2, max_restarts=0, max_task_retries=0)(_actor())
        self._factories = ray.put(factories)
        self._data: dict[str, Any] = {}  # references by content
        self._actors: list[_Actor] = []
        self._questions: dict[Any, tuple[_Actor, Question]] = {}  # by reference
        self._refused: dict[str, str] = {}  # why, by node
        self._number: Counter[str] = Counter()
        self._events: list[Event] = []
        self._recounted = -_RECOUNT_S
        self._used = clock()  # when there was a worker last
        self._known: set[str] = set()  # nodes that have had a worker

    def close(self) -> None:
        """End all workers."""
        for actor in list(self._actors):
            self._drop(actor)

    # Nodes ------------------------------------------------------------------------------------

    def grow(self, wanted: int) -> None:
        """Ask for workers where nodes have room: so many in all, and no more."""
        if self._clock() - self._recounted < _RECOUNT_S:
            return
        self._recounted = self._clock()
        every = [node for node in _nodes() if node["NodeID"] not in self._refused]
        sizes = {node["NodeID"]: _room(node, self._device, self._need) for node in every}
        nodes = [node for node in every if sizes[node["NodeID"]] > 0]
        room = {node["NodeID"]: sizes[node["NodeID"]] for node in nodes}
        for actor in self._actors:
            if actor.node in room:
                room[actor.node] -= 1
        by_id = {node["NodeID"]: node for node in nodes}
        while len(self._actors) < wanted and max(room.values(), default=0) > 0:
            most = max(room, key=room.__getitem__)  # the nodes fill evenly
            room[most] -= 1
            self._start(by_id[most])
        self._complain(nodes)

    def _complain(self, nodes: Sequence[Mapping[str, Any]]) -> None:
        """Say that there is nobody to work, once for each time that it is so."""
        if any(actor.place for actor in self._actors):
            self._used = self._clock()
            return
        if not nodes and self._refused:
            raise GnnVpaError(
                f"no node of the Ray cluster can be used: {'; '.join(set(self._refused.values()))}"
            )
        if self._clock() - self._used > _PATIENCE_S:
            self._used = float("inf")
            what = "a core" if self._device == "cpu" else "a GPU"
            self._events.append(
                Noted(
                    f"No worker is there yet: nodes take long to start one, or none has {what} "
                    "that is free. The run waits; Ctrl-C ends it, and the same command goes on."
                )
            )

    def _start(self, node: Mapping[str, Any]) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        number = node["NodeID"]
        self._number[number] += 1
        name = f"{node['NodeManagerHostname']} {number[:_SHORT]}"
        is_cpu = self._device == "cpu"
        most = int(node["Resources"].get("memory", 0))
        handle = self._class.options(
            num_cpus=1 if node["Resources"].get("CPU", 0) else 0,
            num_gpus=0 if is_cpu else 1,
            memory=min(self._need, most) if is_cpu else 0,
            scheduling_strategy=NodeAffinitySchedulingStrategy(number, soft=False),
        ).remote(self._device, self._factories)
        actor = _Actor(f"{name} #{self._number[number]}", number, handle=handle)
        self._actors.append(actor)
        self._ask(actor, "place", handle.place.remote())

    def refuse(self, node: str, why: str = "its device failed") -> None:
        """Use a node no more."""
        self._refused[node] = why
        for actor in [actor for actor in self._actors if actor.node == node]:
            if actor.group is None:  # what is under way may come to its end
                self._drop(actor)

    # Jobs -------------------------------------------------------------------------------------

    def idle(self) -> Sequence[Worker]:
        """Return the workers that are there and have nothing to do."""
        return [
            actor
            for actor in self._actors
            if actor.place and actor.group is None and actor.node not in self._refused
        ]

    def send(self, worker: Worker, job: Job, graphs: GraphSet) -> None:
        """Give a job to an idle worker, with its data if it has not had them."""
        assert isinstance(worker, _Actor)
        content = job.group.content
        data = None
        if content not in worker.contents:
            if content not in self._data:
                with _explained(self._ray, f"the data set {graphs.name}"):
                    self._data[content] = self._ray.put(graphs)
            data = self._data[content]
            worker.contents.add(content)
        worker.asked = self._clock()
        self._ask(worker, "train", worker.handle.train.remote(job, data))

    def _ask(self, actor: _Actor, question: Question, reference: Any) -> None:
        self._questions[reference] = actor, question

    def _drop(self, actor: _Actor) -> None:
        """Forget a worker, and make sure that it works no more."""
        if actor in self._actors:
            self._actors.remove(actor)
        for reference in [r for r, (whose, _) in self._questions.items() if whose is actor]:
            del self._questions[reference]
        with suppress(Exception):  # it is gone
            self._ray.kill(actor.handle, no_restart=True)

    # What comes back --------------------------------------------------------------------------

    def events(self, seconds: float) -> Sequence[Event]:
        """Return what has happened; wait so long for something to happen."""
        self._ask_for_news()
        references = list(self._questions)
        if not references:
            time.sleep(0 if self._events else seconds)
        else:
            ready, rest = self._ray.wait(
                references, num_returns=1, timeout=0 if self._events else seconds
            )
            if ready and rest:
                ready += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0]
            for reference in ready:
                self._answer(reference)
        found, self._events = self._events, []
        return found

    def _ask_for_news(self) -> None:
        now = self._clock()
        for actor in self._actors:
            if actor.group is not None and now - actor.asked >= _NEWS_S:
                actor.asked = float("inf")  # until the answer is there
                self._ask(actor, "news", actor.handle.news.remote())

    def _answer(self, reference: Any) -> None:
        errors = self._ray.exceptions
        if reference not in self._questions:
            return  # of a worker that was dropped just now
        actor, question = self._questions.pop(reference)
        try:
            answer = self._ray.get(reference)
        except errors.RayTaskError as error:
            self._failed(actor, question, error)
        except (errors.ObjectStoreFullError, errors.OutOfDiskError) as error:
            self._events.append(Raised(actor, _full("what was trained", error)))
        except errors.RuntimeEnvSetupError as error:
            self._refuse(actor, f"Ray could not prepare it: {_first_line(error)}")
        except errors.ActorUnavailableError:
            if question != "probe":
                # Not reached for now, or dead: the next call knows, when Ray does.
                self._ask(actor, "probe", actor.handle.news.remote())
            else:
                self._lose(actor, "it could not be reached", with_node=True)
        except errors.ObjectLostError:
            self._lose(actor, "what it sent back was lost", with_node=True)
        except errors.RayError as error:
            if "its node has died" in str(error):
                self._lose(actor, "its node is gone", with_node=True)
            else:
                is_full = "low on memory" in str(error)
                why = "its node ran out of memory" if is_full else "its process was killed"
                self._lose(actor, why, with_node=False)
        else:
            self._answered(actor, question, answer)

    def _answered(self, actor: _Actor, question: Question, answer: Any) -> None:
        if question == "place":
            self._welcome(actor, *answer)
        elif question == "train":
            actor.asked = 0.0
            self._events.append(Finished(actor, answer))
        elif question == "news":
            actor.asked = self._clock()
            self._events.append(Told(actor, answer))
        else:  # it lives, but whether it has had its job nobody knows
            self._lose(actor, "it could not be reached for a while", with_node=True)

    def _welcome(self, actor: _Actor, problem: str, place: Place | None) -> None:
        if place is None:
            self._refuse(actor, problem)
            return
        if place.package != gnn_vpa.__version__:
            self._refuse(
                actor,
                f"it has gnn-vpa {place.package}, and {gnn_vpa.__version__} is here: install the "
                "same",
            )
            return
        actor.place = place
        if actor.node not in self._known:
            self._known.add(actor.node)
            here, there = versions(), place.where.versions
            different = [f"{n} {v}" for n, v in there.items() if here.get(n) != v]
            text = f"{actor.name.rpartition(' ')[0]} is at work: {place.device}"
            if different:
                text += f". It has {', '.join(different)}, other than here: numbers may differ"
            self._events.append(Noted(text))

    def _failed(self, actor: _Actor, question: Question, error: Any) -> None:
        """Tell of an error that was raised on a node, as if it had been raised here."""
        cause = error.cause
        if question == "place":
            self._refuse(actor, _first_line(cause))
        elif question == "train":
            full = self._ray.exceptions.ObjectStoreFullError, self._ray.exceptions.OutOfDiskError
            if isinstance(cause, full):
                cause = _full("what was trained", cause)
            elif not isinstance(cause, Exception):
                cause = GnnVpaError(f"{actor.name}: {_first_line(error)}")
            if not isinstance(cause, GnnVpaError):
                cause.add_note(f"On {actor.name}:\n{error.traceback_str}")
            self._events.append(Raised(actor, cause))

    def _refuse(self, actor: _Actor, why: str) -> None:
        is_new = actor.node not in self._refused
        self.refuse(actor.node, why)
        self._drop(actor)
        if is_new:
            self._events.append(Refused(actor, why))

    def _lose(self, actor: _Actor, why: str, with_node: bool) -> None:
        self._drop(actor)
        self._events.append(Lost(actor, why, with_node))


def _first_line(error: object) -> str:
    return str(error).strip().partition("\n")[0]


def _full(what: str, error: Exception) -> GnnVpaError:
    return GnnVpaError(
        f"Ray's object store has no room for {what} ({_first_line(error)}). What is finished is "
        "kept: give Ray more, with ray start --object-store-memory, and type the same again."
    )


@contextmanager
def _explained(ray: Any, what: str) -> Iterator[None]:
    """Say what to do about an object store that is full."""
    try:
        yield
    except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError) as error:
        raise _full(what, error) from error


def _actor() -> type:
    """Return the class that Ray runs on nodes.

    It is made here, and knows no other name of ours, so that it travels by value: a node that has
    no gnn-vpa, or another one, can say so.
    """

    class Slot:
        def __init__(self, device: str, factories: bytes) -> None:
            self.problem, self.slot = "", None  # type: str, Any
            try:
                import torch

                from gnn_vpa.experiments.slot import Slot as Inner
            except ImportError as error:
                self.problem = f"gnn-vpa cannot be used there ({error}): install it on the node"
                return
            if device != "cpu" and not torch.cuda.is_available():
                self.problem = "Ray counts a GPU there, and torch finds none that it can use"
                return
            try:
                import pickle

                made = pickle.loads(factories)
            except Exception as error:
                self.problem = (
                    f"the models cannot be made there ({error}): let Ray carry the folder that "
                    "they are in, with --runtime-env working_dir=."
                )
                return
            self.slot = Inner(device, made)

        def place(self) -> Any:
            return self.problem, self.slot and self.slot.place()

        def train(self, job: Any, graphs: Any) -> Any:
            return self.slot.train(job, graphs)

        def news(self) -> Any:
            return self.slot.news()

    return Slot
