"""The report of a run, made from stored files only: one self-contained HTML file.

In brief it is one page of paper. Several runs are one page with bars; delays are
HdrHistogram logs, for other tools.
"""

from dutperf.report.brief import BRIEF, print_pdf, write_brief
from dutperf.report.page import OVERVIEW, write_overview, write_report
from dutperf.report.timing import export_histograms

__all__ = [
    "BRIEF",
    "OVERVIEW",
    "export_histograms",
    "print_pdf",
    "write_brief",
    "write_overview",
    "write_report",
]
