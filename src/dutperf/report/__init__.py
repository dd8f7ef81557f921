"""The report of a run: one self-contained HTML file, made from stored files only."""

from dutperf.report.page import write_report

__all__ = ["write_report"]
