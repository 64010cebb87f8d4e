"""Experiments: grids of trainings, run so that results survive, and the results themselves."""

from ._workers import Team as Team
from .baselines import BASELINES as BASELINES
from .baselines import fit_baseline as fit_baseline
from .cell import Cell as Cell
from .claims import claim as claim
from .estimate import Estimate as Estimate
from .estimate import Pace as Pace
from .estimate import calibrate as calibrate
from .estimate import duration as duration
from .estimate import estimate as estimate
from .estimate import seen as seen
from .estimate import size as size
from .forecast import Forecast as Forecast
from .frames import read_curves as read_curves
from .frames import read_folds as read_folds
from .frames import read_provenance as read_provenance
from .frames import read_signals as read_signals
from .grid import Grid as Grid
from .grid import dataset_name as dataset_name
from .grid import default_folder as default_folder
from .grid import expand as expand
from .grid import select as select
from .groups import Group as Group
from .groups import grouped as grouped
from .identity import Identified as Identified
from .identity import identify as identify
from .plan import Needs as Needs
from .plan import needs as needs
from .presets import PRESETS as PRESETS
from .presets import preset as preset
from .progress import Progress as Progress
from .runner import resolve_device as resolve_device
from .runner import run_grid as run_grid
from .signals import Signal as Signal
from .signals import initial_signals as initial_signals
from .store import Store as Store
from .store import dataset_names as dataset_names
from .store import finished as finished
from .store import fold_accuracies as fold_accuracies

__all__ = [
    "BASELINES",
    "PRESETS",
    "Cell",
    "Estimate",
    "Forecast",
    "Grid",
    "Group",
    "Identified",
    "Needs",
    "Pace",
    "Progress",
    "Signal",
    "Store",
    "Team",
    "calibrate",
    "claim",
    "dataset_name",
    "dataset_names",
    "default_folder",
    "duration",
    "estimate",
    "expand",
    "finished",
    "fit_baseline",
    "fold_accuracies",
    "grouped",
    "identify",
    "initial_signals",
    "needs",
    "preset",
    "read_curves",
    "read_folds",
    "read_provenance",
    "read_signals",
    "resolve_device",
    "run_grid",
    "seen",
    "select",
    "size",
]
