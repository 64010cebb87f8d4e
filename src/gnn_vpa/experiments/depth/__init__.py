"""Networks of 4 to 128 layers without normalisation: which aggregation bears depth?"""

from .figure import plot_depth as plot_depth
from .job import Job as Job
from .job import jobs as jobs
from .records import Records as Records
from .run import Watcher as Watcher
from .run import run_jobs as run_jobs
from .variant import DEPTHS as DEPTHS
from .variant import Training as Training
from .variant import Variant as Variant
from .variant import variants as variants

__all__ = [
    "DEPTHS",
    "Job",
    "Records",
    "Training",
    "Variant",
    "Watcher",
    "jobs",
    "plot_depth",
    "run_jobs",
    "variants",
]
