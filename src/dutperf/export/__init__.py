"""Results for other programs: CSV, LaTeX and OpenMetrics, one renderer a format.

The tables are those of the report and the terminal (``dutperf.tables``); Markdown is
rendered beside them.
"""

from dutperf.export.formats import csv_table, csv_tables, latex, openmetrics, tables_of

__all__ = ["csv_table", "csv_tables", "latex", "openmetrics", "tables_of"]
