"""Names that several rooms make and none reads apart."""

from __future__ import annotations


def lab_name(name: str, rules: int | None = None, label: str | None = None) -> str:
    """A lab as it is told from others of its kind: by filters and label, too.

    And by its own name, that of DEVICE@NAME.
    """
    device, _, own = name.partition("@")
    parts = (device, rules, label, own or None)
    return "-".join(str(part) for part in parts if part is not None)
