"""All runs below a directory as Parquet files, read once (docs/query.md).

``indexed`` brings the index of each place up to date, and gives the rows of all.
"""

from dutperf.query.index.bounded import bounded
from dutperf.query.index.snapshot import Snapshot, indexed
from dutperf.query.index.tables import TABLES, VIEWS

__all__ = ["TABLES", "VIEWS", "Snapshot", "bounded", "indexed"]
