"""The data: reading, caching and downloading data sets, node features and splits."""

from .alike import Ceiling as Ceiling
from .alike import alike as alike
from .alike import ceiling as ceiling
from .cache import cache_dir as cache_dir
from .cache import read_cached as read_cached
from .colours import refine as refine
from .divisions import Division as Division
from .divisions import FixedDivision as FixedDivision
from .divisions import GroupedDivision as GroupedDivision
from .divisions import GroupsAsked as GroupsAsked
from .divisions import SplitsAsked as SplitsAsked
from .divisions import division as division
from .download import TU_COLLECTION as TU_COLLECTION
from .download import download as download
from .features import FeatureKind as FeatureKind
from .features import Features as Features
from .features import features as features
from .graphset import GraphSet as GraphSet
from .levels import Level as Level
from .levels import levels as levels
from .load import AbsentError as AbsentError
from .load import load as load
from .locate import download_dir as download_dir
from .locate import find_archives as find_archives
from .merge import Merged as Merged
from .merge import merge as merge
from .numbering import Numbering as Numbering
from .splits import Split as Split
from .splits import splits as splits
from .subset import subset as subset
from .targets import TargetKind as TargetKind
from .targets import kind_of as kind_of
from .targets import missing_remark as missing_remark
from .targets import with_target as with_target
from .tu import read_tu as read_tu

__all__ = [
    "TU_COLLECTION",
    "AbsentError",
    "Ceiling",
    "Division",
    "FeatureKind",
    "Features",
    "FixedDivision",
    "GraphSet",
    "GroupedDivision",
    "GroupsAsked",
    "Level",
    "Merged",
    "Numbering",
    "Split",
    "SplitsAsked",
    "TargetKind",
    "alike",
    "cache_dir",
    "ceiling",
    "division",
    "download",
    "download_dir",
    "features",
    "find_archives",
    "kind_of",
    "levels",
    "load",
    "merge",
    "missing_remark",
    "read_cached",
    "read_tu",
    "refine",
    "splits",
    "subset",
    "with_target",
]
