"""Many testbeds on a terminal at once, from events."""

from __future__ import annotations

from pathlib import Path

from planning import cell
from stored_samples import results_file, trial_record
from terminal_screen import Clock, TerminalScreen

from dutperf.cli.console import PatientConsole
from dutperf.cli.terminal import ManyState, Terminal
from dutperf.model.cell import Cell
from dutperf.procedures.events import (
    At,
    CellMeasured,
    CellStarted,
    Event,
    RunStarted,
    TestbedState,
    TrialFinished,
    TrialMoved,
    TrialStarted,
)
from dutperf.protocol.trial_messages import TrialProgress

RESULT = results_file().cells[0]
SENDING = TrialProgress(
    trial_id=1, phase="running", elapsed_ns=3_100_000_000, sent=1, received=1
)


def at(testbed: str) -> Cell:
    name = f"{cell().id}@{testbed}"
    return cell().model_copy(update={"id": name, "testbed": testbed})


def run_of(*testbeds: str) -> RunStarted:
    return RunStarted(Path("out"), [at(testbed) for testbed in testbeds])


def told(state: ManyState, *events: Event) -> list[str]:
    for event in events:
        state.on_event(event)
    return [line.plain for line in state.lines(200)]


def trial_of(testbed: str) -> TrialStarted:
    return TrialStarted(1, at(testbed).id, 1, 1, 250_000, 10.0)


def test_those_that_measure_stand_first() -> None:
    state = ManyState(Clock())
    title, *rows = told(
        state,
        run_of("a", "bench-b", "c"),
        At("a", TestbedState("away")),
        At("bench-b", TestbedState("queued")),
        At("bench-b", CellStarted(at("bench-b"), 2, 3)),
        At("bench-b", trial_of("bench-b")),
        At("bench-b", TrialMoved(SENDING)),
    )
    assert title.startswith("[0/3] 0 s so far, about ")
    assert "testbeds: 1 away, 1 measuring, 1 waiting" in title
    busy = f"  bench-b  {cell().id}  250,000 fps running, 3.1 of 10.0 s"
    assert rows == [
        busy[:79],
        "  a        away",
        "  c        waiting",
    ]


def test_between_two_trials_it_shows_how_the_last_one_ended() -> None:
    state = ManyState(Clock())
    record = trial_record()
    rows = told(
        state,
        run_of("a"),
        At("a", CellStarted(at("a"), 1, 1)),
        At("a", trial_of("a")),
        At("a", TrialFinished(record)),
    )
    assert rows[1].endswith(f"{record.load_fps:,} fps {record.result.verdict.kind}")


def test_what_is_done_is_counted_and_no_longer_to_go() -> None:
    done = RESULT.model_copy(update={"id": at("a").id})
    title = told(
        ManyState(Clock()),
        run_of("a"),
        At("a", CellStarted(at("a"), 1, 1)),
        At("a", CellMeasured(done)),
        At("a", TestbedState("done")),
    )[0]
    assert title == "[1/1] 0 s so far, almost done; testbeds: 1 done"


def test_hundreds_take_a_dozen_lines() -> None:
    lines = told(ManyState(Clock()), run_of(*(f"t{n}" for n in range(300))))
    assert len(lines) == 12
    assert lines[-1] == "  and 290 more"


def events_of_two() -> list[Event]:
    return [
        run_of("a", "b"),
        At("a", CellStarted(at("a"), 1, 2)),
        At("b", CellStarted(at("b"), 2, 2)),
        At("b", trial_of("b")),
        At("b", TrialFinished(trial_record())),
        At("a", CellMeasured(RESULT)),
    ]


def test_a_terminal_shows_all_of_them_and_what_has_ended() -> None:
    screen = TerminalScreen()
    with Terminal(screen) as terminal:
        for event in events_of_two():
            terminal.on_event(event)
    assert "testbeds: 2 measuring" in screen.sent
    assert f"[1/2] {RESULT.id}" in screen.sent
    assert "b: trial" not in screen.sent


def test_lines_say_which_testbed_they_are_of(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("w") as file:
        terminal = Terminal(PatientConsole(file=file, width=200))
        for event in events_of_two():
            terminal.on_event(event)
    lines = log.read_text().splitlines()
    assert lines[0] == f"a: [1/2] {at('a').id}"
    assert lines[1] == f"b: [2/2] {at('b').id}"
    assert lines[2].startswith("  b: trial 1: ")
    assert len(lines) == 3
