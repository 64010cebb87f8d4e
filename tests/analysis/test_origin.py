import pandas as pd
import pytest

from gnn_vpa.analysis.origin import origin

SESSION = {"1": {"commit": "abc", "started": "2026-01-01T00:00:00+00:00", "finished": None}}


@pytest.mark.parametrize(
    ("chosen", "named"),
    [([None, None], "trainings"), (["{}", "{}"], "trainings of chosen settings")],
)
def test_seconds_say_whether_settings_that_lost_are_among_them(
    chosen: list[str | None], named: str
) -> None:
    folds = pd.DataFrame({"seconds": [2.0, 3.0], "chosen": chosen})
    assert origin({"sessions": SESSION}, folds)["seconds"] == {named: 5}
