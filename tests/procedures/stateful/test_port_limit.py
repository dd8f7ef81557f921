"""What a host may have is found as it was set; what is no limit is not called one."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Sequence

import pytest
from gateways import SimulatedHooks, nat44
from planning import Recording, cell

from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.stateful.port_limit import (
    Share,
    judged,
    limit_of,
    measure_port_limit,
    share_of,
)
from dutperf.results import CellResult
from dutperf.simulation.fake_engine import FakeEngine, SimulatedNat

PORTS, REMOTES, HOSTS = 16, 2, 4
EACH = PORTS * REMOTES
Refuses = Callable[[int, Collection[int]], bool]


def measured(
    nat: SimulatedNat, hosts: int = HOSTS, lose: int = 0, hook: str = "bulk_delete"
) -> CellResult:
    recording = Recording(
        FakeEngine(lambda _rate, frames: frames - lose, nat=nat),
        testbed=nat44(hook),
        hooks=SimulatedHooks(nat),
    )
    asked = cell(
        nat44(hook),
        procedure="port-limit",
        stateful={"source_ports": "10000-10015"},
        traffic={"addresses": {"left": {"hosts": hosts}} if hosts > 1 else {}},
    )
    return measure_port_limit(recording.runner, asked, MaxRate(10**6, "load"))


def verdicts(result: CellResult) -> list[str | None]:
    return [told.verdict for told in result.behaviour]


def sessions_of_a_host(most: int, *, first: int = 0) -> Refuses:
    """Of the hosts from number ``first`` on."""

    def refuses(new: int, alive: Collection[int]) -> bool:
        host = new // EACH
        return host >= first and sum(c // EACH == host for c in alive) >= most

    return refuses


def ports_of_a_host(most: int) -> Refuses:
    def refuses(new: int, alive: Collection[int]) -> bool:
        own = {c % PORTS for c in alive if c // EACH == new // EACH}
        return len(own) >= most and new % PORTS not in own

    return refuses


@pytest.mark.parametrize("most", [1, 7, 15])
def test_a_limit_of_sessions_is_found_exactly(most: int) -> None:
    result = measured(SimulatedNat(refuses=sessions_of_a_host(most)))
    assert (result.median, result.bound, result.verdict) == (most, None, "pass")
    assert verdicts(result) == ["met", "met", None]
    assert f"{most} of {EACH}, each of 4 hosts" in result.behaviour[1].found


@pytest.mark.parametrize("most", [1, 7, 15])
def test_a_limit_of_ports_is_found_exactly(most: int) -> None:
    result = measured(SimulatedNat(refuses=ports_of_a_host(most)))
    assert (result.median, result.bound) == (most, None)
    assert verdicts(result) == ["met", "cannot tell", None]
    assert f"has {2 * most} sessions from {most} ports" in result.behaviour[2].found


def test_what_hosts_may_still_have_of_a_run_before_counts_against_their_limit() -> None:
    """Of 7 each, 3 are of an earlier run that no hook deletes."""
    nat = SimulatedNat(refuses=sessions_of_a_host(7 - 3))
    result = measured(nat, hook="table_count")
    assert (result.median, result.bound) == (4, "lower")
    assert verdicts(result)[0] == "met"


def test_more_sessions_than_ports_limit_no_ports() -> None:
    result = measured(SimulatedNat(refuses=sessions_of_a_host(20)))
    assert (result.median, result.bound) == (PORTS, "lower")
    assert verdicts(result) == ["cannot tell", "met", None]


def test_without_a_limit_there_is_a_lower_bound() -> None:
    result = measured(SimulatedNat())
    assert (result.median, result.bound, result.bound_cause) == (PORTS, "lower", "set")
    assert verdicts(result) == ["cannot tell", "cannot tell", None]
    assert "let it have more" in result.behaviour[0].found


def test_a_full_table_is_no_limit_of_a_host() -> None:
    result = measured(SimulatedNat(table_size=EACH + 9))
    assert (result.median, result.bound) == (PORTS, "lower")
    assert verdicts(result) == ["cannot tell", "cannot tell", None]
    assert "10.0.0.2 32 (all), 10.0.0.3 9 (sessions)" in result.behaviour[2].found


def test_the_table_may_be_full_behind_hosts_that_had_their_limit() -> None:
    nat = SimulatedNat(table_size=25, refuses=sessions_of_a_host(10))
    result = measured(nat)
    assert (result.median, result.bound) == (10, None)
    assert "each of the first 2 of 4 hosts" in result.behaviour[0].found
    assert verdicts(result) == ["met", "cannot tell", None]


def test_one_host_that_may_have_more_is_caught() -> None:
    """A gateway that lies of one host in four."""
    result = measured(SimulatedNat(refuses=sessions_of_a_host(10, first=1)))
    assert result.bound == "lower"
    assert verdicts(result)[0] == "cannot tell"
    assert "10.0.0.2 32 (all), 10.0.0.3 10 (sessions)" in result.behaviour[0].found


def test_what_one_host_alone_gets_may_be_the_table() -> None:
    result = measured(SimulatedNat(refuses=sessions_of_a_host(10)), hosts=1)
    assert (result.median, result.bound) == (10, "lower")
    assert verdicts(result) == ["cannot tell", "cannot tell", None]


def test_old_sessions_that_are_dropped_for_new_ones_belong_to_anybody() -> None:
    """The last host has all that the table holds: no limit, and no port of others."""
    result = measured(SimulatedNat(table_size=EACH, eviction="oldest"))
    assert verdicts(result)[0] == "cannot tell"
    assert result.bound == "lower"


def test_connections_that_are_all_forgotten_are_no_limit() -> None:
    result = measured(SimulatedNat(timeout_ns=1_000_000))
    assert (result.median, result.verdict) == (None, "invalid")
    (reason,) = result.reasons
    assert reason.message == "no connection works"


def test_a_device_that_forwards_nothing_has_no_limit() -> None:
    result = measured(SimulatedNat(refuses=lambda *_: True))
    assert (result.median, result.verdict) == (None, "invalid")


def slow_share(works: Sequence[bool]) -> tuple[str, int, int]:
    """The obvious way, connection by connection."""
    towards = [works[k * PORTS : (k + 1) * PORTS] for k in range(REMOTES)]
    sessions = sum(works)
    ports = sum(any(each[p] for each in towards) for p in range(PORTS))
    first_ones = [True] * sessions + [False] * (EACH - sessions)
    of_each = sum(towards[0])
    if sessions == EACH:
        shape = "all"
    elif sessions == 0:
        shape = "none"
    elif all(e == [True] * of_each + [False] * (PORTS - of_each) for e in towards):
        shape = "ports"
    elif list(works) == first_ones:
        shape = "unclear" if sessions % PORTS == 0 else "sessions"
    elif list(works) == first_ones[::-1]:
        shape = "oldest"
    else:
        shape = "unclear"
    return shape, sessions, ports


def ranges_of(works: Sequence[bool]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for number, one in enumerate(works):
        if not one and found and sum(found[-1]) == number:
            found[-1] = (found[-1][0], found[-1][1] + 1)
        elif not one:
            found.append((number, 1))
    return found


def some_works(draw: random.Random) -> list[bool]:
    cut, kind = draw.randrange(EACH + 1), draw.randrange(4)
    works = [k < cut for k in range(EACH)]
    if kind == 1:
        works = works[::-1]
    if kind == 2:
        works = [k % PORTS < cut % (PORTS + 1) for k in range(EACH)]
    if kind == 3:
        for k in draw.sample(range(EACH), draw.randrange(4)):
            works[k] = not works[k]
    return works


def test_shares_are_those_of_the_obvious_way() -> None:
    draw = random.Random(4)  # noqa: S311 - drawn again alike
    seen = set()
    for _ in range(2000):
        works = some_works(draw)
        share = share_of("10.0.0.2", ranges_of(works), PORTS, REMOTES)
        assert share[1:] == slow_share(works), works
        seen.add(share.shape)
    assert seen == {"all", "none", "ports", "sessions", "oldest", "unclear"}


@pytest.mark.parametrize("lost", [[(3, 1)], [(12, 4)], [(10, 22), (3, 1)][::-1]])
def test_a_loss_here_and_there_is_no_limit(lost: list[tuple[int, int]]) -> None:
    shares = [share_of(f"10.0.0.{k}", lost, PORTS, REMOTES) for k in (2, 3)]
    assert limit_of(shares, PORTS) is None
    assert judged(shares, PORTS, REMOTES)[0].verdict == "cannot tell"


def test_a_stray_loss_of_one_host_leaves_its_limit_open() -> None:
    """One connection of the second host is missing just below the limit."""
    shares = [
        Share("10.0.0.2", "sessions", 10, 10),
        Share("10.0.0.3", "sessions", 9, 9),
    ]
    assert limit_of(shares, PORTS) is None


def test_remote_ports_that_let_nothing_through_are_no_limit() -> None:
    """All to the first port, none to the second: a filter, as likely as a limit."""
    assert share_of("10.0.0.2", [(PORTS, PORTS)], PORTS, REMOTES).shape == "unclear"
