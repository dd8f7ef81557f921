"""Throughput and frame loss with a frame timeout, a sweep, and a tolerated loss."""

from __future__ import annotations

import pytest
from planning import TESTBED, Recording, cell

from dutperf.procedures.loss_criterion import (
    damage_fails,
    goal_words,
    judged_by,
    loss_percent,
)
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.measurements import METHODS
from dutperf.procedures.trials import Ask
from dutperf.protocol.base import Side
from dutperf.results import CellResult, TimeoutLoss
from dutperf.run.trial_request import trial_request
from dutperf.simulation.fake_engine import (
    Dut,
    FakeEngine,
    every,
    jump,
    lossy,
    perfect,
    step,
)

MS = 1_000_000
MAX = MaxRate(100_000, "media")


def measured(
    engine: FakeEngine, procedure: str, **keys: object
) -> tuple[CellResult, Recording]:
    recording = Recording(engine)
    wanted = cell(procedure=procedure, max_rate_fps=None, **keys)
    return METHODS[wanted.procedure].trials.measure(
        recording.runner, wanted, MAX
    ), recording


def test_classic_throughput_does_not_see_a_delay_and_a_timeout_does() -> None:
    """Paper 004: every 10th frame comes a second late."""
    engine = FakeEngine(perfect(), delays=every(10, 1000 * MS))
    classic, _ = measured(engine, "throughput")
    strict, recording = measured(engine, "throughput", frame_timeout_ms=10)
    assert (classic.median, classic.verdict) == (100_000, "pass")
    assert (strict.median, strict.verdict) == (0, "fail")
    assert "lost or late at every rate" in strict.reasons[0].message
    assert recording.records[0].request.frame_timeout_ns == 10 * MS
    assert recording.records[0].result.verdict.reasons[0].code == "frames_late"


@pytest.mark.parametrize(
    ("keys", "quantity"),
    [
        ({}, "throughput per direction (RFC 2544 26.1)"),
        ({"frame_timeout_ms": 0.5}, "throughput per direction, frames within 0.5 ms"),
        (
            {"loss_tolerance_percent": 0.01},
            "throughput per direction, losing up to 0.01 %",
        ),
        (
            {"frame_timeout_ms": 10, "loss_tolerance_percent": 0.01},
            "throughput per direction, frames within 10 ms, losing up to 0.01 %",
        ),
        ({"timeout_sweep_ms": [1]}, "throughput per direction (RFC 2544 26.1)"),
    ],
)
def test_what_is_judged_otherwise_is_not_called_rfc_2544s(
    keys: dict[str, object], quantity: str
) -> None:
    result, _ = measured(FakeEngine(step(50_000)), "throughput", **keys)
    assert result.quantity == quantity


def test_a_curve_with_a_timeout_says_so_and_counts_late_frames() -> None:
    engine = FakeEngine(perfect(), delays=every(10, 1000 * MS))
    plain, _ = measured(engine, "frame-loss", load_percent=[100])
    strict, _ = measured(engine, "frame-loss", load_percent=[100], frame_timeout_ms=10)
    assert plain.median == 0
    assert strict.median == pytest.approx(10)
    assert plain.quantity.endswith("(RFC 2544 26.3)")
    assert strict.quantity.endswith("100,000 fps per direction, frames within 10 ms")


def test_random_loss_ruins_throughput_and_a_tolerance_does_not() -> None:
    """Paper 004: 0.01 % of the frames are lost at any rate."""
    classic, _ = measured(FakeEngine(lossy(100)), "throughput", repeats=5)
    tolerant, _ = measured(
        FakeEngine(lossy(100)), "throughput", repeats=5, loss_tolerance_percent=0.02
    )
    assert classic.median is not None
    assert classic.median < 2000
    assert tolerant.median == 100_000
    assert "losing up to 0.02 %" in tolerant.reasons[0].message


@pytest.mark.parametrize(("lost", "passes"), [(12, True), (13, False)])
def test_a_tolerance_is_of_each_direction_and_exact(lost: int, passes: bool) -> None:
    """At 2000 fps 120,000 frames are sent: 0.01 % are 12."""

    def losing() -> Dut:
        return lambda _rate_fps, frames: frames - lost

    recording = Recording(FakeEngine(losing()))
    wanted = cell(loss_tolerance_percent=0.01, trial_duration_s=60)
    verdict = recording.runner.run(Ask(wanted, 2000)).result.verdict
    assert (verdict.kind == "pass") == passes


def test_a_sweep_tells_the_loss_by_each_timeout_from_the_same_trials() -> None:
    engine = FakeEngine(step(50_000), delays=every(10, 8 * MS))
    sweep = [1, 5, 10, 50]
    swept, with_sweep = measured(engine, "throughput", timeout_sweep_ms=sweep)
    plain, without = measured(engine, "throughput")
    assert swept.median == plain.median
    assert with_sweep.loads_fps == without.loads_fps
    assert {t.timeout_ns // MS: t.loss_percent for t in swept.timeouts} == {
        1: pytest.approx(10),
        5: pytest.approx(10),
        10: 0,
        50: 0,
    }
    assert plain.timeouts == []


def test_a_sweep_of_a_curve_adds_what_is_lost_anyway() -> None:
    engine = FakeEngine(step(50_000), delays=jump(8 * MS))
    result, _ = measured(
        engine,
        "frame-loss",
        load_percent=[80, 40],
        timeout_sweep_ms=[5, 10],
        repeats=3,
    )
    for point, (within_5, within_10) in zip(
        result.points, [(50, 37.5), (50, 0)], strict=True
    ):
        assert [t.loss_percent for t in point.timeouts] == [
            pytest.approx(within_5),
            pytest.approx(within_10),
        ]
        assert len(point.timeouts[0].repeats) == 3


