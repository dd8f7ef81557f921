"""All stored results as views of one database, and figures over time.

from dutperf import query
database = query.connect(["results"])
database.sql("select device, frame_size, median(rate_fps) from results group by all")
"""

from dutperf.query.database import connect

__all__ = ["connect"]
