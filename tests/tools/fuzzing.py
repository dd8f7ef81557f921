"""Damaged samples for the tests that nothing but a refusal comes out of a parser.

In CI the same few each time; with DUTPERF_FUZZ_EXAMPLES=N so many, others each time:
see docs/hostile-input.md.
"""

from __future__ import annotations

import copy
import json
import os
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

_EXAMPLES = int(os.environ.get("DUTPERF_FUZZ_EXAMPLES", "0"))

seeded = settings(
    derandomize=not _EXAMPLES,
    deadline=None,
    database=None,
    max_examples=_EXAMPLES or 150,
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)

DEEP = "[" * 100_000
_NUMBERS = ["1e999", "-1e999", "NaN", "-Infinity", "9" * 5000, "1e-999", "-0", "2e308"]
_NUMBERS += [
    str(sign * 2**bits) for bits in (31, 32, 53, 63, 64, 128) for sign in (1, -1)
]
_PIECES = [
    *_NUMBERS,
    *[
        "{",
        "}",
        "[",
        "]",
        '"',
        ":",
        ",",
        "\\u0000",
        "\\ud800",
        "null",
        "true",
        "{}",
        "[]",
    ],
    *[
        "\x00",
        "\ufeff",
        "\r\n",
        "\n",
        "\n\n",
        "\u2028",
        "\x1b[2J",
        '"a":1,"a":2,',
        DEEP,
    ],
]
_INVALID = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\x80"]

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**31, 2**53 + 1, 2**63, 2**64, 10**400, -1, 0, 10**4000])
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["throughput", "0" * 5000, "\x00", "\x1b[2J", "2026-13-99T99:99"]
    ),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner)
    ),
    max_leaves=8,
)


@st.composite
def damaged_bytes(draw: st.DrawFn, samples: Sequence[bytes]) -> bytes:
    """A sample of which up to four places are cut out, doubled or written over."""
    content = draw(st.sampled_from(samples))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        gone = draw(st.integers(0, 40))
        new = draw(
            st.sampled_from(_PIECES).map(str.encode)
            | st.sampled_from(_INVALID)
            | st.binary(max_size=6)
            | st.just(content[at : at + 200])
        )
        content = content[:at] + new + content[at + gone :]
    return content


@st.composite
def damaged_data(draw: st.DrawFn, samples: Sequence[Any]) -> Any:  # noqa: ANN401 - JSON
    """A sample of which up to three values are others, missing, or one too many."""
    data = copy.deepcopy(draw(st.sampled_from(samples)))
    for _ in range(draw(st.integers(1, 3))):
        node = data
        while isinstance(node, dict | list) and node:
            keys = sorted(node) if isinstance(node, dict) else range(len(node))
            key = draw(st.sampled_from(keys))
            inner = node[key]
            if isinstance(inner, dict | list) and inner and draw(st.integers(0, 5)):
                node = inner
                continue
            _damage(draw, node, key)
            break
    return data


def _damage(draw: st.DrawFn, node: Any, key: Any) -> None:  # noqa: ANN401 - JSON
    """One value of ``node``."""
    how = draw(st.sampled_from(["replace", "replace", "replace", "remove", "add"]))
    if how == "remove":
        del node[key]
    elif how == "add" and isinstance(node, dict):
        node[draw(st.text(max_size=5))] = draw(VALUES)
    elif how == "add":
        node.append(draw(VALUES | st.just(node[key])))
    else:
        node[key] = draw(VALUES)


def as_bytes(data: Any) -> bytes:  # noqa: ANN401 - JSON
    """``data`` as a file holds it; what is no JSON number stands there, too."""
    return json.dumps(data).encode()
