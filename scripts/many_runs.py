#!/usr/bin/env python3
"""Many runs made of one, to see how query and trend do with them (docs/query.md).

    scripts/many_runs.py RUN DIR COUNT

RUN is a stored run. DIR gets COUNT altered copies of it, which are other runs to who
reads them: at 20 testbeds, each some hours after the one before, with figures of their
own around a level that falls by 5 % half-way. Journals, campaigns and environments of
a testbed are one file with many names, so 100,000 runs of 70 kB take 7 GB.
"""

from __future__ import annotations

import json
import os
import random
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

TESTBEDS = 20
FIRST = datetime(2024, 1, 1, 2, tzinfo=UTC)
BETWEEN = timedelta(hours=4)
LOWER = 0.95
NOISE = 0.01
SHARED = ("campaign.yaml", "environment.json", "journal.jsonl")
SCALED = ("median", "value")


def scaled(part: Any, factor: float) -> Any:  # noqa: ANN401 - plain JSON
    """``part`` with its figures times ``factor``; what was asked for stays."""
    if isinstance(part, list):
        return [scaled(each, factor) for each in part]
    if not isinstance(part, dict):
        return part
    return {
        key: value * factor
        if key in SCALED and isinstance(value, float | int)
        else value
        if key == "parameters"
        else scaled(value, factor)
        for key, value in part.items()
    }


def make(run: Path, place: Path, count: int) -> None:
    """Write ``count`` runs below ``place``."""
    stored = json.loads((run / "results.json").read_text())
    trials = json.dumps(stored.pop("trials"), separators=(",", ":"))
    cells = stored.pop("cells")
    draw = random.Random(1)  # noqa: S311 - figures, no secrets
    shared = [first_of(run, place / f"bench{at:02d}") for at in range(TESTBEDS)]
    for number in range(count):
        bench, turn = shared[number % TESTBEDS], number // TESTBEDS
        begun = FIRST + turn * BETWEEN + timedelta(minutes=number % TESTBEDS)
        factor = draw.gauss(1, NOISE)
        factor *= LOWER if 2 * number > count else 1
        own = {
            **stored,
            "created_at": begun.isoformat("T", "seconds"),
            "cells": scaled(cells, factor),
        }
        path = bench.parent / f"{begun:%Y-%m}" / f"nightly-{begun:%Y%m%dT%H%M%SZ}"
        path.mkdir(parents=True)
        text = json.dumps(own, separators=(",", ":"))
        (path / "results.json").write_text(f'{text[:-1]},"trials":{trials}}}\n')
        for name in SHARED:
            os.link(bench / f"{name}.shared", path / name)


def first_of(run: Path, place: Path) -> Path:
    """The files that all runs of a testbed have in common."""
    shared = place / "shared"
    shared.mkdir(parents=True)
    for name in SHARED:
        text = (run / name).read_text()
        if name == "campaign.yaml":
            text = text.replace("name: simulated", f"name: {place.name}")
        (shared / f"{name}.shared").write_text(text)  # a run has other names
    return shared


def main() -> int:
    """Make them, or say how."""
    if len(sys.argv) != 4:
        print(__doc__, file=sys.stderr)
        return 2
    run, place, count = sys.argv[1:]
    make(Path(run), Path(place), int(count))
    return 0


if __name__ == "__main__":
    sys.exit(main())
