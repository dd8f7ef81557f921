"""What ``--json`` prints: one object, which tells the version of its format.

What each object holds, and what changed with a version, stands in docs/json.md.
"""

from __future__ import annotations

from collections.abc import Mapping

from dutperf.cli.failures import PatientConsole
from dutperf.visible import versioned_json, visible_json


def print_versioned(version: int, data: Mapping[str, object]) -> None:
    """Print ``data`` as version ``version`` of its format, on standard output.

    The version rises with every change that a reader of an older one would misread;
    a key that is added is none.
    """
    PatientConsole().out(versioned_json(version, data), highlight=False)


def print_json(console: PatientConsole, text: str) -> None:
    """Print ``text``, which is JSON and stays it."""
    console.out(visible_json(text), highlight=False)
