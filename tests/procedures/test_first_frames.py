"""A hundred frames before all others of a cell, and what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning import TESTBED, Run, campaign, spec, spoilt

from dutperf.config import Testbed
from dutperf.config.side import InterfacePort
from dutperf.protocol.result_messages import IcmpMessages, TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import ResultsFile, TrialRecord
from dutperf.simulation.fake_engine import Dut, FakeEngine, perfect, step

CELLS = [
    {"procedure": "throughput"},
    {"procedure": "frame-loss"},
    {"procedure": "pdv", "rate_fps": 20_000, "repeats": 1},
    {"procedure": "latency", "rate_fps": 20_000, "trial_duration_s": 120},
]


def nothing() -> Dut:
    return lambda _rate_fps, _frames: 0


def first(results: ResultsFile) -> list[TrialRecord]:
    return [trial for trial in results.trials if trial.role == "first_frames"]


@pytest.mark.parametrize("keys", CELLS)
def test_a_device_that_forwards_nothing_is_told_at_once(
    tmp_path: Path, keys: dict[str, object]
) -> None:
    results = Run(tmp_path / "run", FakeEngine(nothing()))(campaign(spec(**keys)))
    [cell] = results.cells
    assert (cell.verdict, cell.median, cell.repeats) == ("invalid", None, [])
    [reason] = cell.reasons
    assert reason.code == "nothing_forwarded"
    assert "forward: none of 100 frames arrived, reverse: none of 100" in reason.message
    assert "nothing on the left port; nothing on the right port" in reason.message
    assert "routes" in reason.hint
    assert cell.conformance is not None
    assert cell.conformance.status == "none"
    # Once more, for a device that first had to learn who is there.
    assert [t.role for t in results.trials] == ["first_frames", "first_frames"]


class OneWay(FakeEngine):
    """Frames from right to left come back where they were sent, some in pieces."""

    def measure(self, trial: TrialRequest, *_progress: object) -> TrialResult:
        result = super().measure(trial)
        forward, reverse = result.directions
        sent = [s.model_copy(update={"received": 0}) for s in reverse.streams]
        left, right = result.ports
        counts = {"misdirected": 97, "fragments": 2}
        return result.model_copy(
            update={
                "directions": [forward, reverse.model_copy(update={"streams": sent})],
                "ports": [left, right.model_copy(update=counts)],
            }
        )


def test_what_arrived_instead_is_told_with_where_to_look(tmp_path: Path) -> None:
    results = Run(tmp_path / "run", OneWay(perfect()))(campaign(spec()))
    [reason] = results.cells[0].reasons
    assert "reverse: none of 100" in reason.message
    assert "forward: none" not in reason.message
    assert "97 misdirected, 2 fragments on the right port" in reason.message
    assert "ports are swapped" in reason.hint
    assert "MTU" in reason.hint


class Refusing(FakeEngine):
    """Says that its filter forbids them, once in a while."""

    def measure(self, trial: TrialRequest, *_progress: object) -> TrialResult:
        result = super().measure(trial)
        left, right = result.ports
        said = IcmpMessages(ip_version=4, type=3, code=13, frames=6)
        refused = left.model_copy(update={"foreign": 9, "icmp": [said]})
        return result.model_copy(update={"ports": [refused, right]})


def test_what_the_device_answered_is_told_in_words(tmp_path: Path) -> None:
    results = Run(tmp_path / "run", Refusing(nothing()))(campaign(spec()))
    [reason] = results.cells[0].reasons
    told = "9 foreign (of the foreign ones 6 ICMP administratively prohibited)"
    assert f"{told} on the left port; nothing on the right port" in reason.message
    assert "the device's filter, which forbids these frames;" in reason.hint


def test_a_device_that_answers_late_for_the_first_time_is_measured(
    tmp_path: Path,
) -> None:
    asked = 0

    def learning(_rate_fps: float, frames: int) -> int:
        nonlocal asked
        asked += 1
        return 0 if asked <= 2 else frames  # both directions ask

    results = Run(tmp_path / "run", FakeEngine(learning))(campaign(spec()))
    assert results.cells[0].verdict == "pass"
    assert len(first(results)) == 2


def test_a_few_lost_frames_are_no_reason_to_end(tmp_path: Path) -> None:
    engine = FakeEngine(lambda _rate_fps, frames: max(frames - 99, 1))
    results = Run(tmp_path / "run", engine)(campaign(spec(procedure="frame-loss")))
    assert results.cells[0].verdict == "pass"
    assert len(first(results)) == 1


def test_an_invalid_trial_is_repeated_unless_frames_came_back(tmp_path: Path) -> None:
    troubles = spoilt("receiver_overflow", 1, 2)
    path = tmp_path / "silent"
    silent = Run(path, FakeEngine(nothing(), troubles=troubles))(campaign(spec()))
    assert [trial.attempt for trial in first(silent)][:3] == [1, 2, 3]
    assert silent.cells[0].reasons[0].code == "nothing_forwarded"
    heard = Run(tmp_path / "heard", FakeEngine(step(300_000), troubles=troubles))
    assert len(first(heard(campaign(spec())))) == 1


def test_what_no_rate_changes_ends_the_cell_with_its_own_reason(tmp_path: Path) -> None:
    engine = FakeEngine(perfect(), troubles=spoilt("link_down", *range(1, 9)))
    results = Run(tmp_path / "run", engine)(campaign(spec()))
    assert [reason.code for reason in results.cells[0].reasons] == ["link_down"]
    assert len(results.trials) == 3


def test_each_cell_has_its_own_at_a_rate_that_is_allowed(tmp_path: Path) -> None:
    asked = campaign(spec(ip=[4, 6], frame_size=[128], max_rate_fps=200))
    results = Run(tmp_path / "run", FakeEngine(perfect()))(asked)
    assert [(t.cell, t.load_fps) for t in first(results)] == [
        ("throughput-ip4-128-both", 200),
        ("throughput-ip6-128-both", 200),
    ]
    sent = [t.result.directions[0].streams[0].sent for t in first(results)]
    assert sent == [100, 100]
    # They are none of the search's trials.
    assert [cell.repeats[0].trials for cell in results.cells] == [1, 1]


class NeverCuts(FakeEngine):
    """Its right link carries 1,500 bytes, and nothing that is longer."""

    def __init__(self) -> None:
        self.too_long = False
        super().__init__(lambda _rate_fps, frames: 0 if self.too_long else frames)

    def measure(self, trial: TrialRequest, *_progress: object) -> TrialResult:
        [stream] = trial.directions[0].streams
        self.too_long = max(stream.frame_sizes) > 1518
        return super().measure(trial)


def unequal_links() -> Testbed:
    left = TESTBED.left.model_copy(
        update={"port": InterfacePort(interface="left", mtu=9198)}
    )
    return TESTBED.model_copy(update={"left": left})


def test_the_rate_of_frames_that_are_not_fragmented_is_zero(tmp_path: Path) -> None:
    """RFC 2544 9.4: of the small ones it forwards as many as it should."""
    run = Run(tmp_path / "run", NeverCuts(), testbed=unequal_links())
    keys = {"ip": [4], "direction": "forward", "traffic": {"fragmented": True}}
    results = run(campaign(spec(frame_size=[1518, 4096], **keys)))
    small, large = results.cells
    assert (small.verdict, large.verdict) == ("pass", "fail")
    assert small.median == 1_000_000
    assert large.median == 0
    [told] = [notice for notice in run.notices if "RFC 2544 9.4" in notice]
    assert "of frames of 4,096 bytes none arrives" in told


def test_a_device_that_forwards_nothing_at_all_has_no_rate(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", FakeEngine(nothing()), testbed=unequal_links())
    keys = {"ip": [4], "direction": "forward", "traffic": {"fragmented": True}}
    [cell] = run(campaign(spec(frame_size=4096, **keys))).cells
    assert (cell.verdict, cell.median) == ("invalid", None)
    assert cell.reasons[0].code == "nothing_forwarded"
