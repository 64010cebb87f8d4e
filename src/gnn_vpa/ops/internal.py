"""What other rooms use of this one, and users should not: it may change at any time."""

from ._aggregate import counted as counted
from ._aggregate import scaled_sum as scaled_sum
from ._aggregate import weighted_sum as weighted_sum
from ._attend import attend_by_power as attend_by_power
from ._attend import softmax as softmax
from ._cache import Mark as Mark
from ._cache import Memory as Memory
from ._cache import as_graph as as_graph
from ._cache import graph_of_list as graph_of_list
from ._cache import is_traceable as is_traceable
from ._cache import memorable as memorable
from ._check import check_graph as check_graph
from ._counting import by_row as by_row
from ._counting import transposed as transposed
from ._csr import CSR as CSR
from ._csr import check_below as check_below
from ._csr import check_range as check_range
from ._csr import is_on_host as is_on_host
from ._csr import is_plain_list as is_plain_list
from ._csr import rows as rows
from ._define import define as define
from ._dtypes import accumulable as accumulable
from ._dtypes import accumulator as accumulator
from ._edges import from_sources as from_sources
from ._edges import from_targets as from_targets
from ._formats import check_device as check_device
from ._formats import endpoints as endpoints
from ._graph import trainable as trainable
from ._norm import normed as normed
from ._operators import sddmm as sddmm
from ._parts import attend_by_parts as attend_by_parts
from ._parts import attend_by_vectors as attend_by_vectors
from ._power import power as power
from ._script import raise_unscriptable as raise_unscriptable
from ._short import is_untraced as is_untraced
from ._short import normalised_sum as normalised_sum
from ._short import power_sum as power_sum
from ._traced import traced_sum as traced_sum
from ._traced_attention import traced_attention as traced_attention
from ._ungrouped import Ungrouped as Ungrouped
from ._ungrouped import UngroupedEdges as UngroupedEdges

__all__ = [
    "CSR",
    "Mark",
    "Memory",
    "Ungrouped",
    "UngroupedEdges",
    "accumulable",
    "accumulator",
    "as_graph",
    "attend_by_parts",
    "attend_by_power",
    "attend_by_vectors",
    "by_row",
    "check_below",
    "check_device",
    "check_graph",
    "check_range",
    "counted",
    "define",
    "endpoints",
    "from_sources",
    "from_targets",
    "graph_of_list",
    "is_on_host",
    "is_plain_list",
    "is_traceable",
    "is_untraced",
    "memorable",
    "normalised_sum",
    "normed",
    "power",
    "power_sum",
    "raise_unscriptable",
    "rows",
    "scaled_sum",
    "sddmm",
    "softmax",
    "traced_attention",
    "traced_sum",
    "trainable",
    "transposed",
    "weighted_sum",
]
