"""The report of a run, made from stored files only: one self-contained HTML file.

And its delays as HdrHistogram logs, for other tools.
"""

from dutperf.report.histogramlog import export_histograms
from dutperf.report.page import write_report

__all__ = ["export_histograms", "write_report"]
