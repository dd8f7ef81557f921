"""dutperf: a network benchmarking tester for routers, translators and NAT gateways.

For programs: ``dutperf.Tester`` and what it gives; typed in ``dutperf.api``.
"""

from __future__ import annotations

__version__ = "1.0.0"


def __getattr__(name: str) -> object:
    """A name of ``dutperf.api``, which is loaded for who asks for it."""
    if name.startswith("_") or not name[0].isupper():
        raise AttributeError(f"module 'dutperf' has no attribute {name!r}")
    import importlib  # noqa: PLC0415 - most programs need none of it

    found: object = getattr(importlib.import_module("dutperf.api"), name)
    return found
