"""What the device sent and the tester's kernel did not take in is not lost by it."""

from __future__ import annotations

import pytest
from planning import FakeWatch, Recording, cell

from dutperf.procedures.loss_criterion import loss_percent
from dutperf.procedures.trials import Ask
from dutperf.results.trial_record import TrialRecord
from dutperf.simulation.fake_engine import FakeEngine, step

RATE = 1000
LOST = {"trial_duration_s": 1.0}
"""At one frame a second too much."""


class CountingWatch(FakeWatch):
    """In a trial the device sends ``frames`` to each port."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(0)
        self._sent: dict[str, int] = {"left": 2**40, "right": 7}
        self._frames: dict[str, int] = {"left": left, "right": right}
        self._looks = 0
        self.sent = self._looked

    def _looked(self) -> dict[str, int]:
        if self._looks % 2:
            self._sent = {s: n + self._frames[s] for s, n in self._sent.items()}
        self._looks += 1
        return dict(self._sent)


class GoneWatch(CountingWatch):
    """Its device is not there at the first look, or was made anew."""

    def _looked(self) -> dict[str, int]:
        return super()._looked() if self._looks else self._made_anew()

    def _made_anew(self) -> dict[str, int]:
        self._looks += 1
        return {"left": 2**50}


def trial(watch: FakeWatch, limit_fps: int, **keys: object) -> TrialRecord:
    recording = Recording(FakeEngine(step(limit_fps)), device=watch)
    return recording.runner.run(Ask(cell(**keys), RATE))


def frames_of(record: TrialRecord) -> tuple[int, int, int]:
    """Sent, lost and answers of next hops: the same on both sides."""
    (sent, lost), *others = [
        (sum(s.sent for s in d.streams), sum(s.lost for s in d.streams))
        for d in record.result.directions
    ]
    assert others == [(sent, lost)]
    answers = [n.port for n in record.result.neighbours]
    assert answers.count("left") == answers.count("right")
    return sent, lost, answers.count("left")


def seen_by_port(record: TrialRecord) -> list[int]:
    return [p.after.rx_frames - p.before.rx_frames for p in record.result.ports]


@pytest.mark.parametrize(
    ("left", "right", "kind"),
    [
        (0, 0, "fail"),
        (0, 1, "fail"),  # the other direction's loss is nobody else's
        (-1, 10**6, "fail"),
        (1, 1, "invalid"),
        (10**6, 10**6, "invalid"),
    ],
)
def test_a_loss_is_the_devices_if_it_is_more_than_was_not_taken_in(
    left: int, right: int, kind: str
) -> None:
    plain = trial(FakeWatch(0), RATE - 1, **LOST)
    _, lost, answers = frames_of(plain)
    assert (plain.result.verdict.kind, lost) == ("fail", 1)
    on_left, on_right = (seen + answers for seen in seen_by_port(plain))
    watch = CountingWatch(on_left + left, on_right + right)
    record = trial(watch, RATE - 1, **LOST)
    assert record.result.verdict.kind == kind
    codes = [reason.code for reason in record.result.verdict.reasons]
    assert codes[-1] == "frames_lost"
    assert ("receiver_overflow" in codes) == (kind == "invalid")
    drops = [port.interface_drops for port in record.result.ports]
    assert drops == [max(0, left), max(0, right)]


def test_a_loss_figure_leaves_it_out() -> None:
    plain = trial(FakeWatch(0), RATE // 2)
    _, lost, answers = frames_of(plain)
    on_left, on_right = (seen + answers for seen in seen_by_port(plain))
    record = trial(CountingWatch(on_left + lost, on_right), RATE // 2)
    assert loss_percent(plain.result) == pytest.approx(50)
    assert loss_percent(record.result) == pytest.approx(25)
    assert record.result.verdict.kind == "fail"


def test_a_trial_without_loss_passes_whatever_else_was_sent() -> None:
    record = trial(CountingWatch(10**6, 10**6), RATE)
    assert record.result.verdict.kind == "pass"
    assert record.result.verdict.reasons == []


def test_where_nobody_counts_nothing_changes() -> None:
    for watch in (FakeWatch(0), GoneWatch(9, 9)):
        record = trial(watch, RATE - 1, **LOST)
        assert [port.interface_drops for port in record.result.ports] == [0, 0]
        assert record.result.verdict.kind == "fail"
