"""The paper's published tables and data-set names, as data."""

from .fair import FairRow as FairRow
from .fair import FairSet as FairSet
from .fair import fair_rows as fair_rows
from .fair import fair_sets as fair_sets
from .names import archive_content as archive_content
from .names import archive_names as archive_names
from .names import archive_with as archive_with
from .names import nearest_names as nearest_names
from .names import paper_name as paper_name
from .names import resolve_name as resolve_name
from .statistics import Statistics as Statistics
from .statistics import published_statistics as published_statistics
from .tables import Accuracy as Accuracy
from .tables import Summary as Summary
from .tables import published as published
from .tables import published_accuracy as published_accuracy
from .tables import published_summary as published_summary

__all__ = [
    "Accuracy",
    "FairRow",
    "FairSet",
    "Statistics",
    "Summary",
    "archive_content",
    "archive_names",
    "archive_with",
    "fair_rows",
    "fair_sets",
    "nearest_names",
    "paper_name",
    "published",
    "published_accuracy",
    "published_statistics",
    "published_summary",
    "resolve_name",
]
