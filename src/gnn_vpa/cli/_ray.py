"""``--ray``: run on a Ray cluster; the options, and the cluster that they ask for."""

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UsageError

if TYPE_CHECKING:
    from ..experiments.places import Slots
    from ..experiments.ray_backend import RayCluster

_ADDRESS = re.compile(r"auto|local|(ray://)?[^\s/]+:[0-9]+")
_ANY = "--ray="  # without an address


def ray_option(panel: str | None = None) -> Any:
    """Return what asks for a Ray cluster."""
    return typer.Option(
        "--ray",
        metavar="[ADDRESS]",
        help="Run on a Ray cluster: host:port, or the one that RAY_ADDRESS names or that runs "
        "here; else one is started on this machine.",
        rich_help_panel=panel,
    )


def runtime_env_option(panel: str | None = None) -> Any:
    """Return what Ray is to prepare on its nodes."""
    return typer.Option(
        "--runtime-env",
        metavar="NAME=X",
        help="For --ray, what nodes need: working_dir=. carries this folder; may be repeated.",
        rich_help_panel=panel,
    )


RayOption = Annotated[str | None, ray_option()]
RuntimeEnvOption = Annotated[list[str] | None, runtime_env_option()]


def spell_ray(arguments: Sequence[str]) -> list[str]:
    """Give ``--ray`` a value where no address follows: what follows may be a data set.

    Example:
        >>> spell_ray(["run", "--ray", "MUTAG"]), spell_ray(["run", "--ray", "head:6379"])
        (['run', '--ray=', 'MUTAG'], ['run', '--ray', 'head:6379'])
    """
    following = [*arguments[1:], ""]
    return [
        _ANY if argument == "--ray" and not _ADDRESS.fullmatch(after) else argument
        for argument, after in zip(arguments, following, strict=False)
    ]


@contextmanager
def cluster_of(ray: str | None, runtime_env: Sequence[str] | None) -> "Iterator[RayCluster | None]":
    """Connect to the cluster that is asked for; None: none is."""
    if ray is None:
        if runtime_env:
            raise UsageError("--runtime-env is for Ray's nodes: use it with --ray")
        yield None
        return
    from ..experiments.ray_backend import connected
    from ._console import progress

    with progress("Connecting to Ray"):
        connection = connected(ray or True, _runtime_env(runtime_env or []))
        cluster = connection.__enter__()
    try:
        yield cluster
    finally:
        connection.__exit__(None, None, None)


@contextmanager
def planned_on(
    ray: str | None, runtime_env: Sequence[str] | None, device: str
) -> "Iterator[Slots | None]":
    """Tell how many groups a cluster can train at a time; None: no cluster is asked for."""
    from ..experiments.places import Slots

    with cluster_of(ray, runtime_env) as cluster:
        if cluster is None:
            yield None
        else:
            where = cluster.device(device)
            yield Slots(cluster.slots(where), where)


def _runtime_env(settings: Sequence[str]) -> dict[str, Any]:
    """Read NAME=X; X is JSON, or text."""
    found: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not (name and equals and value):
            raise UsageError(f"--runtime-env {setting}: expected NAME=X, such as working_dir=.")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found
