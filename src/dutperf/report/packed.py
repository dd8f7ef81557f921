"""What a page carries for its script, compressed: plotly.js, and the figures.

A browser unpacks it by itself (``DecompressionStream``). Base64 has no character that
could end the element it stands in.
"""

from __future__ import annotations

import base64
import gzip
from functools import cache
from importlib.resources import files

from markupsafe import Markup


def packed(text: str) -> Markup:
    """``text`` as gzip in base64; the same text always gives the same."""
    data = gzip.compress(text.encode("utf-8"), compresslevel=6, mtime=0)
    return Markup(base64.b64encode(data).decode("ascii"))  # noqa: S704 - base64


@cache
def plotly_script() -> str:
    """plotly.js itself: a page must work without a network, for years (ADR 20)."""
    file = files("dutperf.report") / "vendor" / "plotly-basic.min.js"
    return file.read_text("utf-8")


@cache
def packed_plotly() -> Markup:
    """The same, packed once for all pages of a process."""
    return packed(plotly_script())
