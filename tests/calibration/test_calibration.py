"""A tester with a known error is told as MISSED, however small the cause."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import add
from pathlib import Path

import pytest
from simulated_answer import (
    EXTENT,
    SimulatedAnswer,
    SimulatedTester,
    direction_account,
    rows_of,
    simulated_run,
)

from dutperf.errors import EngineError, InputError
from dutperf.lab.refdut_socket import DirectionAccount, TrialAccount
from dutperf.simulation.fake_engine import (
    Dut,
    buffered,
    fixed,
    lossy,
    perfect,
    step,
)
from tools.calibrate.command import HEADS, markdown, texts
from tools.calibrate.grid import (
    BURSTS,
    PATHS,
    QUANTITIES,
    SMALL,
    Extent,
    pairings,
    points,
    service_point,
)
from tools.calibrate.measuring import calibrate
from tools.calibrate.model import Point, Row, load_calibration
from tools.calibrate.truth import served_per_s

RATE = 20_000


def service() -> Point:
    return service_point(RATE, SMALL, EXTENT)


def point(name: str) -> Point:
    """That of the quick grid."""
    found = points(QUANTITIES, ("memory",), EXTENT, lambda _traffic: None)
    return next(each for each in found if each.name == name)


def only(rows: list[Row], figure: str) -> Row:
    (row,) = (row for row in rows if row.figure == figure)
    return row


def served(service_fps: float = RATE) -> Dut:
    return buffered(service().queue_frames, int(service_fps))


def test_a_tester_that_finds_the_truth_is_within(tmp_path: Path) -> None:
    (row,) = rows_of(service(), tmp_path, truth=served(), found=served())
    assert (row.verdict, row.reasons, row.contradictions) == ("within", [], [])
    # 20 ms of frames wait at the end of a trial of a quarter of a second.
    assert row.account == pytest.approx(RATE * 1.08, rel=0.001)
    assert row.expected == pytest.approx(RATE * 1.08, rel=0.001)
    assert row.error_percent == pytest.approx(0, abs=0.3)
    assert (len(row.pairs), row.trials > 8) == (2, True)


@pytest.mark.parametrize("share", [0.97, 1.03])
def test_a_rate_that_is_off_by_three_percent_is_missed(
    tmp_path: Path, share: float
) -> None:
    wrong = served(RATE * share)
    (row,) = rows_of(service(), tmp_path, truth=served(), found=wrong)
    assert row.verdict == "MISSED"
    assert row.worst_percent == pytest.approx(100 * (share - 1), abs=0.5)
    assert row.contradictions
    assert len(row.pairs) == 2, "and no repeat is left out"


def _slow_clock(account: DirectionAccount) -> DirectionAccount:
    """Both sides' clock goes at half the kernel's speed."""
    by = account.foreground.witnessed
    twice = {name: 2 * getattr(by, name) for name in ("sum_ns", "least_ns", "most_ns")}
    seen = account.foreground.model_copy(
        update={"witnessed": by.model_copy(update=twice)}
    )
    return account.model_copy(update={"foreground": seen})


def _read_otherwise(key: str) -> Callable[[DirectionAccount], DirectionAccount]:
    def change(account: DirectionAccount) -> DirectionAccount:
        readings = account.readings.model_copy(update={key: 1})
        return account.model_copy(update={"readings": readings})

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_slow_clock, "least residence 200,000 ns, by the kernel's clock 400,000 ns"),
        (_slow_clock, "delays of 200,"),
        (_read_otherwise("wrong_sums"), "have wrong checksums"),
        (_read_otherwise("other_tags"), "have another tag than was read"),
        (_read_otherwise("unreadable"), "are no plain UDP packets"),
    ],
)
def test_a_mistake_that_tester_and_device_share_is_seen_by_the_witness(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[DirectionAccount], DirectionAccount],
    words: str,
) -> None:
    told = SimulatedAnswer.direction
    monkeypatch.setattr(
        SimulatedAnswer, "direction", lambda *given: change(told(*given))
    )
    (row,) = rows_of(service(), tmp_path, truth=served(), found=served())
    assert row.verdict == "MISSED"
    assert any(words in each for each in row.contradictions)


def test_a_device_is_as_fast_as_in_its_best_overload() -> None:
    """Others can only slow it; of few frames one more or less is no rate."""

    def trial(seen: int, left: int, lasted_ms: int) -> TrialAccount:
        forward, reverse = direction_account(seen, left), direction_account(0, 0)
        return TrialAccount(
            run=1,
            trial_id=1,
            lasted_ns=lasted_ms * 1_000_000,
            forward=forward,
            reverse=reverse,
        )

    whole = trial(6_000, 5_401, 250)
    disturbed = trial(6_000, 5_200, 250)
    not_overloaded = trial(5_500, 5_500, 250)
    short = trial(3_000, 2_900, 124)
    none = trial(0, 0, 0)
    given = [disturbed, disturbed, whole, not_overloaded, short, none]
    assert served_per_s(given, "forward", 400) == RATE
    assert served_per_s([not_overloaded, none], "forward", 400) is None
    assert served_per_s([whole], "reverse", 400) is None


def test_a_device_of_another_rate_than_it_was_told_is_measured_as_it_is(
    tmp_path: Path,
) -> None:
    """The account is the reference, not the setting."""
    slower = served(RATE * 0.9)
    (row,) = rows_of(service(), tmp_path, truth=slower, found=slower)
    assert row.verdict == "within"
    assert row.found == pytest.approx(RATE * 0.98, rel=0.005)
    assert row.expected == pytest.approx(RATE * 1.08, rel=0.001)


def test_a_lower_bound_is_shown_as_one(tmp_path: Path) -> None:
    (row,) = rows_of(service(), tmp_path, truth=served(), found=served())
    found = HEADS.index("found")
    assert not texts(row)[found].startswith(">=")
    bound = row.model_copy(update={"bound": "lower"})
    assert texts(bound)[found] == f">= {texts(row)[found]}"


def test_without_an_account_nothing_is_within(tmp_path: Path) -> None:
    (row,) = rows_of(service(), tmp_path, truth=served(), found=served(), silent=True)
    assert (row.verdict, row.account, row.error) == ("MISSED", None, None)
    assert "the device has no account of it" in row.reasons[0]


def test_a_device_that_loses_all_has_no_throughput(tmp_path: Path) -> None:
    nothing: Dut = lambda _rate, _frames: 0  # noqa: E731
    (row,) = rows_of(service(), tmp_path, truth=nothing, found=nothing)
    assert (row.verdict, row.found) == ("MISSED", None)


def test_a_device_that_was_never_overloaded_tells_no_rate(tmp_path: Path) -> None:
    (row,) = rows_of(service(), tmp_path, truth=perfect(), found=perfect())
    assert row.verdict == "MISSED"
    assert row.account is None
    assert any("lower bound" in reason for reason in row.reasons)


def test_what_left_whole_counts_where_an_overload_slowed_the_device(
    tmp_path: Path,
) -> None:
    """By its own account: a tester that calls a lossy trial lossless gains nothing."""

    def tired(rate_fps: float, frames: int) -> int:
        fit = served()(rate_fps, frames)
        return fit if fit == frames else fit - frames // 20

    (row,) = rows_of(service(), tmp_path / "a", truth=tired, found=tired)
    assert row.verdict == "within"
    assert row.account == pytest.approx(RATE * 1.08, rel=0.005)
    blind = served(1.05 * RATE)
    (row,) = rows_of(service(), tmp_path / "b", truth=tired, found=blind)
    assert row.verdict == "MISSED"
    assert (row.worst_percent or 0) > 3


def test_losses_are_exact_or_missed(tmp_path: Path) -> None:
    losing = point("loss-10000ppm")

    def one_more(rate_fps: float, frames: int) -> int:
        return step(RATE / 2)(rate_fps, frames) - 1

    right = rows_of(losing, tmp_path / "a", truth=step(10_000), found=step(10_000))
    assert (right[0].verdict, right[0].error) == ("within", 0)
    (off,) = rows_of(losing, tmp_path / "b", truth=step(10_000), found=one_more)
    assert (off.verdict, off.error) == ("MISSED", 2)  # one in each direction


def test_no_loss_is_an_account_as_well(tmp_path: Path) -> None:
    (row,) = rows_of(
        point("loss-0ppm"), tmp_path, truth=perfect(), found=lossy(0.000001)
    )
    assert (row.verdict, row.account, row.error) == ("within", 0, 0)


def test_a_delay_is_off_by_what_tester_and_device_state(tmp_path: Path) -> None:
    """The simulated tester states 1.2 us, the device 10 and 20 ns."""
    constant = point("delay-200us")
    rows = rows_of(constant, tmp_path / "a", truth=perfect(), found=perfect())
    assert [row.verdict for row in rows] == ["within", "coarse"]
    assert only(rows, "TL").error == 500
    assert only(rows, "PDV").error == 0
    for name, error_ns in (("late", 2_000), ("early", -300)):
        rows = rows_of(
            constant,
            tmp_path / name,
            truth=perfect(),
            found=perfect(),
            stamps=partial(add, error_ns),
        )
        row = only(rows, "TL")
        assert (row.verdict, row.error) == ("MISSED", error_ns)


@pytest.mark.parametrize(("handover_ns", "verdict"), [(400, "within"), (250, "MISSED")])
def test_what_one_cpu_sees_late_of_another_is_in_no_stamp(
    tmp_path: Path, handover_ns: int, verdict: str
) -> None:
    """A delay is handed over twice, so 2 us are 1.4 stated and two hand-overs."""
    rows = rows_of(
        point("delay-200us"),
        tmp_path,
        truth=perfect(),
        found=perfect(),
        stamps=partial(add, 2_000),
        handover_ns=handover_ns,
    )
    assert only(rows, "TL").verdict == verdict


def test_a_burst_is_that_before_the_first_frame_that_was_dropped(
    tmp_path: Path,
) -> None:
    queue, service_fps = BURSTS[0]
    burst = point(f"buffer-{queue}-{service_fps}")
    truth = buffered(queue, service_fps)
    (row,) = rows_of(burst, tmp_path / "a", truth=truth, found=truth)
    assert (row.verdict, row.error, row.found) == ("within", 0, 511)
    longer = buffered(queue + 50, service_fps)
    (row,) = rows_of(burst, tmp_path / "b", truth=truth, found=longer)
    assert (row.verdict, row.error) == ("MISSED", 50)


def test_a_point_that_ends_in_an_error_is_missed_and_ends_nothing_else(
    tmp_path: Path,
) -> None:
    gone = EngineError("the engine has gone")
    (row,) = rows_of(
        service(), tmp_path, truth=served(), found=served(), troubles={5: gone}
    )
    assert (row.verdict, row.found, row.pairs) == ("MISSED", None, [])
    assert "the engine has gone" in row.reasons[0]


@pytest.mark.parametrize(
    ("lets_through", "verdict"), [(1.1, "within"), (1.5, "MISSED")]
)
def test_with_flow_control_a_classic_tester_reports_what_was_never_sent(
    tmp_path: Path, lets_through: float, verdict: str
) -> None:
    (pairing,) = pairings(EXTENT, ("memory",))
    truth = buffered(pairing.dropping.queue_frames, RATE)
    tester = SimulatedTester(truth, fixed(200_500), {})
    device = SimulatedAnswer(tester, truth, 200_000)
    device.lets_through = lets_through
    with simulated_run(tmp_path, tester, device) as run:
        run.compare(pairing)
        stored = run.end()
    (row,) = stored.flow_control
    assert row.dropping.verdict == "within"
    assert row.found_fps == pytest.approx(RATE * lets_through, rel=0.02)
    assert row.classic_fps == 4 * RATE
    assert row.classic_offered_fps == pytest.approx(RATE * lets_through, rel=0.01)
    assert row.held_back > 0
    assert row.most_fps == pytest.approx(RATE * 1.02 + 4096, rel=0.001)
    assert (row.verdict, stored.missed) == (verdict, int(verdict == "MISSED"))
    assert "80,000" in markdown([stored])


def test_the_whole_grid_has_all_that_is_promised() -> None:
    whole = Extent(quick=False, repeats=3)
    limit = 800_000
    found = list(points(QUANTITIES, PATHS, whole, lambda _traffic: limit))
    names = [(each.path, each.name) for each in found]
    assert len(set(names)) == len(names)
    rates = {
        each.behaviour["forward"]["service"]["rate_fps"]
        for each in found
        if each.quantity == "throughput"
    }
    assert rates == {20_000, 100_000, limit // 2}
    bursts = [round(e.expected["burst"], 1) for e in found if e.quantity == "buffer"]
    assert bursts == [511.2, 1251.2, 8002.0]
    assert {each.path for each in found} == set(PATHS)


def test_the_wire_of_packet_sockets_is_no_faster_than_its_timers_leave_time() -> None:
    whole = Extent(quick=False, repeats=3)
    found = [(p.waiting.path, p.waiting.held_back_fps) for p in pairings(whole, PATHS)]
    assert found == [("memory", None), ("memory", None), ("af_packet", 20_000)]


def test_an_unknown_limit_leaves_out_no_other_rate() -> None:
    found = points(("throughput",), ("memory",), EXTENT, lambda _traffic: None)
    assert [each.name for each in found] == ["throughput-20000-ipv4-64-forward"]


def test_stored_ones_are_read_again_and_shown_as_markdown(tmp_path: Path) -> None:
    wrong = served(RATE * 0.97)
    rows_of(service(), tmp_path, truth=served(), found=wrong)
    stored = load_calibration(tmp_path)
    text = markdown([stored, stored])
    assert text.count("| MISSED |") == 2
    assert "Run 2" in text


@pytest.mark.parametrize("content", ["", "{}", '{"schema_version": 9}'])
def test_a_file_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "calibration.json").write_text(content)
    with pytest.raises(InputError, match="no calibration of this version"):
        load_calibration(tmp_path)


def test_a_directory_that_holds_something_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    with pytest.raises(InputError, match="other files"):
        calibrate(tmp_path, (), (), EXTENT, None, print)  # type: ignore[arg-type]
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
