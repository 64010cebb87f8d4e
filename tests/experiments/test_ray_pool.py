"""Workers of a Ray cluster: how many a node has room for, and a store that is full."""

from types import SimpleNamespace

import pytest

from gnn_vpa.errors import GnnVpaError
from gnn_vpa.experiments.ray_pool import explained, room_of
from gnn_vpa.graphs import GraphSet


def test_a_full_object_store_is_said(toy: GraphSet) -> None:
    class FullError(Exception):
        pass

    def put(_: object) -> None:
        raise FullError("The object cannot be created")

    errors = SimpleNamespace(ObjectStoreFullError=FullError, OutOfDiskError=FullError)
    ray = SimpleNamespace(exceptions=errors, put=put)
    with (
        pytest.raises(GnnVpaError, match=r"no room for the data set toy .*--object-store-memory"),
        explained(ray, "the data set toy"),
    ):
        ray.put(toy)


@pytest.mark.parametrize(
    ("resources", "device", "room"),
    [
        ({"CPU": 4.0, "memory": 9e9}, "cpu", 4),
        ({"CPU": 4.0, "memory": 2.5e9}, "cpu", 2),
        ({"CPU": 4.0, "memory": 1e8}, "cpu", 1),
        ({"memory": 9e9}, "cpu", 0),
        ({"CPU": 4.0, "GPU": 2.0}, "cuda", 2),
        ({"CPU": 4.0}, "cuda", 0),
    ],
)
def test_room_of_a_node(resources: dict[str, float], device: str, room: int) -> None:
    assert room_of({"Resources": resources}, device, 10**9) == room
