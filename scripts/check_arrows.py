"""Checks the engine's arrows.

control -> dataplane -> {dpdk -> {interposed, kernel}, measure, timing, vary -> state}
-> net.

Also fences DPDK: its headers may be included in dpdk/, and in interposed/, which stands
in for functions that its drivers call. The Python arrows are
import-linter's (pyproject.toml).
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SOURCE = Path("engine/src")
ALLOWED: dict[str, set[str]] = {
    "net": set(),
    "timing": set(),
    "state": {"net"},
    "vary": {"net", "state"},
    "measure": {"net"},
    "kernel": set(),
    "interposed": set(),
    "dpdk": {"interposed", "kernel", "net"},
    "dataplane": {"dpdk", "measure", "state", "timing", "vary", "net"},
    "control": {
        "dataplane",
        "dpdk",
        "kernel",
        "measure",
        "state",
        "timing",
        "vary",
        "net",
    },
}
INCLUDE = re.compile(r'^#include ([<"])([^>"]+)[>"]', re.MULTILINE)


def complaints(path: Path) -> list[str]:
    """Return one line for each include of `path` that goes against an arrow."""
    layer = path.relative_to(SOURCE).parts[0]
    found = []
    for bracket, header in INCLUDE.findall(path.read_text()):
        if header.startswith("rte_") and layer not in ("dpdk", "interposed"):
            found.append(f"{path}: {header} belongs behind dpdk/")
        target = header.split("/")[0]
        own = bracket == '"' and target in ALLOWED
        if own and target != layer and target not in ALLOWED[layer]:
            found.append(f"{path}: {layer}/ must not include {target}/ ({header})")
    return found


def main() -> int:
    """Return 1 and print the complaints, if there are any."""
    files = sorted([*SOURCE.rglob("*.h"), *SOURCE.rglob("*.cc")])
    found = [line for path in files for line in complaints(path)]
    print("\n".join(found) or f"engine arrows: {len(files)} files kept")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
