"""What differs between two values of the same shape, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

_ABSENT = object()


class Change(NamedTuple):
    """What stands at ``where`` in the old value and in the new one, as text."""

    where: str
    old: str
    new: str


def changes(old: Any, new: Any) -> Iterator[Change]:  # noqa: ANN401 - plain data
    """Each value that changed."""
    yield from _changes(old, new, "")


def differences(old: Any, new: Any) -> list[str]:  # noqa: ANN401 - plain data
    """One line for each value that changed: ``left.mtu: was 1500, is 9000``."""
    return [
        f"{change.where}: was {_short(change.old)}, is {_short(change.new)}"
        for change in changes(old, new)
    ]


def listed(lines: list[str], most: int = 10) -> str:
    """The first ``most`` of ``lines``, one a line."""
    more = len(lines) - most
    rest = [f"... and {more} more"] if more > 0 else []
    return "\n".join([*lines[:most], *rest])


def _changes(old: Any, new: Any, where: str) -> Iterator[Change]:  # noqa: ANN401
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            inner = f"{where}.{key}" if where else str(key)
            yield from _changes(old.get(key, _ABSENT), new.get(key, _ABSENT), inner)
    elif isinstance(old, list) and isinstance(new, list) and _nested(old + new):
        for index in range(max(len(old), len(new))):
            was, now = (v[index] if index < len(v) else _ABSENT for v in (old, new))
            yield from _changes(was, now, f"{where}[{index}]")
    elif old != new:
        yield Change(where, _shown(old), _shown(new))


def _nested(values: list[Any]) -> bool:
    """A list of numbers is told as one value."""
    return any(isinstance(value, dict | list) for value in values)


def _shown(value: Any) -> str:  # noqa: ANN401 - plain data
    if value is _ABSENT:
        return "absent"
    if isinstance(value, dict):
        named = value.get("procedure") or value.get("name")
        return f"a block of keys ({named})" if named else "a block of keys"
    return str(value)


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}..."
