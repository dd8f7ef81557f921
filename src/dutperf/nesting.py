"""Brackets in YAML: what reads them takes a time that grows with the square of depth.

A hundred kilobytes of ``{`` keep it busy for hours, before it finds that no file of
ours is nested like this.
"""

from __future__ import annotations

import re

_BRACKET = re.compile(r"[\[\]{}]")
_DEEPEST = 200
"""Files of ours have less than ten; brackets in words and comments count, too."""


def is_nested_too_deeply(text: str) -> bool:
    """Whether more brackets are open somewhere in ``text`` than make sense."""
    depth = 0
    for found in _BRACKET.finditer(text):
        depth = depth + 1 if found[0] in "[{" else max(0, depth - 1)
        if depth > _DEEPEST:
            return True
    return False
