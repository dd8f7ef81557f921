"""``python -m dutperf.reference [DIR]``: write schemas, tables and commands."""

from __future__ import annotations

import sys
from pathlib import Path

from dutperf.reference.files import DEFAULT_DIRECTORY, write_reference

if __name__ == "__main__":
    write_reference(Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT_DIRECTORY)
