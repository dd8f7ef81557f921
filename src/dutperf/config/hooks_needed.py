"""Hooks without which a procedure cannot be measured."""

from __future__ import annotations

from collections.abc import Iterator

from dutperf.config.cell import Cell
from dutperf.config.specs import OutageSpec, TableCapacitySpec, TeardownRateSpec
from dutperf.config.testbed import Testbed
from dutperf.errors import InputError


def check_hooks(testbed: Testbed, cell: Cell) -> None:
    """Refuse a tear-down (RFC 9693 4.8) of a device that nobody can ask for it.

    Raises:
        InputError: says which hook is missing.
    """
    if not isinstance(cell.spec, TeardownRateSpec) or cell.stateful is None:
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
    """Who acts where no hook does; an outage, and the table of RFC 9693 4.4."""
    if isinstance(cell.spec, OutageSpec) and not testbed.hooks.during_trial:
        yield (
            f"testbed {testbed.name} has no hook during_trial: "
            f"{cell.spec.trigger_after_s:g} s after a trial of outage has begun you "
            "are asked to interrupt the device"
        )
    stateful = cell.stateful
    if stateful is None or empties_table(testbed):
        return
    none = (
        f"testbed {testbed.name} has no hook that empties the device's table before "
        "each test (bulk_delete): "
    )
    size, timeout_s = stateful.table_size, stateful.dut_timeout_s
    waits = size is None or isinstance(cell.spec, TableCapacitySpec)
    if waits and timeout_s is None:
        yield (
            f"{none}only one test can be made; give the device's --dut-timeout, which "
            "is waited for, or, but for table-capacity, its --table-size: then each "
            "test opens other connections"
        )
    elif waits:
        yield f"{none}the run waits before each, {stateful.forgotten_after_s:g} s"
    else:
        then = "" if timeout_s is None else ", then the run waits for its timeout"
        yield f"{none}each opens others, as long as {size:,} have room{then}"
