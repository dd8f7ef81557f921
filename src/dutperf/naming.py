"""Names that several rooms make and none reads apart."""

from __future__ import annotations


def lab_name(name: str, rules: int | None) -> str:
    """A lab as it is told from others of its kind: by how many filters it has, too."""
    return name if rules is None else f"{name}-{rules}"
