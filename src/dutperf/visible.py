r"""Text from elsewhere, made safe to be shown.

What hooks and devices print, what files and interfaces are called and what stored files
hold may carry characters that a terminal obeys (ESC) or that turn the order of what a
reader sees (U+202E). They are shown as what they are: ``\x1b``, ``\u202e``. All that
dutperf shows goes through here: the console, the report, JSON, histogram logs.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping
from datetime import date

_OBEYED = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters of C0 and C1
    "\xad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"  # format characters
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e00ff]"
    "|\r(?!\n)"
)
"""All but line feed, tabulator, and a carriage return before a line feed."""
_BYTE, _PLANE = 0x100, 0x10000


def visible(text: str) -> str:
    """``text`` with each control and format character as an escape of Python."""
    return _OBEYED.sub(lambda found: _escape(ord(found[0])), text)


def visible_json(text: str) -> str:
    """The same of a JSON text, whose values stay what they are."""
    return _OBEYED.sub(lambda found: _json_escape(found[0]), text)


def versioned_json(version: int, data: Mapping[str, object]) -> str:
    """``data`` as version ``version`` of its format, visible."""
    text = json.dumps({"schema_version": version, **data}, indent=2, default=str)
    return visible_json(text)


def _escape(code: int) -> str:
    if code < _BYTE:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _PLANE else f"\\U{code:08x}"


def _json_escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")
    pairs = (units[at : at + 2].hex() for at in range(0, len(units), 2))
    return "".join(f"\\u{unit}" for unit in pairs)


# Names that several rooms make and none reads apart.


_CORES = re.compile(r"-\d+cores\Z")


def lab_name(name: str, rules: int | None = None, label: str | None = None) -> str:
    """A lab as it is told from others of its kind: by filters and label, too.

    And by its own name, that of DEVICE@NAME.
    """
    device, _, own = name.partition("@")
    parts = (device, rules, label, own or None)
    return "-".join(str(part) for part in parts if part is not None)


def without_cores(name: str) -> str:
    """A testbed's name without how many of its cores are active."""
    return _CORES.sub("", name)


# Lines of CSV (RFC 4180) that a spreadsheet takes for what they are.
#
# Text of files may begin as a formula does. A spreadsheet would calculate it, whatever
# stands around it, so an apostrophe goes before it, which a spreadsheet does not show.


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
