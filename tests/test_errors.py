import pytest

from gnn_vpa import GnnVpaError, UsageError


def test_wrong_use_is_one_of_our_errors_and_a_value_error() -> None:
    for expected in (GnnVpaError, ValueError):
        with pytest.raises(expected, match="aggr"):
            raise UsageError("aggr: 'median' is unknown")


def test_other_errors_are_no_value_errors() -> None:
    assert not issubclass(GnnVpaError, ValueError)
