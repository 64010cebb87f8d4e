"""The probe: the forward and backward signal of any network, by layer, degree and graph size."""

from ._during import Watch as Watch
from ._probe import Probe as Probe
from ._probe import probe as probe
from ._report import Report as Report
from ._statistics import Group as Group
from ._statistics import Statistics as Statistics
from ._step import Step as Step
from ._verdict import Finding as Finding

__all__ = ["Finding", "Group", "Probe", "Report", "Statistics", "Step", "Watch", "probe"]
