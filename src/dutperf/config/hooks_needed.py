"""Hooks without which a procedure cannot be measured."""

from __future__ import annotations

from collections.abc import Iterator

from dutperf.config.campaign import Cell
from dutperf.config.testbed import Testbed
from dutperf.errors import InputError


def check_hooks(testbed: Testbed, cell: Cell) -> None:
    """Refuse a tear-down (RFC 9693 4.8) of a device that nobody can ask for it.

    Raises:
        InputError: says which hook is missing.
    """
    if cell.procedure != "teardown-rate" or cell.stateful is None:
        return
    if cell.stateful.expiry and testbed.hooks.table_count is None:
        raise InputError(
            f"testbed {testbed.name} has no hook table_count, which counts the "
            "connections that are left",
            "add hooks: table_count: command: [...] to the testbed",
        )
    if not cell.stateful.expiry and testbed.hooks.bulk_delete is None:
        raise InputError(
            f"testbed {testbed.name} has no hook bulk_delete, which deletes all "
            "connections at once",
            "add hooks: bulk_delete: command: [...] to the testbed, or let them "
            "expire (--expiry)",
        )


def empties_table(testbed: Testbed) -> bool:
    """Whether a hook may do so before each test (RFC 9693 4.4)."""
    return bool(testbed.hooks.bulk_delete or testbed.hooks.before_trial)


def hook_notices(testbed: Testbed, cell: Cell) -> Iterator[str]:
    """That nobody empties the table, without which no test begins (RFC 9693 4.4)."""
    if cell.stateful and not empties_table(testbed):
        yield (
            f"testbed {testbed.name} has no hook that empties the device's table "
            "before each test (bulk_delete): connections of the one before are known"
        )
