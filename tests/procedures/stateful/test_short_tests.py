"""Whether a test of connections was so short that it measured the device's queue."""

from __future__ import annotations

import random
import re

import pytest
from gateways import NAT44, ClearedEngine
from planning import Recording, cell, spoilt

from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.stateful.connection_rate import measure_connection_rate
from dutperf.procedures.stateful.establishing import Loss, queue_of, too_short
from dutperf.protocol.result_messages import ReasonCode
from dutperf.results import CellResult
from dutperf.search import Resolution
from dutperf.simulation.fake_engine import SimulatedNat, fixed

RATE, QUEUE = 20_000, 390
FINE, COARSE = Resolution.parse("1%"), Resolution.parse("50%")


def losses(connections: int, *rates: int, noise: int = 0) -> list[Loss]:
    """Of a device that opens RATE a second and lets QUEUE frames wait."""
    draw = random.Random(1)  # noqa: S311 - repeatable
    return [
        Loss(
            rate,
            connections
            - QUEUE
            - RATE * connections // rate
            + draw.randint(-noise, noise),
        )
        for rate in rates
    ]


@pytest.mark.parametrize("connections", [1000, 4000, 100_000])
@pytest.mark.parametrize("noise", [0, 5])
def test_the_losses_tell_queue_and_rate(connections: int, noise: int) -> None:
    found = queue_of(
        losses(connections, 100_000, 50_000, 40_000, noise=noise), connections
    )
    assert found is not None
    assert found.rate_per_s == pytest.approx(RATE, rel=0.03)
    assert found.frames == pytest.approx(QUEUE, rel=0.1, abs=4 * noise)


@pytest.mark.parametrize(
    "told",
    [
        [],
        [Loss(50_000, 100)],
        [Loss(50_000, 100), Loss(50_000, 120)],
        [Loss(50_000, 300), Loss(100_000, 200)],  # loses less the more is asked
        [Loss(50_000, 100), Loss(100_000, 900)],  # ... far more: no queue does that
    ],
)
def test_losses_of_no_such_device_say_nothing(told: list[Loss]) -> None:
    assert queue_of(told, 1000) is None
    assert too_short(told, 1000, 40_000, FINE) is None


def measured(
    connections: int,
    resolution: str = "1%",
    troubles: dict[int, ReasonCode] | None = None,
) -> CellResult:
    nat = SimulatedNat(connection_rate_fps=RATE, waiting=QUEUE)
    asked = cell(
        NAT44,
        procedure="connection-rate",
        resolution=resolution,
        repeats=2,
        stateful={"connections": connections},
    )
    recording = Recording(ClearedEngine(nat, troubles), testbed=NAT44)
    return measure_connection_rate(recording.runner, asked, MaxRate(100_000, "set"))


@pytest.mark.parametrize("connections", [1000, 2000, 2900])
def test_a_result_that_the_queue_raised_says_so_and_how_many_would_do(
    connections: int,
) -> None:
    result = measured(connections)
    assert result.median is not None
    assert result.median > 1.1 * RATE
    (reason,) = result.reasons
    assert (result.verdict, reason.code) == ("pass", "short_tests")
    (opens,) = re.findall(r"the true rate, about ([0-9,]+)/s", reason.message)
    assert int(opens.replace(",", "")) == pytest.approx(RATE, rel=0.01)
    enough = int(reason.hint.split()[1].replace(",", ""))
    longer = measured(enough)
    assert longer.median == pytest.approx(RATE, rel=0.021)
    assert longer.reasons == []
    assert reason.message in [deviation.actual for deviation in result.deviations]


@pytest.mark.parametrize("delay_ms", [262, 20])
def test_a_pass_proves_no_more_than_was_opened_until_the_last_frame_came(
    delay_ms: int,
) -> None:
    """4,000 connections at 28,750/s take 139 ms; the last one came 262 ms later."""
    rate = 28_750
    nat = SimulatedNat(connection_rate_fps=rate)
    engine = ClearedEngine(nat, delays=fixed(delay_ms * 10**6))
    asked = cell(
        NAT44,
        procedure="connection-rate",
        resolution="5%",
        stateful={"connections": 4000},
    )
    recording = Recording(engine, testbed=NAT44)
    limit = MaxRate(100_000, "set")
    result = measure_connection_rate(recording.runner, asked, limit)
    assert (result.bound, result.bound_cause) == ("lower", "short_tests")
    found = max(
        r.load_fps for r in recording.records if r.result.verdict.kind == "pass"
    )
    opened = 4000 / (4000 / found + delay_ms / 1000)
    assert result.median == pytest.approx(opened, abs=1)
    (reason,) = [r for r in result.reasons if "too short a test" in r.message]
    assert f"{found:,}/s passed" in reason.message
    enough = int(reason.hint.split()[1].replace(",", ""))
    assert enough / (enough / found + delay_ms / 1000) >= 0.949 * found


def test_a_delay_of_less_than_the_resolution_leaves_the_result() -> None:
    nat = SimulatedNat(connection_rate_fps=1000)
    engine = ClearedEngine(nat, delays=fixed(9 * 10**6))
    asked = cell(
        NAT44,
        procedure="connection-rate",
        resolution="1%",
        stateful={"connections": 1000},
    )
    recording = Recording(engine, testbed=NAT44)
    limit = MaxRate(100_000, "set")
    result = measure_connection_rate(recording.runner, asked, limit)
    assert result.median == pytest.approx(1000, rel=0.01)
    assert result.bound is None


def test_the_losses_of_every_repeat_count() -> None:
    """The second one finds its link down."""
    alone = measured(1000)
    tests = alone.repeats[0].trials
    result = measured(1000, troubles=spoilt("link_down", *range(tests + 1, 200)))
    assert [repeat.verdict for repeat in result.repeats] == ["pass", "invalid"]
    assert result.reasons[-1] == alone.reasons[-1]


def test_less_than_the_resolution_is_nothing_to_tell() -> None:
    assert measured(2900, "20%").reasons == []
