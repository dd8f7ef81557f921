"""``dutperf stream``: its view, its lines, and sessions on a pseudo-terminal."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import simulated_program
from planning import Recording, cell
from simulated_program import PLACE

import dutperf
from dutperf.cli import app
from dutperf.cli.stream_view import Screen, lines, piece_line, summary_lines
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.trials import Ask
from dutperf.protocol.result_messages import IcmpMessages, TrialResult
from dutperf.protocol.trial_messages import TrialProgress, TrialRequest
from dutperf.run.stream_counts import StreamCounts
from dutperf.simulation.fake_engine import FakeEngine, lossy, perfect

PATIENCE_S = 60
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
SCREEN = Screen(
    frames="ip4-64-both",
    place="simulated",
    limit=MaxRate(1_000_000, "set"),
    rate_fps=11_000,
    running_fps=10_000,
    running_s=1.0,
    elapsed_s=12.0,
    progress=TrialProgress(
        trial_id=1, phase="running", elapsed_ns=500_000_000, sent=10_000, received=9_990
    ),
)


def counted(engine: FakeEngine, *rates: int, **keys: object) -> StreamCounts:
    counts = StreamCounts()
    runner = Recording(engine).runner
    for rate_fps in rates:
        counts.add(runner.run(Ask(cell(**keys), rate_fps, continues=True, attempts=1)))
    return counts


def told(screen: Screen, counts: StreamCounts, columns: int) -> list[str]:
    return [line.plain for line in lines(screen, counts, columns)]


def row(shown: list[str], label: str) -> list[str]:
    (found,) = [line for line in shown if line.startswith(label)]
    return found[len(label) :].split()


@pytest.mark.parametrize("columns", [80, 160])
def test_each_direction_has_its_last_piece_and_its_total(columns: int) -> None:
    shown = told(SCREEN, counted(FakeEngine(lossy(10_000)), 10_000, 10_000), columns)
    assert max(map(len, shown)) <= columns
    assert len(shown) <= 23
    assert shown[0].startswith("stream ip4-64-both at simulated")
    assert shown[1].startswith("11,000 fps in each direction, from the next piece")
    assert row(shown, "sent")[:4] == ["100,000", "200,000"] * 2
    assert row(shown, " by the tester")[:4] == ["0"] * 4
    last, total = (int(n.replace(",", "")) for n in row(shown, "lost")[:2])
    assert total > last > 0
    assert any("10,000 sent, 9,990 back" in line for line in shown)
    rates = [line for line in shown if "10,000 fps 20 s: lost" in line]
    assert len(rates) == (columns == 160)


def test_the_device_loses() -> None:
    shown = told(SCREEN, counted(FakeEngine(lossy(10_000)), 10_000), 80)
    (device,) = [line for line in shown if line.startswith("device: ")]
    assert re.fullmatch(r"device: loses forward [\d.]+ %, reverse [\d.]+ %", device)
    assert any(line.startswith("tester: keeps up") for line in shown)


def test_the_tester_is_too_slow() -> None:
    engine = FakeEngine(perfect(), tester_limit_fps=5000)
    shown = told(SCREEN, counted(engine, 10_000), 80)
    assert "tester: the simulated tester is not that fast" in shown


class Answering(FakeEngine):
    """One frame of ten is foreign: the device says something."""

    def measure(self, trial: TrialRequest, *_progress: object) -> TrialResult:
        result = super().measure(trial)
        left, right = result.ports
        said = IcmpMessages(ip_version=6, type=2, code=0, frames=1000)
        heard = right.model_copy(update={"foreign": 1234, "icmp": [said]})
        return result.model_copy(update={"ports": [left, heard]})


def test_what_the_device_answers_is_told_and_added_up() -> None:
    counts = counted(Answering(perfect()), 10_000, 10_000)
    assert row(told(SCREEN, counts, 80), "foreign frames")[:2] == ["1,234", "2,468"]
    line = piece_line(1.0, counts).plain
    assert "1,234 foreign (of these 1,000 ICMPv6 packet too big)" in line
    summary = "\n".join(line.plain for line in summary_lines("x", 20.5, counts))
    assert "2,468 foreign (of these 2,000 ICMPv6 packet too big)" in summary


def test_one_direction_has_two_columns() -> None:
    counts = counted(FakeEngine(perfect()), 10_000, direction=["forward"])
    assert row(told(SCREEN, counts, 80), "sent") == ["100,000", "100,000"]


def test_a_low_terminal_has_what_matters_and_the_begin_of_the_table() -> None:
    counts = counted(FakeEngine(perfect()), 10_000)
    shown = [line.plain for line in lines(SCREEN, counts, 80, 12)]
    assert len(shown) == 12
    assert shown[-4].startswith("device: ")
    assert row(shown, "sent")[:2] == ["100,000", "100,000"]


@pytest.mark.parametrize("columns", [1, 20, 40, 80, 160, 400])
def test_no_line_is_longer_than_the_terminal(columns: int) -> None:
    asked = replace(SCREEN, frames="x" * 200, said="y" * 200, duration_s=60.0)
    for counts in (StreamCounts(), counted(FakeEngine(perfect()), 10_000)):
        for helps in (False, True):
            shown = told(replace(asked, helps=helps), counts, columns)
            assert max(map(len, shown)) <= columns


def test_what_is_typed_paused_or_about_to_end_is_seen() -> None:
    counts = StreamCounts()
    typed = told(replace(SCREEN, typed="1.5"), counts, 80)
    assert typed[-1] == "rate: 1.5_  Enter, or Esc"
    assert told(SCREEN, counts, 80)[-1].endswith("q end")
    assert told(replace(SCREEN, said="no"), counts, 80)[-1] == "no"
    assert "PAUSED" in told(replace(SCREEN, paused=True), counts, 80)[1]
    assert "ENDING" in told(replace(SCREEN, ending=True), counts, 80)[1]
    idle = replace(SCREEN, running_fps=None, progress=None)
    assert "nothing is sent" in told(idle, counts, 80)


def test_lines_for_a_piece_and_for_all() -> None:
    counts = counted(FakeEngine(lossy(10_000)), 10_000, 20_000)
    line = piece_line(2.25, counts).plain
    assert line.startswith("    2.2 s  20,000 fps: fail; forward 200,000 sent, ")
    summary = "\n".join(line.plain for line in summary_lines("x", 20.5, counts))
    assert "sent for 20 s of 20 s, in 2 pieces" in summary
    assert "forward 300,000 sent" in summary
    assert "20,000 fps 10 s: lost" in summary


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ((), "--duration is missing"),
        (("--plain",), "--duration is missing"),
        (("--duration", "1", "--rate", "fast"), "'fast' is no rate"),
        (("--duration", "1", "--max-rate", "99"), "is more than --max-rate"),
    ],
)
def test_bad_input(
    capsys: pytest.CaptureFixture[str], options: tuple[str, ...], message: str
) -> None:
    given = ["stream", "--lab", "known-answer", "--rate", "100", *options]
    assert app.run(given) == 2
    assert message in capsys.readouterr().err


@pytest.fixture
def testbed(tmp_path: Path) -> Path:
    path = tmp_path / "testbed.yaml"
    held = PLACE.removeprefix("testbed:\n")
    text = "\n".join(line.removeprefix("  ") for line in held.splitlines())
    path.write_text(f"{text}\nmax_rate_fps: 200000\n", "utf-8")
    return path


def test_without_a_keyboard_there_is_a_line_for_each_piece(
    testbed: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--rate", "10k", "--duration", "0.3", "--trial-duration", "0.1", "--json"]
    with simulated_program.simulated():
        assert app.run(["stream", str(testbed), *given]) == 0
    out, err = capsys.readouterr()
    summary = json.loads(out)
    assert summary["schema_version"] == 1
    assert summary["frames"] == "ip4-64-both"
    sent = [
        int(n.replace(",", "")) for n in re.findall(r"forward ([\d,]+) sent, 0", err)
    ]
    assert sent[0] == 1000
    assert len(sent) == summary["pieces"]
    assert sum(sent) == summary["directions"][0]["sent"]


class Session:
    """The program on a terminal of its own; a simulated piece takes 20 ms."""

    def __init__(self, testbed: Path, *options: str) -> None:
        self.controller, self.terminal = pty.openpty()
        termios.tcsetwinsize(self.terminal, (40, 80))
        self.before = termios.tcgetattr(self.terminal)
        here = Path(simulated_program.__file__)
        paths = [str(Path(dutperf.__file__).parents[1]), str(here.parent)]
        given = ["stream", str(testbed), "--rate", "10k", *options]
        self.process = subprocess.Popen(
            [sys.executable, here, *given],
            stdin=self.terminal,
            stdout=subprocess.PIPE,
            stderr=self.terminal,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths), "TERM": "xterm"},
            preexec_fn=_own_terminal,  # noqa: PLW1509 - nothing else runs here
        )
        self.seen = ""

    def press(self, keys: str) -> None:
        os.write(self.controller, keys.encode())

    def await_(self, text: str) -> None:
        """Until the terminal was sent ``text`` after what was awaited before."""
        end_s = time.monotonic() + PATIENCE_S
        while text not in self.seen:
            assert time.monotonic() < end_s, self.seen[-3000:]
            if select.select([self.controller], [], [], 0.1)[0]:
                self._read()
        self.seen = self.seen.partition(text)[2]

    def ended(self) -> tuple[int, str]:
        """The exit code, and what stands on standard output."""
        while self.process.poll() is None:
            if select.select([self.controller], [], [], 0.1)[0]:
                self._read()
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        assert termios.tcgetattr(self.terminal) == self.before
        return self.process.returncode, out

    def _read(self) -> None:
        """What is seen, without colours and moves."""
        sent = os.read(self.controller, 65536).decode(errors="replace")
        self.seen = CONTROL.sub("", self.seen + sent)


def _own_terminal() -> None:
    import fcntl

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def session(testbed: Path) -> Iterator[Session]:
    running = Session(testbed, "--json")
    try:
        yield running
    finally:
        running.process.kill()
        running.process.wait()
        for descriptor in (running.controller, running.terminal):
            with contextlib.suppress(OSError):
                os.close(descriptor)


def test_a_session_by_keys(session: Session) -> None:
    session.await_("keeps up")  # what came before is spoilt in the simulation
    session.press("+")
    session.await_("11,000 fps")
    session.press("\x1b[B")
    session.await_("10,000 fps in each direction")
    session.press("20k")
    session.await_("20k_")
    session.press("\r")
    session.await_("20,000 fps in each direction")
    session.press("9M\r")
    session.await_("at most 200,000 fps")
    session.press(" ")
    session.await_("nothing is sent")
    session.press("?")
    session.await_("show or hide these lines")
    session.press("\x1a")
    session.await_("Ctrl-Z would leave the stream alone")
    session.press(" 0")
    session.await_("cleared")
    session.await_("this piece: 200,000 fps")  # it goes on, and ends after this one
    session.press("q")
    code, out = session.ended()
    assert code == 0
    rates = [each["rate_fps"] for each in json.loads(out)["rates"]]
    assert rates[0] == 10_000
    assert rates[-1] == 200_000
    assert "Traceback" not in session.seen


@pytest.mark.parametrize("how", ["key", "SIGTERM"])
def test_the_terminal_is_given_back_however_it_ends(session: Session, how: str) -> None:
    session.await_("keeps up")
    if how == "key":
        session.press("\x03")
    else:
        session.process.send_signal(signal.Signals[how])
    code, out = session.ended()
    assert code == 0
    assert json.loads(out)["pieces"] >= 1
    assert "Traceback" not in session.seen
