"""Experiments: grids of trainings, run so that results survive, and the results themselves."""

from ..baselines import BASELINES as BASELINES
from .baselines import fit_baseline as fit_baseline
from .cell import Cell as Cell
from .cell import Target as Target
from .devices import resolve_device as resolve_device
from .devices import resolve_devices as resolve_devices
from .estimate import Estimate as Estimate
from .estimate import Pace as Pace
from .estimate import epoch_work as epoch_work
from .estimate import estimate as estimate
from .estimate import format_duration as format_duration
from .estimate import paces_of_run as paces_of_run
from .estimate import time_models as time_models
from .fair import fair_cells as fair_cells
from .forecast import Forecast as Forecast
from .frames import read_ceilings as read_ceilings
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
from .locks import try_lock as try_lock
from .plan import Needs as Needs
from .plan import needs as needs
from .precision import usual_precision as usual_precision
from .presets import PRESETS as PRESETS
from .presets import preset as preset
from .progress import Progress as Progress
from .runner import run_grid as run_grid
from .selection import Selection as Selection
from .selection import Setting as Setting
from .settings import protocols as protocols
from .signals import Signal as Signal
from .signals import initial_signals as initial_signals
from .store import Result as Result
from .store import Store as Store
from .store import dataset_names as dataset_names
from .store import finished as finished
from .store import fold_scores as fold_scores
from .workers import Team as Team

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
    "Result",
    "Selection",
    "Setting",
    "Signal",
    "Store",
    "Target",
    "Team",
    "dataset_name",
    "dataset_names",
    "default_folder",
    "epoch_work",
    "estimate",
    "expand",
    "fair_cells",
    "finished",
    "fit_baseline",
    "fold_scores",
    "format_duration",
    "grouped",
    "identify",
    "initial_signals",
    "needs",
    "paces_of_run",
    "preset",
    "protocols",
    "read_ceilings",
    "read_curves",
    "read_folds",
    "read_provenance",
    "read_signals",
    "resolve_device",
    "resolve_devices",
    "run_grid",
    "select",
    "time_models",
    "try_lock",
    "usual_precision",
]
