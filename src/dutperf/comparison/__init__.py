"""Runs compared with a baseline: the same cells side by side, and what is shown."""

from dutperf.comparison.as_data import as_data
from dutperf.comparison.comparison_tables import (
    comparison_tables,
    difference_table,
    sentences,
)
from dutperf.comparison.history import with_history
from dutperf.comparison.judging import Comparison, compare
from dutperf.comparison.junit import junit
from dutperf.comparison.page import page_of
from dutperf.comparison.sides import read_runs, read_sides
from dutperf.comparison.surroundings import differences_of

__all__ = [
    "Comparison",
    "as_data",
    "compare",
    "comparison_tables",
    "difference_table",
    "differences_of",
    "junit",
    "page_of",
    "read_runs",
    "read_sides",
    "sentences",
    "with_history",
]
