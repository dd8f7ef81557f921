"""What is stored beside what was derived: every figure agrees, differs or has a reason.

Nothing is passed over: a figure that is not derived is counted under the sentence that
says why, and one that has no such sentence is a figure that differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]

DIGITS = 1e-12
"""Both implementations round a fraction at another place: in the last digits."""

_JUDGEMENTS = {
    "verdict",
    "bound",
    "bound_cause",
    "absent",
    "ending",
    "held",
    "policy",
    "oldest",
    "lower_bounds",
}
"""Words that are results; all others are explanations."""
_WORDS = {
    "id",
    "place",
    "series",
    "procedure",
    "verified_by",
    "quantity",
    "reasons",
    "deviations",
    "conformance",
    "cell",
    "asked",
    "words",
    "examples",
    "name",
    "meaning",
    "unit",
}
WHY_NOT: Mapping[str, str] = {
    "cell": "what was asked for: verify makes it of campaign.yaml again",
    "parameters": "settings, no results: they are compared with campaign.yaml",
    "findings": "what speaks against one figure for all repeats is told by tests of "
    "docs/repeats.md that exist once; the repeats that they are of are derived",
    "soak": "how a series drifts is told by tests of docs/soak.md that exist once; the "
    "values that they are of are derived",
    "damage": "which trials the second search for damaged frames took over from the "
    "first is not in the journal",
    "eviction": "pictures of survivors are read in one way only; the tests that they "
    "are of are compared with the journal",
    "points": "the share of 100 % that a load was asked as is a setting; the load is "
    "derived",
    "queues": "what hooks printed is no figure of the tester's",
    "derived": "the throughput that corrects a buffer time is of a cell that is not in "
    "this run",
    "media": "the medium's speed is in environment.json, which is missing or does not "
    "tell it, or no trial tells the size of frames",
    "load": "the cell whose throughput the load is of is not in this run",
    "passport": "which entry of the passport it is held to does not follow from the "
    "trials of an old file, or the passport is not in environment.json",
    "wire": "frame sizes are not in the trials of an old file",
}
"""By the first part of a figure's place in its cell."""


@dataclass
class Compared:
    """Of all figures of a run: how many agree, which differ, which have a reason."""

    agree: int = 0
    differ: list[str] = field(default_factory=list)
    underived: dict[str, int] = field(default_factory=dict)
    by_cell: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Cell -> figures that agree, and that differ."""

    @property
    def derived(self) -> int:
        """How many were derived again."""
        return self.agree + len(self.differ)


def compare_cell(stored: Json, derived: Json, found: Compared) -> None:
    """Add the figures of one cell to ``found``."""
    before = found.agree, len(found.differ)
    for key, value in stored.items():
        if key not in _WORDS:
            place = f"{stored['id']}: {key}"
            _compare(value, derived.get(key, _UNKNOWN), place, key, found)
    now = found.agree, len(found.differ)
    found.by_cell[stored["id"]] = (now[0] - before[0], now[1] - before[1])


def compare_scalability(
    stored: list[Json], derived: list[Json], found: Compared
) -> None:
    """Add the rows of the overload scalability (RFC 8219 10.2) to ``found``."""
    _compare(stored, derived, "scalability", "load", found)


def compare_sweep(stored: Json, derived: Json, found: Compared) -> None:
    """Add what is derived of a sweep to ``found``."""
    known = {key: stored[key] for key in derived}
    keys = ("number", "value")
    known["points"] = [{key: p[key] for key in keys} for p in stored["points"]]
    _compare(known, derived, f"sweep {stored['series']}", "sweep", found)


class _Unknown:
    """Not derived."""


_UNKNOWN = _Unknown()


def _compare(stored: Any, derived: Any, place: str, top: str, found: Compared) -> None:  # noqa: ANN401 - JSON
    if isinstance(derived, _Unknown):
        _underived(stored, place, top, found)
    elif isinstance(stored, dict) and isinstance(derived, dict):
        for key, value in stored.items():
            if key not in _WORDS:
                below = derived.get(key, _UNKNOWN)
                _compare(value, below, f"{place}.{key}", top, found)
    elif isinstance(stored, list) and isinstance(derived, list):
        if len(stored) != len(derived):
            told = f"{len(stored)} stored, {len(derived)} derived"
            found.differ.append(f"{place}: {told}")
            return
        for number, (one, other) in enumerate(zip(stored, derived, strict=True)):
            _compare(one, other, f"{place}[{number}]", top, found)
    elif same(stored, derived):
        found.agree += 1
    else:
        found.differ.append(
            f"{place}: {_short(stored)} stored, {_short(derived)} derived"
        )


def same(stored: Any, derived: Any) -> bool:  # noqa: ANN401 - JSON
    """Whether two figures are one, but for how fractions are rounded."""
    numbers = (int, float)
    if isinstance(stored, bool) or isinstance(derived, bool):
        return stored is derived
    if not isinstance(stored, numbers) or not isinstance(derived, numbers):
        return bool(stored == derived)
    if stored == derived:
        return True
    return abs(stored - derived) <= DIGITS * max(abs(stored), abs(derived))


def _underived(stored: Any, place: str, top: str, found: Compared) -> None:  # noqa: ANN401 - JSON
    for path, _ in _figures(stored, place):
        why = WHY_NOT.get(top)
        if why is None:
            found.differ.append(f"{path}: stored, but nothing in the journal has it")
        else:
            found.underived[why] = found.underived.get(why, 0) + 1


def _figures(stored: Any, place: str) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON
    """Numbers and judgements, and where they are; null is one, too."""
    if isinstance(stored, dict):
        for key, value in stored.items():
            if key not in _WORDS:
                yield from _figures(value, f"{place}.{key}")
    elif isinstance(stored, list):
        for number, value in enumerate(stored):
            yield from _figures(value, f"{place}[{number}]")
    elif not isinstance(stored, str) or place.rpartition(".")[2] in _JUDGEMENTS:
        yield place, stored


def _short(value: Any) -> str:  # noqa: ANN401 - JSON
    text = repr(value) if not isinstance(value, dict | list) else type(value).__name__
    return text if len(text) <= 60 else f"{text[:57]}..."
