"""All procedures on open connections, through simulated stateful gateways."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from gateways import NAT44, ClearedEngine
from planning import Recording, Run, campaign, cell, spec, spoilt

from dutperf.config import Testbed, expand
from dutperf.config.phase2 import timing_of
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.model.cell import Cell
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.stateful.connection_diagnosis import expired_reasons
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.stream_messages import DirectionRequest
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import CellResult, TrialRecord
from dutperf.run.local_executor import measure_cell
from dutperf.run.preview import estimate
from dutperf.simulation.fake_engine import FakeEngine, SimulatedNat, queueing, step

N = 500
R = 5001
"""No rate that a search tries."""
SERVICE_FPS = 3000
MAX = MaxRate(10_000, "set")
TIMES = {
    "trial_duration_s": 0.2,
    "settle_wait_s": 0.01,
    "residual_wait_s": 0.1,
    "restabilise_wait_s": 0.3,
}
D_MS = -(-1000 * N // R) + 2 * 50
NEEDED_S = D_MS / 1000 + 0.2 + 0.1


def asked(procedure: str = "throughput", **keys: object) -> Cell:
    opened = {"connections": N, "phase1_rate": R, "timeout_ms": 50}
    given: dict[str, object] = {
        "procedure": procedure,
        "max_rate_fps": MAX.rate_fps,
        "search": "classic",
        "resolution": "1%",
        **TIMES,
        **keys,
    }
    if procedure != "throughput":
        del given["search"], given["resolution"]
    changed = keys.get("stateful", {})
    assert isinstance(changed, dict)
    given["stateful"] = opened | changed
    return cell(**given)


def measured(
    engine: FakeEngine, what: Cell, testbed: Testbed = NAT44
) -> tuple[CellResult, Recording]:
    recording = Recording(engine, testbed=testbed)
    given = what.spec.given_rate_fps
    limit = MAX if given is None else MaxRate(given, "load")
    return measure_cell(recording.runner, what, limit), recording


def gateway(**nat: Any) -> ClearedEngine:  # noqa: ANN401 - of SimulatedNat
    """A gateway that opens connections faster than it forwards in phase 2."""
    return ClearedEngine(SimulatedNat(**nat), dut=slow_in_phase2(SERVICE_FPS))


def slow_in_phase2(rate_fps: int) -> Callable[[float, int], int]:
    """As step(rate_fps), but phase 1 and validations at R pass."""
    forward = step(rate_fps)
    return lambda fps, frames: frames if fps == R else forward(fps, frames)


def of_role(recording: Recording, role: str) -> list[TrialRecord]:
    return [record for record in recording.records if record.role == role]


def by_name(request: TrialRequest) -> dict[str, DirectionRequest]:
    return {direction.name: direction for direction in request.directions}


@pytest.mark.parametrize("direction", ["both", "forward", "reverse"])
@pytest.mark.parametrize("initiator", ["left", "right"])
def test_throughput_through_the_table_is_the_service_rate(
    direction: str, initiator: str
) -> None:
    what = asked(direction=direction, stateful={"initiator": initiator})
    result, recording = measured(gateway(), what)
    assert result.verdict == "pass"
    assert result.median == pytest.approx(SERVICE_FPS, rel=0.02)
    phases = [record.role for record in recording.records]
    assert phases[:2] == ["phase1", "trial"]
    assert phases.count("phase1") == phases.count("trial")


def test_phase_2_sends_the_connections_of_phase_1_both_ways_and_goes_on_learning() -> (
    None
):
    _, recording = measured(gateway(), asked())
    opening, trial = recording.records[0].request, recording.records[1].request
    assert [d.name for d in opening.directions] == ["forward"]
    assert opening.frames(opening.directions[0]) == N
    assert opening.learn is not None
    assert not opening.learn.keep
    sides = by_name(trial)
    (there,), (back,) = sides["forward"].streams, sides["reverse"].streams
    assert there.vary == opening.directions[0].streams[0].vary
    assert there.enumeration_order == opening.directions[0].streams[0].enumeration_order
    assert there.tuples is not None
    assert (there.tuples.source, there.tuples.order) == ("generated", "random")
    assert back.tuples is not None
    assert (back.tuples.source, back.tuples.order) == ("learned", "random")
    assert {there.tuples.count, back.tuples.count} == {N}
    assert trial.learn is not None
    assert trial.learn.keep
    assert trial.not_before_ns == D_MS * 1_000_000
    assert trial.seed == opening.seed


def test_many_addresses_are_combined_with_the_ports_in_both_phases() -> None:
    hosts = {"left": {"hosts": 5}, "right": {"hosts": 3}}
    ports = {"source_ports": "10000-10009", "destination_ports": "80-83"}
    what = asked(traffic={"addresses": hosts}, stateful=ports)
    result, recording = measured(gateway(), what)
    assert result.median == pytest.approx(SERVICE_FPS, rel=0.02)
    opening, trial = recording.records[0], recording.records[1].request
    (there,) = by_name(opening.request)["forward"].streams
    assert [(v.field, v.min, v.size, v.mode) for v in there.vary] == [
        ("src_port", 10000, 10, "enumerate"),
        ("dst_port", 80, 4, "enumerate"),
        ("src_ip", 2, 5, "enumerate"),
        ("dst_ip", 2, 3, "enumerate"),
    ]
    assert there.combinations == 600
    assert opening.result.table is not None
    assert opening.result.table.filled == N
    (again,), (back,) = (by_name(trial)[d].streams for d in ("forward", "reverse"))
    assert again.vary == there.vary
    assert back.vary == []
    told = result.parameters
    assert (told["source_addresses"], told["destination_addresses"]) == (5, 3)
    assert told["combinations"] == 600


def test_where_only_the_responder_sends_the_table_stays_as_it_is() -> None:
    what = asked(direction="reverse", stateful={"responder_order": "decreasing"})
    _, recording = measured(gateway(), what)
    trial = recording.records[1].request
    assert trial.learn is None
    (direction,) = trial.directions
    assert direction.streams[0].tuples is not None
    assert direction.streams[0].tuples.order == "decreasing"


def test_the_device_rests_and_is_emptied_before_phase_1_only() -> None:
    hooks = {"before_trial": [{"command": ["true"]}]}
    testbed = Testbed.model_validate(
        NAT44.model_dump(exclude_none=True) | {"hooks": hooks}
    )
    _, recording = measured(gateway(), asked(), testbed)
    for record in recording.records:
        moments = [run.moment for run in record.hooks]
        assert moments.count("before_trial") == (record.role == "phase1")
    tests = len(of_role(recording, "trial"))
    assert len([wait for wait in recording.waits if wait == 0.3]) == tests - 1


def test_frame_loss_and_delays_are_those_of_phase_2() -> None:
    loads = asked("frame-loss", load_percent=[100, 60, 30, 10])
    curve, _ = measured(gateway(), loads)
    losses = {point.load_percent: point.loss_percent for point in curve.points}
    assert losses == {
        100: pytest.approx(70),
        60: pytest.approx(50),
        30: 0,
        10: 0,
    }
    tagged = asked("latency", rate_fps=2000, repeats=2, tags=20, first_tag_s=0.05)
    latency, recording = measured(gateway(), tagged)
    assert (latency.verdict, latency.median) == ("pass", 20_000)
    assert [r.request.record.tags is None for r in recording.records] == [
        True,
        False,
    ] * 2
    for procedure in ("pdv", "ipdv"):
        what = asked(procedure, rate_fps=2000, repeats=1)
        assert measured(gateway(), what)[0].verdict == "pass"


BUFFER = 20
PEAK = MaxRate(50_000, "set")


def buffering(opened: Cell) -> tuple[CellResult, Recording]:
    """At 6,000 fps, with so many frames that may wait."""
    arrivals = queueing(BUFFER, 6000)
    engine = FakeEngine(step(0), arrivals=arrivals)
    if opened.stateful:
        engine = ClearedEngine(SimulatedNat(), arrivals=arrivals)
    recording = Recording(engine, testbed=NAT44)
    return measure_cell(recording.runner, opened, PEAK), recording


def without_connections(what: Cell) -> Cell:
    return what.model_copy(update={"stateful": None})


@pytest.mark.parametrize(("frames", "fits"), [(8, True), (23, True), (24, False)])
def test_a_buffer_takes_bursts_of_the_same_length_with_connections_as_without(
    frames: int, fits: bool
) -> None:
    """One frame is in service and two have left when the last of 23 comes."""
    what = asked(traffic={"burst_frames": frames}, max_rate_fps=PEAK.rate_fps)
    for each in (what, without_connections(what)):
        result, _ = buffering(each)
        assert result.verdict == ("pass" if fits else "fail")
        assert (result.median or 0) == pytest.approx(6000 if fits else 0, rel=0.05)
        assert result.parameters["burst_rate_fps"] == PEAK.rate_fps
        assert f"in bursts of {frames} (RFC 2544 21)" in result.quantity


def test_phase_1_and_the_check_of_connections_are_steady_whatever_phase_2_is() -> None:
    what = asked(traffic={"burst_frames": 24}, max_rate_fps=PEAK.rate_fps)
    _, recording = buffering(what)
    assert of_role(recording, "validation")
    for record in recording.records:
        for direction in record.request.directions:
            in_bursts = record.role == "trial" and record.load_fps < PEAK.rate_fps
            assert bool(direction.steps) == in_bursts
            expected_fps = PEAK.rate_fps if record.role == "trial" else R
            assert direction.rate_fps == expected_fps


def test_a_load_that_changes_loses_as_much_with_connections_as_without() -> None:
    shape = {"steps": [{"percent": p, "duration_s": 0.05} for p in (100, 20)]}
    what = asked("frame-loss", load_percent=[20], traffic={"load_shape": shape})
    opened, recording = buffering(what)
    plain, _ = buffering(without_connections(what))
    assert [p.loss_percent for p in opened.points] == [
        p.loss_percent for p in plain.points
    ]
    assert opened.points[0].loss_percent == pytest.approx(32, abs=4)
    (trial,) = of_role(recording, "trial")
    sent = trial.result.directions[0].streams[0].sent
    assert sent == 2 * (500 + 100)
    (shaped,) = [d for d in opened.deviations if d.requirement.startswith("steady")]
    assert shaped.level == "definition"


def test_a_device_that_forgets_in_a_pause_of_the_load_is_not_called_slow() -> None:
    shape = {"steps": [{"percent": p, "duration_s": 0.1} for p in (100, 0)]}
    what = asked(
        "frame-loss",
        load_percent=[100],
        traffic={"load_shape": shape},
        trial_duration_s=0.3,
        direction="forward",
    )
    nat = SimulatedNat(timeout_ns=int(0.08 * 1e9))
    result, _ = measured(ClearedEngine(nat), what)
    assert result.verdict == "invalid"
    assert {"connections_expired"} <= {reason.code for reason in result.reasons}


def test_background_is_in_both_phases_and_opens_no_connection() -> None:
    mixed = asked(traffic={"mix": "4/5", "background_ip": 4})
    result, recording = measured(gateway(), mixed)
    assert result.median == pytest.approx(SERVICE_FPS, rel=0.02)
    opening = recording.records[0].result.directions[0]
    foreground, background = opening.streams
    assert (foreground.sent, background.sent) == (N, N // 4)
    assert result.parameters["phase2_after_ms"] == -(-1000 * (N * 5 // 4) // R) + 100


def test_times_are_parameters_of_the_result() -> None:
    result, _ = measured(gateway(), asked())
    parameters = result.parameters
    assert parameters["connections"] == N
    assert parameters["phase1_rate"] == R
    assert parameters["timeout_ms"] == 50
    assert parameters["phase2_after_ms"] == D_MS
    assert parameters["needed_dut_timeout_s"] == pytest.approx(NEEDED_S * 1.1)
    assert parameters["trial_duration_s"] == 0.2


def test_a_device_that_is_really_slow_fails_and_is_not_said_to_forget() -> None:
    """One validation clears the device for all faster trials."""
    result, recording = measured(gateway(), asked())
    failed = [r for r in recording.records if r.result.verdict.kind == "fail"]
    assert failed
    assert result.reasons == []
    checks = of_role(recording, "validation")
    assert 1 <= len(checks) < len(failed) + 1
    assert all(check.result.verdict.kind == "pass" for check in checks)


@pytest.mark.parametrize(
    ("share", "direction"),
    [
        (0.3, "both"),
        (0.6, "both"),
        (0.3, "reverse"),
        (0.6, "reverse"),
        (0.9, "reverse"),
    ],
)
def test_a_timeout_shorter_than_the_plan_is_no_lack_of_speed(
    share: float, direction: str
) -> None:
    nat = SimulatedNat(timeout_ns=int(share * (NEEDED_S - 0.1) * 1e9))
    engine = ClearedEngine(nat)
    what = asked(direction=direction)
    result, recording = measured(engine, what)
    assert result.verdict == "invalid"
    (reason,) = [r for r in result.reasons if r.code == "connections_expired"]
    assert "not a lack of speed" in reason.message
    assert "at least 0.55 s" in reason.hint
    assert len(of_role(recording, "trial")) == 1


@pytest.mark.parametrize(("lost", "damaged"), [(2, 2), (3, 2), (1, 0)])
def test_a_frame_that_comes_back_damaged_is_no_connection_that_expired(
    lost: int, damaged: int
) -> None:
    """A translator that leaves UDP checksums out loses frames, not connections."""
    nat = SimulatedNat(timeout_ns=int(0.6 * (NEEDED_S - 0.1) * 1e9))
    what = asked(direction="reverse")
    _, recording = measured(ClearedEngine(nat), what)
    check, _ = of_role(recording, "validation")
    assert check.result.verdict.kind == "fail"
    direction = check.result.directions[0]
    stream = direction.streams[0].model_copy(
        update={"lost": lost, "corrupt": damaged, "received": 500 - lost}
    )
    result = check.result.model_copy(
        update={"directions": [direction.model_copy(update={"streams": [stream]})]}
    )
    timing = timing_of(what)
    assert what.stateful
    assert timing
    reasons = expired_reasons(
        [check.model_copy(update={"result": result})], what.stateful, timing
    )
    silent = [f"{lost - damaged:,} let no frame back"] if lost > damaged else []
    assert len(reasons) == len(silent)
    assert all(told in reasons[0].message for told in silent)


@pytest.mark.parametrize(
    ("lost", "unknown", "silent"),
    [
        ([[(7, 1)]], 0, 1),
        ([[(7, 1)], [(8, 1)]], 0, 0),
        ([[(3, 4), (9, 2)], [(0, 5), (10, 1)]], 0, 3),
        ([[(0, 500)], [(0, 500)]], 0, 500),
        ([[(7, 1)], [(8, 1)]], 3, 1),
    ],
)
def test_a_connection_has_expired_only_if_no_validation_gets_a_frame_back(
    lost: list[list[tuple[int, int]]], unknown: int, silent: int
) -> None:
    """A device that loses one frame in 65,535 at any rate forgets no connection."""
    nat = SimulatedNat(timeout_ns=int(0.6 * (NEEDED_S - 0.1) * 1e9))
    what = asked(direction="reverse")
    _, recording = measured(ClearedEngine(nat), what)
    check, _ = of_role(recording, "validation")
    direction = check.result.directions[0]
    stream = direction.streams[0]
    assert stream.survival
    checks = []
    for ranges in lost:
        gone = sum(count for _, count in ranges)
        told = {"lost_ranges": ranges, "more_ranges": unknown}
        survival = stream.survival.model_copy(update=told)
        counts = {"lost": gone, "received": N - gone, "survival": survival}
        streams = [stream.model_copy(update=counts)]
        directions = [direction.model_copy(update={"streams": streams})]
        result = check.result.model_copy(update={"directions": directions})
        checks.append(check.model_copy(update={"result": result}))
    timing = timing_of(what)
    assert what.stateful
    assert timing
    reasons = expired_reasons(checks, what.stateful, timing)
    told_of = [f"{silent:,} let no frame back"] if silent else []
    assert len(reasons) == len(told_of)
    assert all(told in reasons[0].message for told in told_of)


def test_what_lets_a_frame_back_at_the_second_try_has_not_expired() -> None:
    """After an overload a device may have to ask for its neighbours first."""
    busy = [2]  # validations that lose frames from here on

    def forward(fps: float, frames: int) -> int:
        if fps != R or busy[0] != 1:
            return slow_in_phase2(SERVICE_FPS)(fps, frames)
        busy[0] = 0
        return frames - 10

    class Overloaded(ClearedEngine):
        def measure(
            self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
        ) -> TrialResult:
            result = super().measure(trial, on_progress)
            if busy[0] == 2 and result.verdict.kind == "fail":
                busy[0] = 1
            return result

    engine = Overloaded(SimulatedNat(), dut=forward)
    result, recording = measured(engine, asked(direction="reverse"))
    kinds = [c.result.verdict.kind for c in of_role(recording, "validation")]
    assert kinds[:2] == ["fail", "pass"]
    assert result.reasons == []
    assert result.median == pytest.approx(SERVICE_FPS, rel=0.02)


def test_a_timeout_longer_than_the_plan_is_enough() -> None:
    nat = SimulatedNat(timeout_ns=int(NEEDED_S * 1.1 * 1e9))
    engine = ClearedEngine(nat, dut=slow_in_phase2(SERVICE_FPS))
    result, _ = measured(engine, asked(direction="reverse"))
    assert result.verdict == "pass"
    assert result.median == pytest.approx(SERVICE_FPS, rel=0.02)


def test_initiator_alone_shows_by_new_mappings_that_connections_expired() -> None:
    engine = ClearedEngine(SimulatedNat(timeout_ns=100_000_000))
    result, _ = measured(engine, asked(direction="forward"))
    assert result.verdict == "invalid"
    assert any("opened anew" in reason.message for reason in result.reasons)


def test_connections_that_an_interruption_costs_are_part_of_the_outage() -> None:
    engine = ClearedEngine(SimulatedNat(timeout_ns=100_000_000))
    what = asked(
        "outage", direction="forward", rate_fps=R, trigger_after_s=0.1, repeats=1
    )
    result, _ = measured(engine, what)
    assert "connections_expired" not in {reason.code for reason in result.reasons}
    assert result.verdict == "pass"


@pytest.mark.parametrize("flood", [{}, {"flood_percent": 20}])
def test_what_a_device_forgets_during_a_flood_is_its_loss(
    flood: dict[str, int],
) -> None:
    engine = ClearedEngine(SimulatedNat(timeout_ns=100_000_000))
    what = asked("frame-loss", direction="both", traffic=flood, load_percent=[50])
    result, _ = measured(engine, what)
    codes = {reason.code for reason in result.reasons}
    assert ("connections_expired" in codes) is not bool(flood)
    assert result.verdict == ("pass" if flood else "invalid")
    (point,) = result.points
    assert (point.loss_percent or 0) > 0 or not flood


@pytest.mark.parametrize(
    ("nat", "stateful", "code", "told"),
    [
        ({"connection_rate_fps": R / 2}, {}, "phase1_failed", "R is too high"),
        ({"table_size": N // 2}, {}, "phase1_failed", "after the first 250"),
        ({"public_ip": "203.0.113.7"}, {}, "unexpected_address", "203.0.113.7"),
        ({"collapses_at": 0}, {}, "phase1_failed", "none was forwarded"),
    ],
)
def test_phase_2_does_not_start_without_all_connections(
    nat: dict[str, Any], stateful: dict[str, Any], code: str, told: str
) -> None:
    what = asked(stateful={"public_addresses": "198.19.0.1", **stateful})
    result, recording = measured(gateway(**nat), what)
    assert result.verdict == "invalid"
    assert of_role(recording, "trial") == []
    found = [reason for reason in result.reasons if reason.code == code]
    assert told in found[0].message
    assert found[0].hint


def test_phase_1_that_the_tester_spoilt_is_run_again() -> None:
    engine = ClearedEngine(
        SimulatedNat(), spoilt("receiver_overflow", 1), slow_in_phase2(SERVICE_FPS)
    )
    result, recording = measured(engine, asked())
    assert result.verdict == "pass"
    assert [r.role for r in recording.records[:3]] == ["phase1", "phase1", "trial"]


def test_a_phase_2_that_the_tester_spoilt_is_run_again_after_a_new_phase_1() -> None:
    engine = ClearedEngine(
        SimulatedNat(), spoilt("receiver_overflow", 2, 4), slow_in_phase2(SERVICE_FPS)
    )
    result, recording = measured(engine, asked())
    assert result.verdict == "pass"
    assert [r.attempt for r in of_role(recording, "trial")[:3]] == [1, 2, 3]


def test_what_comes_and_goes_in_phase_2_is_waited_for_before_phase_1() -> None:
    engine = ClearedEngine(SimulatedNat(), spoilt("sender_burst", 2, 4))
    _, recording = measured(engine, asked())
    assert recording.waits[:3] == [0, 0.3, 1.3]


def test_trials_that_are_lost_may_end_early_but_not_phase_1() -> None:
    result, recording = measured(gateway(), asked(early_stop=True))
    assert result.median == pytest.approx(SERVICE_FPS, rel=0.02)
    stops = {r.role: r.request.stop_when_lost for r in recording.records}
    assert stops == {"phase1": False, "trial": True, "validation": False}


def test_the_search_is_expected_to_take_phase_1_as_well() -> None:
    what = asked()
    _, recording = measured(gateway(), what)
    (expected,) = estimate([what])
    phases = len(of_role(recording, "phase1")) + len(of_role(recording, "trial"))
    assert abs(expected.trials - phases) <= 4
    plain = what.model_copy(update={"stateful": None})
    (without,) = estimate([plain])
    own = without.trials - 1  # the other one is of the first frames
    assert expected.trials == 2 * own
    more_s = expected.duration_s - without.duration_s
    assert more_s == pytest.approx(own * D_MS / 1000, abs=1)


def test_r_may_be_a_share_of_the_connection_rate_that_was_found() -> None:
    opened = {"connections": N, "timeout_ms": 50}
    rate, phased = expand(
        campaign(
            spec(procedure="connection-rate", resolution="10", stateful=opened),
            spec(
                trial_duration_s=0.2,
                search="classic",
                stateful=opened | {"phase1_rate": "50% of connection-rate"},
            ),
        ),
        NAT44,
    )
    assert phased.connection_cell == rate.id
    engine = ClearedEngine(SimulatedNat(connection_rate_fps=R))
    recording = Recording(engine, testbed=NAT44)
    limit = MaxRate(20_000, "set")
    first = measure_cell(recording.runner, rate, limit)
    assert first.median == pytest.approx(R, rel=0.02)
    found = measure_cell(recording.runner, phased, limit, [first])
    assert found.verdict == "pass"
    assert found.parameters["phase1_rate"] == int((first.median or 0) * 0.5)
    unknown = first.model_copy(update={"median": None, "verdict": "invalid"})
    missing = measure_cell(recording.runner, phased, limit, [unknown])
    assert missing.verdict == "invalid"
    assert missing.reasons[0].code == "no_connection_rate"


def test_an_r_above_the_connection_rate_is_warned_about() -> None:
    rate = cell(procedure="connection-rate", stateful={"connections": N})
    limit = MaxRate(20_000, "set")
    engine = ClearedEngine(SimulatedNat(connection_rate_fps=R - 1000))
    recording = Recording(engine, testbed=NAT44)
    first = measure_cell(recording.runner, rate, limit)
    recording.events.clear()
    measure_cell(recording.runner, asked(), limit, [first])
    told = [str(event) for event in recording.events if "faster than" in str(event)]
    assert len(told) == 1


RUN = campaign(
    spec(
        search="classic",
        resolution="5%",
        max_rate_fps=10_000,
        repeats=2,
        stateful={"connections": N, "phase1_rate": R, "timeout_ms": 50},
        **TIMES,
    )
)


class Ended(ClearedEngine):
    """Ends the run at its trial ``last``, if that is not 0."""

    def __init__(self, last: int) -> None:
        ends: Any = {last: KeyboardInterrupt()} if last else {}
        super().__init__(SimulatedNat(), ends, slow_in_phase2(SERVICE_FPS))


def test_a_run_that_ended_anywhere_opens_its_connections_again(tmp_path: Path) -> None:
    """The tester's table is gone with the run, also where phase 1 is in the journal."""
    whole = Run(tmp_path / "whole", Ended(0), testbed=NAT44)(RUN)
    roles = [record.role for record in whole.trials]
    for last in {1, 2, 3, 4, roles.index("validation") + 1, len(roles)}:
        path = tmp_path / str(last)
        with pytest.raises(KeyboardInterrupt):
            Run(path, Ended(last), testbed=NAT44)(RUN)
        results = Run(path, Ended(0), testbed=NAT44).resume(RUN)
        after_phase1 = roles[last - 2] == "phase1" if last > 1 else False
        before_check = roles[last - 1] == "validation"
        assert [c.median for c in results.cells] == [c.median for c in whole.cells]
        if not before_check:
            assert len(results.trials) == len(roles) + after_phase1
        # What is stored then is enough for the same results, once more.
        again = Run(path, Ended(0), testbed=NAT44)
        (path / "results.json").unlink()
        assert again.resume(RUN).cells == results.cells
        assert again.engine.trials == []


def test_a_run_that_ends_twice_in_the_same_test_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        Run(path, Ended(2), testbed=NAT44)(RUN)
    with pytest.raises(KeyboardInterrupt):
        Run(path, Ended(2), testbed=NAT44).resume(RUN)
    results = Run(path, Ended(0), testbed=NAT44).resume(RUN)
    assert [record.role for record in results.trials[:4]] == [
        *("phase1", "phase1", "phase1", "trial")
    ]
    assert results.cells[0].verdict == "pass"
