import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gnn_vpa.auditing._columns import columns_of
from gnn_vpa.graphs import Features
from gnn_vpa.graphs.alike import node_kinds


@given(
    st.lists(
        st.tuples(st.sampled_from([0.0, 1.5, -4.0]), st.integers(0, 3)), min_size=1, max_size=6
    )
)
def test_columns_are_what_the_matrix_says(rows: list[tuple[float, int]]) -> None:
    dense = torch.tensor([[value] for value, _ in rows])
    own = Features(num_codes=4, codes=torch.tensor([code for _, code in rows]), dense=dense)
    found, matrix = columns_of(own, node_kinds(own)), own.matrix()
    same = (matrix == matrix[:1]).all(dim=0)
    assert found.constant == tuple(same.nonzero().flatten().tolist())
    assert (found.width, found.dense) == (5, 1)
    assert found.kinds == len(set(map(tuple, matrix.tolist())))
    assert found.largest == float(matrix.abs().max())
    assert found.mean_square == pytest.approx(float(matrix.square().mean()))
    assert found.tell_nothing == (found.kinds == 1)


def test_no_node_has_no_column_to_speak_of() -> None:
    own = Features(num_codes=1, codes=torch.empty(0, dtype=torch.int64))
    found = columns_of(own, node_kinds(own))
    assert (found.kinds, found.largest, found.mean_square) == (0, 0.0, 0.0)
