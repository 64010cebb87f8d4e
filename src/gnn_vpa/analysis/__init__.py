"""What came out: statistics, tables, figures and the report.

Pure functions over two frames. `folds` has a row for each finished training: dataset, model,
aggregation, variant, features, fold, seed, test_score, status ("done" or "diverged") and more, such
as metric (without it: accuracy) and repeat. `curves` has the same first seven columns, epoch and
train_loss. In both, `options` of the models and what is unusual in the `protocol` may set results
apart too. Scores that are shares are fractions there, and in percent in everything that is made of
them.
"""

from .answer import Answer as Answer
from .answer import Candidate as Candidate
from .answer import Choice as Choice
from .answer import answer as answer
from .answer import answer_dots as answer_dots
from .claims import Claim as Claim
from .claims import Verdict as Verdict
from .claims import judge_claims as judge_claims
from .comparison import compare_with_paper as compare_with_paper
from .comparison import standard_error as standard_error
from .exports import to_csv as to_csv
from .exports import to_latex as to_latex
from .exports import to_markdown as to_markdown
from .fair import fair_folds as fair_folds
from .fair import write_fair as write_fair
from .figures import curves_by_dataset as curves_by_dataset
from .figures import fold_dots as fold_dots
from .figures import learning_curves as learning_curves
from .figures import signal_lines as signal_lines
from .findings import findings as findings
from .markdown import write_markdown as write_markdown
from .measure import Measure as Measure
from .measure import measure as measure
from .measure import measure_of as measure_of
from .origin import origin as origin
from .ranks import RankTest as RankTest
from .ranks import holm as holm
from .ranks import paired_wilcoxon as paired_wilcoxon
from .record import write_record as write_record
from .report import render_report as render_report
from .report import write_report as write_report
from .resampled import Estimate as Estimate
from .resampled import average as average
from .resampled import corrected_mean as corrected_mean
from .settings import Setting as Setting
from .settings import shown_settings as shown_settings
from .settings import split_by_setting as split_by_setting
from .significance import dataset_tests as dataset_tests
from .significance import overall_tests as overall_tests
from .summary import fold_scores as fold_scores
from .summary import summarise as summarise
from .tables import Cell as Cell
from .tables import Published as Published
from .tables import Row as Row
from .tables import ScoreTable as ScoreTable
from .tables import score_table as score_table

__all__ = [
    "Answer",
    "Candidate",
    "Cell",
    "Choice",
    "Claim",
    "Estimate",
    "Measure",
    "Published",
    "RankTest",
    "Row",
    "ScoreTable",
    "Setting",
    "Verdict",
    "answer",
    "answer_dots",
    "average",
    "compare_with_paper",
    "corrected_mean",
    "curves_by_dataset",
    "dataset_tests",
    "fair_folds",
    "findings",
    "fold_dots",
    "fold_scores",
    "holm",
    "judge_claims",
    "learning_curves",
    "measure",
    "measure_of",
    "origin",
    "overall_tests",
    "paired_wilcoxon",
    "render_report",
    "score_table",
    "shown_settings",
    "signal_lines",
    "split_by_setting",
    "standard_error",
    "summarise",
    "to_csv",
    "to_latex",
    "to_markdown",
    "write_fair",
    "write_markdown",
    "write_record",
    "write_report",
]
