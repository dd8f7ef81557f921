"""Made-up results of a stateful gateway, for tests of the report."""

from __future__ import annotations

from report_sample import all_sizes, throughput_cell, trial
from told_cells import retyped

from dutperf.catalogue import ProcedureName
from dutperf.results import CellResult, ResultsFile
from dutperf.results.details import (
    Behaviour,
    Capacity,
    CapacityStep,
    CountAt,
    Eviction,
    Expiry,
    LogAudit,
    Picture,
    TableLimits,
    TeardownRate,
)

WORDS = "3,000 are held at 9,000/s, 3,001 are not (error 1)"
POLICY = "the first ones; the device refuses new ones when its table is full"


def cell(procedure: ProcedureName, value: float, **more: object) -> CellResult:
    found = throughput_cell(f"{procedure}-ip4-64-forward", 4, 64, [value])
    told = {
        "connections": 8000,
        "source_ports": "10000-17999",
        "destination_ports": "80-80",
        "initiator": "left",
        "order": "random",
        "alpha": 0.8,
        "direction": "forward",
        "resolution": "5%",
        "error": 1,
    }
    update = {"procedure": procedure, "parameters": found.parameters | told, **more}
    return retyped(found.model_copy(update=update))


def step(phase: str, connections: int, rate: int | None) -> CapacityStep:
    held = "held" if rate else "too_slow"
    return CapacityStep.model_validate(
        {
            "phase": phase,
            "connections": connections,
            "rate_per_s": rate,
            "least_per_s": 900,
            "held": held,
            "tests": 2,
        }
    )


def picture() -> Picture:
    return Picture(
        connections=5999,
        opened=3000,
        survived=3000,
        rate_per_s=4500,
        policy="keeps_first",
        border=3000,
        strays=0,
        block_connections=1000,
        blocks=[1000, 1000, 1000, 0, 0, 0],
        lost_ranges=[(3000, 2999)],
        more_ranges=0,
    )


def cells() -> list[CellResult]:
    steps = [step("first", 1000, 9000), step("doubling", 4000, None)]
    capacity = Capacity(
        connections=3000,
        beyond=3001,
        rate_per_s=9000,
        error=1,
        ending="found",
        words=WORDS,
        steps=steps,
    )
    eviction = Eviction(
        policy="keeps_first", oldest=None, words=POLICY, pictures=[picture()]
    )
    deleted = TeardownRate(
        connections=8000,
        counted_before=8000,
        counted_after=0,
        delete_s=0.42,
        empty_s=[0.02, 0.02, 0.02],
        command_s=0.02,
        rate_per_s=20_000,
    )
    expiry = Expiry(
        connections=8000,
        counts=[
            CountAt(after_s=1, connections=8000),
            CountAt(after_s=2, connections=0),
        ],
        begins_s=1,
        ends_s=2,
        rate_per_s=8000,
    )
    behaviour = [
        Behaviour(
            rfc="RFC 4787",
            section="REQ-1",
            level="MUST",
            asks="endpoint-independent mapping",
            verdict="not met",
            found="address-dependent for 1 of 256 inside ends: 10.0.0.2:10000 is "
            "198.19.0.1:1024 towards 198.19.0.2:80 and 198.19.0.1:1025 towards "
            "198.19.0.3:80",
        ),
        Behaviour(
            rfc="RFC 4787",
            section="4.2.1",
            level=None,
            asks="port preservation",
            verdict=None,
            found="64 of 256 public ends have the inside end's port",
        ),
    ]
    log = LogAudit(
        tests=2,
        opened=2000,
        learned=2000,
        verdicts={"named": 1998, "missing": 1, "wrong": 1},
        examples=[
            "missing: 10.0.0.2:10007 is 198.19.0.1:1031 towards 198.19.0.2:80: none"
        ],
        entries=1999,
        other=1,
        unread=2,
        clock_ns=-7_200_000_000_000,
        clock_low_ns=-7_200_000_100_000,
        clock_high_ns=-7_199_999_000_000,
    )
    limits = TableLimits(table_size=10_000, hash_size=4000)
    return [
        cell("connection-rate", 9000, unit="connections/s", limits=limits),
        cell(
            "table-capacity",
            3000,
            unit="connections",
            capacity=[capacity],
            eviction=eviction,
        ),
        cell(
            "teardown-rate",
            20_000,
            unit="connections/s",
            teardown=[deleted],
            expiry=[expiry],
        ),
        cell("tcp-capacity", 3000, unit="connections", capacity=[capacity]),
        cell("tcp-half-open", 3000, unit="connections", capacity=[capacity]),
        cell("tcp-request-rate", 9000, unit="connections/s"),
        cell("tcp-teardown-rate", 9000, unit="connections/s"),
        cell("idle-timeout", 120e9, unit="ns"),
        cell("nat-behaviour", 50, unit="percent", behaviour=behaviour),
        cell("port-limit", 7, unit="ports", behaviour=behaviour),
        cell("nat-log", 99.9, unit="percent", log=log),
    ]


RATES_PER_S = (50_000, 25_000, 12_500, 18_750, 19_960, 20_040)


def rate_results() -> ResultsFile:
    """The search of a connection rate: each test as long as its rate makes it."""
    found = cells()[0]
    trials = []
    for number, rate_per_s in enumerate(RATES_PER_S, 1):
        passes = rate_per_s < 20_000
        made = trial(number, found.id, rate_per_s, "pass" if passes else "fail", lost=9)
        took = {"duration_ns": 8000 * 10**9 // rate_per_s}
        trials.append(
            made.model_copy(update={"request": made.request.model_copy(update=took)})
        )
    cell = found.model_copy(update={"median": 19_960.0})
    return all_sizes().model_copy(update={"cells": [cell], "trials": trials})


def stateful_results() -> ResultsFile:
    """A run of them, without its trials."""
    return all_sizes().model_copy(update={"cells": cells(), "trials": []})
