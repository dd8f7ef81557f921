"""The report of a run, made from stored files only: one self-contained HTML file.

Several runs are one page with bars; delays are HdrHistogram logs, for other tools.
"""

from dutperf.report.page import OVERVIEW, write_overview, write_report
from dutperf.report.timing import export_histograms

__all__ = ["OVERVIEW", "export_histograms", "write_overview", "write_report"]
