"""The report of a run, made from stored files only: one self-contained HTML file.

Several runs are one page with bars; delays are HdrHistogram logs, for other tools.
"""

from dutperf.report.histogramlog import export_histograms
from dutperf.report.overview import OVERVIEW, write_overview
from dutperf.report.page import write_report

__all__ = ["OVERVIEW", "export_histograms", "write_overview", "write_report"]
