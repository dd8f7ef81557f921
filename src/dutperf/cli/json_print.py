"""What ``--json`` prints: one object, which tells the version of its format.

What each object holds, and what changed with a version, stands in docs/json.md.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from dutperf.cli.failures import PatientConsole
from dutperf.visible import visible_json


def print_versioned(version: int, data: Mapping[str, object]) -> None:
    """Print ``data`` as version ``version`` of its format, on standard output.

    The version rises with every change that a reader of an older one would misread;
    a key that is added is none.
    """
    text = json.dumps({"schema_version": version, **data}, indent=2, default=str)
    print_json(PatientConsole(), text)


def print_json(console: PatientConsole, text: str) -> None:
    """Print ``text``, which is JSON and stays it."""
    console.out(visible_json(text), highlight=False)
