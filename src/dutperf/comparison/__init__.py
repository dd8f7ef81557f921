"""Runs compared with a baseline: the same cells side by side, and what is shown."""

from dutperf.comparison.comparison_tables import (
    comparison_tables,
    difference_table,
    differences_of,
    sentences,
)
from dutperf.comparison.judging import Comparison, compare
from dutperf.comparison.output import as_data, junit, page_of
from dutperf.comparison.sides import read_runs, read_sides, with_history

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
