"""What can be said about models, trainings, choices and splits: the options of commands that train.

Each is a type for a parameter; `None` is what the library does by itself. A text may have several
values with commas, which make a grid.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ..aggregations import names

DATA, METHODS, TRAINING = "Data", "Methods", "Training (a comma makes a grid: --lr 0.01,0.001)"
CHOOSING, SPLITS, RUN = "Choosing", "Splits", "Run"

TaskKind = StrEnum("TaskKind", ["auto", "classes", "labels", "regression"])
Features = StrEnum("Features", ["auto", "ones", "degree", "labels"])


def spelled(name: str) -> str:
    """Return how the command line writes the name of a setting.

    Example:
        >>> spelled("batch_size")
        '--batch-size'
    """
    return "--" + name.replace("_", "-")


def _text(panel: str, text: str, default: str | None, metavar: str = "X,...") -> object:
    return typer.Option(
        metavar=metavar, help=text, show_default=default or False, rich_help_panel=panel
    )


# Data -------------------------------------------------------------------------------------------

TaskOption = Annotated[
    TaskKind,
    typer.Option(
        help="What is learned; auto: as the target looks.",
        rich_help_panel=DATA,
    ),
]
TargetOption = Annotated[
    str | None,
    _text(DATA, "What to learn: attributes:2, or a PyG attribute.", "y", "COLUMN"),
]
FeaturesOption = Annotated[
    Features,
    typer.Option(help="Node features; auto: the data's own, else ones.", rich_help_panel=DATA),
]

# Methods ----------------------------------------------------------------------------------------

ModelOption = Annotated[
    str,
    typer.Option(
        metavar="NAME,...",
        help="Such as gin; gnn-vpa info lists all. Your own: module:function.",
        rich_help_panel=METHODS,
    ),
]
AggrOption = Annotated[
    str | None, _text(METHODS, f"Of {names()}.", "all that a model has", "NAME,...")
]
WidthOption = Annotated[str | None, _text(METHODS, "Width of the layers.", "64", "N,...")]
DepthOption = Annotated[str | None, _text(METHODS, "Number of layers.", "the model's", "N,...")]
DropoutOption = Annotated[str | None, _text(METHODS, "Share that is dropped.", "0.5")]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=X,...",
        help="Any other option of a model; may be repeated.",
        rich_help_panel=METHODS,
    ),
]

# Training ---------------------------------------------------------------------------------------

EpochsOption = Annotated[str | None, _text(TRAINING, "Epochs of each training.", "200", "N,...")]
LrOption = Annotated[str | None, _text(TRAINING, "Learning rate.", "0.001")]
BatchSizeOption = Annotated[str | None, _text(TRAINING, "Graphs of a batch.", "64", "N,...")]
WeightDecayOption = Annotated[str | None, _text(TRAINING, "Weight decay.", "0")]
OptimizerOption = Annotated[str | None, _text(TRAINING, "adam, adamw or sgd.", "adam", "NAME,...")]
ScheduleOption = Annotated[
    str | None,
    _text(
        TRAINING,
        "Of the learning rate: constant, cosine (to 0), step (halved every 50 epochs).",
        "constant",
        "NAME,...",
    ),
]
PatienceOption = Annotated[
    str | None, _text(TRAINING, "End after N epochs without a better one.", "none", "N,...")
]
ClipOption = Annotated[str | None, _text(TRAINING, "Largest norm of a gradient.", "none")]
LossOption = Annotated[
    str | None,
    _text(TRAINING, "cross_entropy, bce, l1, mse or huber.", "as the target is", "NAME,..."),
]
ClassWeightOption = Annotated[
    str | None, _text(TRAINING, "none, or balanced: rare classes count more.", "none", "NAME,...")
]
_PRECISION = "Of nodes' rows on a GPU: bfloat16 is faster."
PrecisionOption = Annotated[str | None, _text(TRAINING, _PRECISION, "float32", "NAME,...")]
RowsOption = Annotated[
    str | None,
    _text(TRAINING, _PRECISION, "as the folder has; bfloat16 on a GPU, else float32", "NAME,..."),
]
"""The same, where models are the paper's: as accurate with bfloat16, see `usual_precision`."""

# Choosing ---------------------------------------------------------------------------------------

MetricOption = Annotated[
    str | None,
    _text(
        CHOOSING,
        "Chooses the epoch and is tested: accuracy, balanced_accuracy, macro_f1, roc_auc, "
        "average_precision, mae, rmse, r2; all are recorded.",
        "accuracy, roc_auc for labels, mae for numbers",
        "NAME",
    ),
]
SelectOption = Annotated[
    bool,
    typer.Option(
        "--select",
        help="Choose the setting that is best on validation, for each fold by itself.",
        rich_help_panel=CHOOSING,
    ),
]
FinalRunsOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        metavar="N",
        help="Train what --select chose so often anew, and average.",
        show_default="3",
        rich_help_panel=CHOOSING,
    ),
]

# Splits -----------------------------------------------------------------------------------------

FoldsOption = Annotated[
    int | None,
    typer.Option(
        min=2, metavar="N", help="Number of folds.", show_default="10", rich_help_panel=SPLITS
    ),
]
RepeatsOption = Annotated[
    int,
    typer.Option(
        min=1,
        metavar="N",
        help="Divide the graphs so often into folds, each time otherwise.",
        rich_help_panel=SPLITS,
    ),
]
SplitsOption = Annotated[
    str | None,
    _text(
        SPLITS,
        "Splits of your own: a JSON file, or a folder with NAME.json for each data set; masks: "
        "the graphs' train_mask, val_mask, test_mask.",
        None,
        "FILE",
    ),
]
GroupsOption = Annotated[
    str | None,
    _text(
        SPLITS,
        "Graphs of one group stay together: a column (attributes:0, or a PyG attribute), or a "
        "file with a line for each graph.",
        None,
        "COLUMN",
    ),
]
SeedOption = Annotated[
    str,
    typer.Option(
        "--seed",
        "--seeds",
        metavar="N,...",
        help="One seed, or several: 0,1,2.",
        rich_help_panel=SPLITS,
    ),
]
OutOption = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="For the results.",
        show_default="runs/ and the data sets",
        rich_help_panel=RUN,
    ),
]
