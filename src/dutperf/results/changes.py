"""What differs between two values of the same shape, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_ABSENT = object()


def differences(old: Any, new: Any) -> list[str]:  # noqa: ANN401 - plain data
    """One line for each value that changed: ``left.mtu: was 1500, is 9000``."""
    return list(_differences(old, new, ""))


def listed(changes: list[str], most: int = 10) -> str:
    """The first ``most`` of ``changes``, one a line."""
    more = len(changes) - most
    rest = [f"... and {more} more"] if more > 0 else []
    return "\n".join([*changes[:most], *rest])


def _differences(old: Any, new: Any, where: str) -> Iterator[str]:  # noqa: ANN401
    if isinstance(old, dict) and isinstance(new, dict):
        for key in dict.fromkeys([*old, *new]):
            inner = f"{where}.{key}" if where else str(key)
            yield from _differences(old.get(key, _ABSENT), new.get(key, _ABSENT), inner)
    elif isinstance(old, list) and isinstance(new, list) and _nested(old + new):
        for index in range(max(len(old), len(new))):
            was, now = (v[index] if index < len(v) else _ABSENT for v in (old, new))
            yield from _differences(was, now, f"{where}[{index}]")
    elif old != new:
        yield f"{where}: was {_shown(old)}, is {_shown(new)}"


def _nested(values: list[Any]) -> bool:
    """A list of numbers is told as one value."""
    return any(isinstance(value, dict | list) for value in values)


def _shown(value: Any) -> str:  # noqa: ANN401 - plain data
    if value is _ABSENT:
        return "absent"
    if isinstance(value, dict):
        named = value.get("procedure") or value.get("name")
        return f"a block of keys ({named})" if named else "a block of keys"
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
