"""What can be set, how it is written, and what it is combined to."""

import pytest

from gnn_vpa.errors import UsageError
from gnn_vpa.experiments.settings import CONTROLS, option_grid, protocols, read_options
from gnn_vpa.training import Protocol


def test_every_field_of_a_protocol_can_be_set() -> None:
    assert {control.field for control in CONTROLS.values()} == set(Protocol.__dataclass_fields__)


def test_nothing_that_is_asked_for_is_the_papers_protocol() -> None:
    assert protocols({}) == protocols(dict.fromkeys(CONTROLS)) == [Protocol()]


def test_a_comma_makes_a_grid_in_the_order_of_what_is_written() -> None:
    grid = protocols({"lr": "0.01,0.001", "batch_size": [32, 64], "optimizer": "SGD"})
    assert [(p.learning_rate, p.batch_size) for p in grid] == [
        (0.01, 32), (0.01, 64), (0.001, 32), (0.001, 64),
    ]  # fmt: skip
    assert {p.optimizer for p in grid} == {"sgd"}


def test_equal_values_count_once() -> None:
    assert len(protocols({"lr": "0.01,1e-2,0.010"})) == 1


def test_none_is_a_value_of_what_can_be_left_away() -> None:
    assert [p.patience for p in protocols({"patience": "none,5"})] == [None, 5]


def test_numbers_are_plain_and_of_their_kind() -> None:
    (protocol,) = protocols({"epochs": "1e2", "lr": 1})
    assert (type(protocol.epochs), type(protocol.learning_rate)) == (int, float)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"lr": "fast"}, "lr: expected a number above 0, got 'fast'"),
        ({"lr": "0.01,-1"}, "lr: expected a number above 0, got '-1'"),
        ({"lr": "nan"}, "lr: expected a number above 0, got 'nan'"),
        ({"lr": 0}, "lr: expected a number above 0, got 0"),
        ({"lr": ""}, "lr: there is no value in ''"),
        ({"epochs": 2.5}, "epochs: expected a whole number from 1 on, got 2.5"),
        ({"epochs": True}, "epochs: expected a whole number from 1 on, got True"),
        ({"weight_decay": -0.1}, "weight_decay: expected a number from 0 on, got -0.1"),
        ({"optimizer": "adamm"}, r"optimizer: 'adamm' is unknown: did you mean adam\?"),
        ({"schedule": "linear"}, "schedule: 'linear' is unknown: use constant, cosine, step"),
        ({"metric": "acuracy"}, "metric: 'acuracy' is unknown: did you mean accuracy"),
        ({"metric": "mae,rmse"}, "metric: one metric chooses the epoch, not several"),
    ],
)
def test_a_value_that_cannot_be_is_named(asked: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        protocols(asked)


def test_the_command_line_is_told_its_own_names() -> None:
    with pytest.raises(UsageError, match=r"^--batch-size: expected a whole number"):
        protocols({"batch_size": "x"}, lambda name: "--" + name.replace("_", "-"))


def test_options_are_read_as_numbers_truths_and_names() -> None:
    assert read_options(["hidden=64,128", "eps=1e-3", "act=relu", "bias=True"]) == {
        "hidden": [64, 128], "eps": [0.001], "act": ["relu"], "bias": [True],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["hidden"], "--set hidden: expected NAME=VALUE"),
        (["hidden="], "--set hidden=: expected a value"),
        (["=3"], "--set =3: expected NAME=VALUE"),
        (["hidden=3", "hidden=4"], "--set hidden: it is there twice"),
        (["learning_rate=3"], "learning_rate is a setting of the training.*use --lr"),
        (["batch_size=3"], "batch_size is a setting of the training.*use --batch-size"),
    ],
)
def test_an_option_that_cannot_be_read_is_named(texts: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_options(texts)


def test_options_are_combined() -> None:
    assert option_grid({}) == [()]
    assert option_grid({"width": [8, 16], "act": "relu,gelu"}) == [
        (("act", "relu"), ("width", 8)),
        (("act", "gelu"), ("width", 8)),
        (("act", "relu"), ("width", 16)),
        (("act", "gelu"), ("width", 16)),
    ]
