"""All figures of a stored run, each beside what the oracle derives of its journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from oracle.beside import Source
from oracle.cells import derived_cell
from oracle.comparison import (
    Compared,
    compare_cell,
    compare_scalability,
    compare_sweep,
)
from oracle.records import by_cell
from oracle.scalability import derived_scalability, derived_sweep

Json = dict[str, Any]
_REMAIN = "connections_remain"
"""Such a cell has no figures, as the device may have known its connections."""


def compared_run(directory: Path) -> Compared:
    """What agrees and what differs, of all cells and of their overload scalability."""
    results = _json(directory / "results.json")
    lines = (directory / "journal.jsonl").read_bytes().split(b"\n")[1:-1]
    of_cell = by_cell([json.loads(line) for line in lines])
    files = [_json(file) for file in directory.glob("environment*.json")]
    recorded = {told.get("place"): told for told in files}
    found, done = Compared(), dict[str, Json]()
    for cell in results["cells"]:
        if any(reason["code"] == _REMAIN for reason in cell.get("reasons", [])):
            continue
        place = recorded.get(cell.get("place")) or recorded.get(None) or {}
        source = Source(
            cell,
            of_cell.get(cell["id"], []),
            place.get("ports", []),
            done,
            place.get("passport"),
        )
        done[cell["id"]] = derived_cell(source)
        compare_cell(cell, done[cell["id"]], found)
    if "scalability" in results:
        rows = derived_scalability(results["cells"], done, of_cell)
        compare_scalability(results["scalability"], rows, found)
    for sweep in results.get("sweeps", []):
        compare_sweep(sweep, derived_sweep(sweep, done), found)
    return found


def _json(path: Path) -> Json:
    told: Json = json.loads(path.read_bytes())
    return told