def test_a_search_that_passes_nowhere_has_no_loss_by_timeout() -> None:
    result, _ = measured(FakeEngine(lambda _r, n: n - 1), "throughput", **SWEEP)
    assert result.timeouts == [
        TimeoutLoss(timeout_ns=MS, loss_percent=None, repeats=[None])
    ]


def test_the_sweep_is_among_the_parameters() -> None:
    result, _ = measured(FakeEngine(perfect()), "throughput", **SWEEP)
    assert result.parameters["timeout_sweep_ms"] == "1"


SWEEP: dict[str, object] = {"timeout_sweep_ms": [1]}


@pytest.mark.parametrize(
    ("direction", "dropped", "percent"),
    [
        ("forward", {"right": 0}, 50),
        ("forward", {"right": 100}, 40),
        ("forward", {"right": 900}, 0),  # foreign frames among them
        ("forward", {"left": 900}, 50),  # of the other direction
        ("reverse", {"left": 100}, 40),
        ("both", {"right": 900}, 25),  # one direction's drops explain no more than it
    ],
)
def test_a_loss_is_less_what_the_receiving_port_dropped(
    direction: str, dropped: dict[str, int], percent: float
) -> None:
    engine = FakeEngine(lambda _rate_fps, sent: sent // 2)
    asked = cell(direction=direction, trial_duration_s=1)
    result = engine.measure(trial_request(TESTBED, asked, 1000, 1))
    ports = [
        port.model_copy(
            update={
                "after": port.after.model_copy(
                    update={
                        "rx_missed": port.before.rx_missed + dropped.get(port.name, 0)
                    }
                )
            }
        )
        for port in result.ports
    ]
    told = loss_percent(result.model_copy(update={"ports": ports}))
    assert told == pytest.approx(percent)


def test_a_loss_is_less_what_was_dropped_below_the_ports() -> None:
    engine = FakeEngine(lambda _rate_fps, sent: sent // 2)
    asked = cell(direction="forward", trial_duration_s=1)
    result = engine.measure(trial_request(TESTBED, asked, 1000, 1))
    right = {"interface_drops": 30, "not_taken_over": 20}
    drops = {"left": {"send_drops": 100}, "right": right}
    ports = [p.model_copy(update=drops[p.name]) for p in result.ports]
    told = result.model_copy(update={"ports": ports, "input_queue_drops": 25})
    assert loss_percent(told) == pytest.approx(50 - 17.5)
    # What the other side received, or the receiving side sent, was not of this way.
    swapped = [p.model_copy(update={"name": other(p.name)}) for p in ports]
    assert loss_percent(result.model_copy(update={"ports": swapped})) == 50


def test_what_a_port_dropped_before_the_trial_is_not_of_it() -> None:
    engine = FakeEngine(lambda _rate_fps, sent: sent // 2)
    asked = cell(direction="forward", trial_duration_s=1)
    result = engine.measure(trial_request(TESTBED, asked, 1000, 1))
    before, after = (
        {"rx_missed": 30, "rx_nombuf": 7},
        {"rx_missed": 90, "rx_nombuf": 47},
    )
    ports = [
        port.model_copy(
            update={
                "before": port.before.model_copy(update=before),
                "after": port.after.model_copy(update=after),
            }
        )
        for port in result.ports
    ]
    told = result.model_copy(update={"ports": ports})
    assert loss_percent(told) == pytest.approx(50 - 10)


@pytest.mark.parametrize(
    ("loss", "exceed", "words"),
    [
        (0, 0, ""),
        (0.5, 0, "losing up to 0.5 %"),
        (0, 25, "losing nothing in all but 25 % of the time"),
        (0.5, 25, "losing up to 0.5 % in all but 25 % of the time"),
    ],
)
def test_a_goal_is_told_by_what_it_lets_be_lost(
    loss: float, exceed: float, words: str
) -> None:
    assert goal_words(loss, exceed) == words


def test_by_several_goals_trials_are_judged_by_the_one_that_is_told() -> None:
    asked = cell(search="mlrsearch", resolution="1%", goals=["0.5%", "1%:25%"])
    assert judged_by(asked) == "losing up to 0.5 %"
    assert judged_by(asked, asked.spec.loss_criterion.goals[1]) == (
        "losing up to 1 % in all but 25 % of the time"
    )


def test_what_a_search_verifies_is_told() -> None:
    asked = cell(search="verified", verify_trials=3)
    assert judged_by(asked) == "losses verified by 3 trials"


def other(side: Side) -> Side:
    return "left" if side == "right" else "right"


@pytest.mark.parametrize(
    ("corrupt", "lost", "fails"),
    [(12, 12, False), (13, 13, True), (12, 500, False), (500, 12, False)],
)
def test_damage_fails_a_trial_where_it_is_more_than_a_direction_may_lose(
    corrupt: int, lost: int, fails: bool
) -> None:
    """Of 120,000 frames 0.01 % are 12; what else was lost is no damage."""
    asked = cell(loss_tolerance_percent=0.01, trial_duration_s=60)
    request = trial_request(TESTBED, asked, 2000, 1)
    result = FakeEngine(perfect()).measure(request)
    for spoilt in range(2):
        directions = list(result.directions)
        streams = [
            stream.model_copy(update={"corrupt": corrupt, "lost": lost})
            for stream in directions[spoilt].streams
        ]
        directions[spoilt] = directions[spoilt].model_copy(update={"streams": streams})
        told = result.model_copy(update={"directions": directions})
        assert damage_fails(request, told) == fails
