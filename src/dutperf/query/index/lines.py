"""What is told to a reading process, and what it answers: lines of JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict

from dutperf.query.index.places import Found
from dutperf.query.index.reading import Batch, Outcome


def as_line(value: Batch | Sequence[Outcome]) -> str:
    """Either of them."""
    told = asdict(value) if isinstance(value, Batch) else [*map(asdict, value)]
    return json.dumps(told) + "\n"


def batch_of(line: str) -> Batch:
    """What is to be read."""
    told = json.loads(line)
    return Batch(tuple(Found(**found) for found in told["runs"]), told["into"])


def outcomes_of(line: str) -> list[Outcome]:
    """What became of it."""
    return [Outcome(**told) for told in json.loads(line)]
