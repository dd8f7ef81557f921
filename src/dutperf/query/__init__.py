"""All stored results as views of one database, and figures over time.

from dutperf import query
database = query.connect(["results"])
database.sql("select device, frame_size, median(rate_fps) from results group by all")
"""

from dutperf.query.columns import Column, View
from dutperf.query.database import connect
from dutperf.query.figures import StoredFigure, figures_of
from dutperf.query.index import VIEWS
from dutperf.query.runs import Run
from dutperf.query.select import Selected, count_rows, selected, write_parquet
from dutperf.query.trend import Change, Point, Series, trends

__all__ = [
    "VIEWS",
    "Change",
    "Column",
    "Point",
    "Run",
    "Selected",
    "Series",
    "StoredFigure",
    "View",
    "connect",
    "count_rows",
    "figures_of",
    "selected",
    "trends",
    "write_parquet",
]
