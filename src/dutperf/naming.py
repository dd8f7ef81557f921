"""Names that several rooms make and none reads apart."""

from __future__ import annotations


def lab_name(name: str, rules: int | None = None, label: str | None = None) -> str:
    """A lab as it is told from others of its kind: by filters and label, too."""
    return "-".join(str(part) for part in (name, rules, label) if part is not None)
