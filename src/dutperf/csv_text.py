"""Lines of CSV (RFC 4180) that a spreadsheet takes for what they are.

Text of files may begin as a formula does. A spreadsheet would calculate it, whatever
stands around it, so an apostrophe goes before it, which a spreadsheet does not show.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable
from datetime import date

from dutperf.visible import visible

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_lines(rows: Iterable[Iterable[object]]) -> str:
    """Rows of figures and texts: figures with all digits, None as nothing."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerows([_told(value) for value in row] for row in rows)
    return text.getvalue()


def _told(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list | tuple | dict):
        value = json.dumps(value, default=str)
    told = visible(str(value))
    return f"'{told}" if told.startswith(_FORMULA) else told
