"""Workers of a Ray cluster, and all that can happen to them.

A worker is an actor that stays on its node: it has imported what it needs and keeps the data that
it was sent, and this process knows what each of them is at. Nothing that matters is in Ray's object
store alone, and nothing is retried by Ray: what a lost worker was at is known here, and goes out
again (`dispatch.py`).
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import gnn_vpa

from ..errors import GnnVpaError
from ..graphs import GraphSet
from ..versions import versions
from .dispatch import Event, Finished, Lost, Noted, Raised, Refused, Told, Worker
from .ray_actor import actor_class
from .slot import Job, Place

_RECOUNT_S = 1.0  # between two looks at which nodes there are
_NEWS_S = 1.0  # between two questions to a worker how far it is
_PATIENCE_S = 60.0  # without any worker until that is said
_SHORT = 4  # digits of a node's number that are shown


def nodes_of(ray: Any) -> list[dict[str, Any]]:
    """Return the nodes that are there."""
    return [node for node in ray.nodes() if node["Alive"]]


def room_of(node: Mapping[str, Any], device: str, need: int = 0) -> int:
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
        self._class = ray.remote(max_concurrency=2, max_restarts=0, max_task_retries=0)(
            actor_class()
        )
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
        every = [node for node in nodes_of(self._ray) if node["NodeID"] not in self._refused]
        sizes = {node["NodeID"]: room_of(node, self._device, self._need) for node in every}
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
        there = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        number = node["NodeID"]
        self._number[number] += 1
        name = f"{node['NodeManagerHostname']} {number[:_SHORT]}"
        is_cpu = self._device == "cpu"
        most = int(node["Resources"].get("memory", 0))
        handle = self._class.options(
            num_cpus=1 if node["Resources"].get("CPU", 0) else 0,
            num_gpus=0 if is_cpu else 1,
            memory=min(self._need, most) if is_cpu else 0,
            scheduling_strategy=there(number, soft=False),
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
                with explained(self._ray, f"the data set {graphs.name}"):
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
            self._refuse(actor, f"Ray could not prepare it: {first_line(error)}")
        except errors.ActorUnavailableError:
            if question != "probe":
                # Not reached for now, or dead: the next call knows, when Ray does.
                self._ask(actor, "probe", actor.handle.news.remote())
            else:
                self._lose(actor, "its node could not be reached", with_node=True)
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
            self._refuse(actor, first_line(cause))
        elif question == "train":
            full = self._ray.exceptions.ObjectStoreFullError, self._ray.exceptions.OutOfDiskError
            if isinstance(cause, full):
                cause = _full("what was trained", cause)
            elif not isinstance(cause, Exception):
                cause = GnnVpaError(f"{actor.name}: {first_line(error)}")
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


def _full(what: str, error: Exception) -> GnnVpaError:
    return GnnVpaError(
        f"Ray's object store has no room for {what} ({first_line(error)}). What is finished is "
        "kept: give Ray more, with ray start --object-store-memory, and type the same again."
    )


@contextmanager
def explained(ray: Any, what: str) -> Iterator[None]:
    """Say what to do about an object store that is full."""
    try:
        yield
    except (ray.exceptions.ObjectStoreFullError, ray.exceptions.OutOfDiskError) as error:
        raise _full(what, error) from error


def first_line(error: object) -> str:
    """Return what an error says in its first line."""
    return str(error).strip().partition("\n")[0]
