"""The live view of a running cell, from the events of runs on a FakeEngine."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hostile import NASTY
from planning import Recording, Run, cell, spoilt
from planning import campaign as campaign_of
from planning import spec as spec_of
from terminal_screen import Clock, TerminalScreen

from dutperf.cli.live_view import WIDTH, CellState, LiveView, bar
from dutperf.cli.terminal import Terminal
from dutperf.procedures.back_to_back import measure_back_to_back
from dutperf.procedures.events import (
    CellStarted,
    Event,
    IntervalNarrowed,
    RunStarted,
    TrialFinished,
    TrialMoved,
    TrialStarted,
)
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.throughput import measure_throughput
from dutperf.protocol.trial_messages import TrialProgress
from dutperf.simulation.fake_engine import FakeEngine, step
from dutperf.visible import visible

LIMIT = MaxRate(1_000_000, "set")
RUNNING = TrialStarted(99, "cell", 1, 1, 500_000, 60.0)
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")


def searched(engine: FakeEngine, **keys: object) -> tuple[CellStarted, list[Event]]:
    asked = cell(**{"resolution": "1%", "search": "classic"} | keys)
    recording = Recording(engine)
    measure_throughput(recording.runner, asked, LIMIT)
    return CellStarted(asked, 1, 2), recording.events


def told(state: CellState, width: int = 79, **how: bool) -> str:
    return "\n".join(line.plain for line in state.lines(width, **how))


def after(*events: Event, clock: Callable[[], float] | None = None) -> CellState:
    state = CellState(clock or Clock())
    for event in events:
        state.on_event(event)
    return state


def test_the_interval_closes_in_between_what_passed_and_what_failed() -> None:
    started, events = searched(FakeEngine(step(300_000)))
    told_of = {}
    state = after(started)
    for event in events:
        state.on_event(event)
        if isinstance(event, IntervalNarrowed) and event.lower_fps:
            told_of[event.upper_fps - event.lower_fps] = told(state)
    widths = sorted(told_of, reverse=True)
    assert widths[0] == 250_000
    first, last = told_of[widths[0]], told_of[widths[-1]]
    assert "highest passed 250,000, lowest failed 500,000 fps: 50 % apart" in first
    assert first.count("█") > last.count("█") > 0


def test_the_bar_shows_where_the_result_lies() -> None:
    assert bar(0, 1, 10).plain == "█" * 10
    assert bar(0.5, 0.75, 8).plain == "────██··"
    assert bar(0.5, 0.75, 8, ascii_only=True).plain == "----##.."
    assert bar(0.3, 0.3001, 10).plain.count("█") == 1
    for lower, upper, width in ((1, 1, 10), (0, 0, 10), (0.99, 1, 3), (0, 1, -5)):
        found = bar(lower, upper, width).plain
        assert len(found) == max(width, 1)
        assert "█" in found


def test_trials_are_told_with_verdict_and_loss() -> None:
    started, events = searched(FakeEngine(step(300_000)))
    first = next(e for e in events if isinstance(e, TrialFinished))
    assert re.search(
        r"trial 1  +1,000,000 fps  fail +lost 70 %", told(after(started, first))
    )
    lines = told(after(started, *events)).splitlines()
    assert any(re.search(r"fps  pass +nothing lost$", line) for line in lines)
    assert sum("trial" in line for line in lines) == 5


def test_an_invalid_trial_tells_why_and_is_no_failed_rate() -> None:
    engine = FakeEngine(step(300_000), troubles=spoilt("link_changed", 1))
    started, events = searched(engine)
    first = next(e for e in events if isinstance(e, TrialFinished))
    text = told(after(started, first, IntervalNarrowed(0, 1_000_000)))
    assert re.search(r"1,000,000 fps  invalid +simulated", text)
    assert "lowest failed 1,000,000" not in text


def test_a_maximum_that_nobody_tried_is_not_called_failed() -> None:
    started = CellStarted(cell(), 1, 1)
    text = told(after(started, IntervalNarrowed(400_000, 1_000_000)))
    assert "highest passed 400,000, looking below 1,000,000 fps" in text
    text = told(after(started, IntervalNarrowed(0, 1_000_000)))
    assert "none passed yet, looking below" in text
    assert "apart" not in told(after(started, IntervalNarrowed(0, 0)))


def test_each_repeat_begins_with_the_whole_interval() -> None:
    started, events = searched(FakeEngine(step(300_000)), repeats=2)
    state = after(started, *events)
    assert "repeat 2" in told(state)
    state.on_event(replace(RUNNING, repeat=3))
    assert "apart" not in told(state)
    assert "repeat 3" in told(state)


def test_bursts_are_frames_and_not_rates() -> None:
    asked = cell(procedure="back-to-back", throughput_fps=1, longest_burst_s=0.01)
    recording = Recording(FakeEngine(lambda _rate, frames: min(frames, 3000)))
    measure_back_to_back(recording.runner, asked, LIMIT)
    text = told(after(CellStarted(asked, 1, 1, safe_fps=10), *recording.events))
    assert "frames: " in text
    assert " fps" not in text
    assert "passport" not in text


def test_the_share_of_what_is_safe_for_the_tester_is_told_where_it_is_known() -> None:
    started, events = searched(FakeEngine(step(300_000)))
    assert "passport" not in told(after(started, *events))
    first = next(e for e in events if isinstance(e, TrialFinished))
    known = replace(started, safe_fps=2_000_000)
    assert "passport 50 %" in told(after(known, first))


def test_shadows_and_drops_are_told() -> None:
    started, events = searched(FakeEngine(step(300_000)))
    first = next(e for e in events if isinstance(e, TrialFinished)).record
    ports = [
        port.model_copy(update={"interface_drops": 7}) for port in first.result.ports
    ]
    result = first.result.model_copy(update={"ports": ports})
    record = first.model_copy(update={"result": result})
    assert "tester dropped 14" in told(after(started, TrialFinished(record)))


def test_time_to_go_is_that_of_the_cell_and_of_all_cells(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", FakeEngine(step(300_000)))
    run(campaign_of(spec_of(ip=[4, 6], frame_size=[128], search="classic")))
    begin = next(e for e in run.events if isinstance(e, RunStarted))
    cells = [e for e in run.events if isinstance(e, CellStarted)]
    assert [each.cell for each in cells] == list(begin.cells)
    clock = Clock()
    state = after(begin, cells[0], clock=clock)
    whole = told(state)
    found = re.search(
        r"this one: 0 s so far, about (\d+) min to go; all: about (\d+) min to",
        whole,
    )
    assert found
    assert int(found[2]) == pytest.approx(2 * int(found[1]), abs=1)
    clock.now_s += 10_000
    assert re.search("almost done; all: about [0-9]+ min to go", told(state))
    state.on_event(cells[1])
    assert "; all:" not in told(state)


def minutes_to_go(state: CellState) -> int:
    found = re.search(r"so far, about (\d+) min to go", told(state))
    assert found, told(state)
    return int(found[1])


def test_time_to_go_is_corrected_by_what_trials_took(tmp_path: Path) -> None:
    run = Run(tmp_path / "run", FakeEngine(step(300_000)))
    run(campaign_of(spec_of(ip=[4, 6], frame_size=[128], search="classic")))
    clock = Clock()
    state = after(clock=clock)
    expected = None
    for event in run.events:
        if isinstance(event, TrialFinished):
            clock.now_s += 240  # the machine takes four times what a trial lasts
        state.on_event(event)
        if isinstance(event, CellStarted):
            if expected is not None:  # the second cell is expected to take as long
                assert minutes_to_go(state) > 2 * expected
                return
            expected = minutes_to_go(state)
    pytest.fail("there is no second cell")


def test_a_search_that_goes_on_for_longer_counts_its_halvings() -> None:
    started, events = searched(FakeEngine(step(300_000)), resolution="0.1%")
    clock = Clock()
    begin = RunStarted(Path("run"), (started.cell,))
    state = after(begin, started, clock=clock)
    record = next(e for e in events if isinstance(e, TrialFinished))
    for _ in range(100):  # far more trials than were expected
        clock.now_s += 60
        state.on_event(record)
    state.on_event(IntervalNarrowed(100_000, 200_000))
    assert minutes_to_go(state) == 9  # 2^9 steps of 0.1 % in between
    state.on_event(IntervalNarrowed(199_000, 200_000))
    assert minutes_to_go(state) == 3


def test_before_the_first_cell_there_is_a_sign(tmp_path: Path) -> None:
    started = CellStarted(cell(), 1, 1)
    clock = Clock()
    state = after(RunStarted(tmp_path, (started.cell,)), clock=clock)
    clock.now_s += 30
    assert re.match(
        "  getting ready: 30 s so far; then all test cases: about", told(state)
    )


def test_without_an_estimate_only_the_time_so_far_is_told() -> None:
    assert told(after(CellStarted(cell(), 1, 1))).endswith("0 s so far")


@pytest.mark.parametrize("columns", [10, 40, 80, 160])
def test_no_line_is_wider_than_the_terminal_or_than_79(columns: int) -> None:
    started, events = searched(FakeEngine(step(300_000)))
    named = replace(started, cell=started.cell.model_copy(update={"series": NASTY * 3}))
    state = after(named, *events, RUNNING)
    lines = list(state.lines(columns))
    assert 5 < len(lines) < 12
    assert max(len(line.plain) for line in lines) <= min(columns, WIDTH)
    assert all(visible(line.plain) == line.plain for line in lines)


def test_a_terminal_without_unicode_gets_ascii() -> None:
    started, events = searched(FakeEngine(step(300_000)))
    screen = TerminalScreen(40, encoding="iso-8859-1")
    view = LiveView(screen, Clock())
    for event in (started, *events[:6]):
        view.on_event(event)
    view.stop()
    assert "##" in screen.sent
    assert screen.sent.isascii()


def drawn(screen: TerminalScreen) -> int:
    """How often the view was drawn: each time begins with its title."""
    return screen.sent.count("throughput-ip4-64-both")


def test_it_is_drawn_at_most_four_times_in_a_second() -> None:
    started, events = searched(FakeEngine(step(300_000)))
    clock, screen = Clock(), TerminalScreen()
    view = LiveView(screen, clock)
    for event in (started, *events * 50):
        view.on_event(event)
    assert drawn(screen) == 4
    clock.now_s += 1
    view.on_event(RUNNING)
    assert drawn(screen) == 5


def test_a_running_trial_is_drawn_once_a_second_and_by_no_thread() -> None:
    clock, screen = Clock(), TerminalScreen()
    view = LiveView(screen, clock)
    view.on_event(CellStarted(cell(), 1, 1))
    clock.now_s += 1
    view.on_event(RUNNING)
    before = drawn(screen)
    for tenth in range(1, 41):
        clock.now_s += 0.25
        elapsed_ns = tenth * 250_000_000
        moved = TrialProgress(
            trial_id=1, phase="running", elapsed_ns=elapsed_ns, sent=0, received=0
        )
        view.on_event(TrialMoved(moved))
    assert drawn(screen) - before == 10
    assert "running, 10.0 of 60.0 s" in screen.sent


def test_the_cursor_stays_and_nothing_of_the_view_is_left() -> None:
    screen = TerminalScreen()
    view = LiveView(screen, Clock())
    view.on_event(CellStarted(cell(), 1, 1))
    assert screen.sent.rindex("\x1b[?25h") > screen.sent.rindex("\x1b[?25l")
    view.stop()
    view.stop()
    assert screen.sent.rindex("\x1b[?25h") > screen.sent.rindex("\x1b[?25l")
    assert screen.sent.endswith("\x1b[2K")


def shown_by(terminal: Terminal, screen: TerminalScreen, run: Run) -> str:
    for event in run.events:
        terminal.on_event(event)
    terminal.stop()
    return CONTROL.sub("", screen.sent)


def test_lines_stand_beside_the_view_only_where_they_are_asked_for(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path / "run", FakeEngine(step(300_000)))
    run(campaign_of(spec_of(ip=[4, 6], frame_size=[128], search="classic")))
    screens = [TerminalScreen(160) for _ in range(3)]
    alone, beside, plain = (
        shown_by(Terminal(screen, **how), screen, run)
        for screen, how in zip(
            screens, ({}, {"verbose": True}, {"plain": True}), strict=True
        )
    )
    assert "trial 1: " not in alone
    assert "[1/2] throughput-ip4-128-both-classic: 299,804 fps per direction" in alone
    line = re.compile(r"  trial \d+: 1,000,000 fps.*: fail \(")
    assert not line.search(alone)
    assert line.search(beside)
    assert line.search(plain)
    assert "so far" in alone
    assert "so far" in beside
    assert "so far" not in plain
    assert "\x1b[2K" not in screens[2].sent


def test_after_a_terminal_was_made_narrower_the_wrapped_lines_are_erased() -> None:
    started, events = searched(FakeEngine(step(300_000)))
    screen, clock = TerminalScreen(80), Clock()
    view = LiveView(screen, clock)
    for event in (started, *events[:3]):
        view.on_event(event)
    before = len(screen.sent)
    screen.width = 40
    clock.now_s += 2
    view.on_event(RUNNING)
    up = screen.sent[before:].count("\x1b[1A")
    lines_before = screen.sent[:before].rsplit("\x1b[1A", 1)[-1].count("\n")
    assert up > lines_before
