"""What simulated NATs do is told for what it is, and what shows it is named."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import Literal

import pytest
from gateways import SimulatedHooks, nat44
from planning import Recording, cell

from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.stateful.nat_behaviour import (
    End,
    LetIn,
    Mapped,
    judged,
    measure_nat_behaviour,
)
from dutperf.protocol.stream_parts import LearnedTuple
from dutperf.results import CellResult
from dutperf.simulation.fake_engine import FakeEngine, SimulatedNat, perfect

Elsewhere = Literal["port", "address"]
Seen = Callable[[LearnedTuple, int], LearnedTuple]


def measured(
    seen: Seen, lets_in: Collection[Elsewhere] = (), **keys: object
) -> CellResult:
    nat = SimulatedNat(seen=seen, lets_in=lets_in)
    recording = Recording(
        FakeEngine(perfect(), nat=nat),
        testbed=nat44("bulk_delete"),
        hooks=SimulatedHooks(nat),
    )
    ports = {"source_ports": "10000-10015"}
    asked = cell(procedure="nat-behaviour", **{"stateful": ports, **keys})
    return measure_nat_behaviour(recording.runner, asked, MaxRate(10**6, "load"))


def verdicts(result: CellResult) -> dict[str, str]:
    assert result.verdict == "pass"
    return {b.section: b.verdict or b.found for b in result.behaviour}


def public(address: int, port: int, ends: LearnedTuple) -> LearnedTuple:
    return (f"198.19.0.{address}", port, *ends[2:])


def host_of(ends: LearnedTuple) -> int:
    return int(ends[0].rpartition(".")[2])


def good(ends: LearnedTuple, _mapping: int) -> LearnedTuple:
    """A block of 128 ports for each host, at one of two addresses."""
    host = host_of(ends)
    block = 1024 + 128 * (host // 2)
    return public(1 + host % 2, block + ends[1] - 10_000, ends)


def test_what_rfc_4787_asks_for_is_met() -> None:
    result = measured(good, ["port", "address"])
    found = verdicts(result)
    assert {k: v for k, v in found.items() if k.startswith("REQ")} == dict.fromkeys(
        ["REQ-1", "REQ-2", "REQ-3", "REQ-3 a", "REQ-4", "REQ-8", "REQ-11"], "met"
    )
    assert result.median == 100
    assert "16 wide at the most; every 128 ports one begins" in found["2"]
    assert "the next host has the next address" in found["2"]


def in_blocks(of: Callable[[int], int], per_address: int) -> Seen:
    """Host n has block number ``of(n)``, ``per_address`` of them at an address."""

    def seen(ends: LearnedTuple, _mapping: int) -> LearnedTuple:
        block = of(host_of(ends))
        port = 2048 + 64 * (block % per_address) + ends[1] - 10_000
        return public(1 + block // per_address, port, ends)

    return seen


@pytest.mark.parametrize(
    ("of", "told"),
    [
        (lambda n: n, "the next host has the next block (RFC 7422 2)"),
        (
            lambda n: {5: 6, 6: 5}.get(n, n),
            "the next host has the next block, but for 2 hosts, one of them 10.0.0.",
        ),
        (lambda n: n * 7 % 17, "no formula gives a host's block"),
    ],
)
def test_the_formula_of_a_deterministic_nat_is_recovered(
    of: Callable[[int], int], told: str
) -> None:
    hosts = {"addresses": {"left": {"hosts": 16}}}
    result = measured(in_blocks(of, 100), ["port", "address"], traffic=hosts)
    assert told in verdicts(result)["2"]


def test_the_formula_goes_on_at_the_next_address() -> None:
    hosts = {"addresses": {"left": {"hosts": 16}}}
    seen = in_blocks(lambda n: n - 2, 4)
    result = measured(seen, ["port", "address"], traffic=hosts)
    assert "the next host has the next block (RFC 7422 2)" in verdicts(result)["2"]


def depending(on: Callable[[LearnedTuple], object]) -> Seen:
    """Another port for each ``on``, of the right parity; never twice."""
    ports: dict[object, int] = {}

    def seen(ends: LearnedTuple, _mapping: int) -> LearnedTuple:
        number = ports.setdefault((ends[:2], on(ends)), len(ports))
        return public(1, 1024 + 2 * number + ends[1] % 2, ends)

    return seen


@pytest.mark.parametrize(
    ("on", "kind"),
    [
        (lambda ends: ends[2], "address-dependent for 64 of 64 inside ends"),
        (lambda ends: ends[2:], "address and port-dependent for 64 of 64"),
    ],
)
def test_a_mapping_that_depends_on_the_remote_end_is_shown(
    on: Callable[[LearnedTuple], object], kind: str
) -> None:
    (told,) = (b for b in measured(depending(on)).behaviour if b.section == "REQ-1")
    assert told.verdict == "not met"
    assert told.found.startswith(kind)
    assert "10.0.0.2:10000 is 198.19.0.1:1024 towards 198.19.0.2:80" in told.found


def lying(section: str) -> Seen:
    """As good as ``good``, but for one connection of 512."""

    def seen(ends: LearnedTuple, mapping: int) -> LearnedTuple:
        told = good(ends, mapping)
        if (host_of(ends), ends[1]) != (3, 10_013):
            return told
        if section in ("REQ-1", "REQ-2"):
            one = ends[2:] == ("198.19.0.3", 83)
            return (
                public(3 if section == "REQ-2" else 2, told[1] + 64, ends)
                if (one)
                else told
            )
        return public(
            2, {"REQ-3": told[1] + 1, "REQ-3 a": 1023}.get(section, 2000), ends
        )

    return seen


@pytest.mark.parametrize("section", ["REQ-1", "REQ-2", "REQ-3", "REQ-3 a", "REQ-4"])
def test_one_lie_among_all_is_caught(section: str) -> None:
    result = measured(lying(section), ["port"])
    told = next(b for b in result.behaviour if b.section == section)
    assert told.verdict == "not met"
    assert "10.0.0.3" in told.found
    assert result.median is not None
    assert result.median < 100


@pytest.mark.parametrize(
    ("lets_in", "verdict", "kind"),
    [
        ((), "not met", "address and port-dependent"),
        (("port",), "met", "address-dependent"),
        (("port", "address"), "met", "endpoint-independent"),
    ],
)
def test_who_is_let_in_is_told(
    lets_in: Collection[Elsewhere], verdict: str, kind: str
) -> None:
    told = next(b for b in measured(good, lets_in).behaviour if b.section == "REQ-8")
    assert (told.verdict, told.found.partition(";")[0]) == (verdict, kind)


@pytest.mark.parametrize("lost", [1, 255])
def test_what_is_lost_on_the_way_is_no_filtering(lost: int) -> None:
    mapped = [
        Mapped(End("10.0.0.2", 9), End("198.19.0.1", 9), End(f"198.19.0.{n}", 80))
        for n in (2, 3)
    ]
    told = judged(mapped, LetIn(256, 256 - lost), LetIn(256, 0))
    found = {b.section: b.verdict for b in told}
    assert (found["REQ-8"], found["REQ-11"]) == ("cannot tell", "cannot tell")


def test_a_nat_that_draws_ports_keeps_nothing_and_mixes_hosts() -> None:
    draw = random.Random(7)  # noqa: S311 - simulated, not a secret
    ports: dict[object, int] = {}

    def seen(ends: LearnedTuple, _mapping: int) -> LearnedTuple:
        return public(1, ports.setdefault(ends[:2], draw.randrange(1024, 65_536)), ends)

    found = verdicts(measured(seen))
    assert found["REQ-4"] == "not met"
    assert "mix" in found["2"]
    assert found["4.2.1"].startswith(("0 of", "1 of"))


def test_one_remote_address_does_not_prove_independence() -> None:
    hosts = {"left": {"hosts": 4}}
    found = verdicts(measured(good, ["port"], traffic={"addresses": hosts}))
    assert (found["REQ-1"], found["REQ-8"]) == ("cannot tell", "met")


def test_few_ports_may_keep_their_parity_by_chance() -> None:
    few = {"source_ports": "10000-10002"}
    found = verdicts(measured(good, stateful=few, traffic={"ttl": 9}))
    assert found["REQ-4"] == "cannot tell"


def test_connections_that_are_not_open_say_nothing() -> None:
    nat = SimulatedNat(table_size=100)
    recording = Recording(
        FakeEngine(perfect(), nat=nat),
        testbed=nat44("bulk_delete"),
        hooks=SimulatedHooks(nat),
    )
    asked = cell(procedure="nat-behaviour")
    result = measure_nat_behaviour(recording.runner, asked, MaxRate(10**6, "load"))
    assert (result.verdict, result.median, result.behaviour) == ("invalid", None, [])
    assert "not all connections opened" in result.reasons[0].message
