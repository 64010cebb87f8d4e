import pytest

from gnn_vpa import UsageError
from gnn_vpa.experiments.depth import Variant, variants


def test_all_combinations_are_compared() -> None:
    assert len(variants()) == len(set(variants())) == 4 * 2 * 2
    assert len(variants(("vpa",), ("default", "init", "calibrated"), (True,))) == 3


@pytest.mark.parametrize("depth", [4, 128])
def test_residuals_renew_the_variance_once_over_the_whole_depth(depth: int) -> None:
    assert depth * Variant("vpa", "default", residual=True).branch(depth) == pytest.approx(1)
    assert Variant("vpa", "default", residual=False).branch(depth) == 1


@pytest.mark.parametrize(
    ("aggrs", "weights"), [(("median",), ("init",)), (("sum",), ("orthogonal",))]
)
def test_unknown_names_are_wrong_use(aggrs: tuple[str, ...], weights: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="is unknown"):
        variants(aggrs, weights)
