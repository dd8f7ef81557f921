"""Results for other programs: CSV, LaTeX and OpenMetrics, one renderer a format.

The tables are those of the report and the terminal (``dutperf.tables``); Markdown is
rendered beside them.
"""

from dutperf.export.csv_tables import csv_table, csv_tables
from dutperf.export.latex import latex
from dutperf.export.openmetrics import openmetrics
from dutperf.export.tables import tables_of

__all__ = ["csv_table", "csv_tables", "latex", "openmetrics", "tables_of"]
