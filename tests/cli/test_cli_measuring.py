"""The command line on a FakeEngine: exit codes, what goes where, and messages."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dutperf.api import places
from dutperf.cli import app
from dutperf.config import Testbed
from dutperf.config.campaign import LabKeys
from dutperf.errors import EngineError
from dutperf.protocol.result_messages import Reason, ReasonCode, TrialResult, Verdict
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import ResultsFile
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.simulation.fake_engine import FakeEngine, perfect, step, without_checksum

TESTBED = """\
name: simulated
left:
  port: {interface: left}
  ipv4: {address: 198.18.0.2, gateway: 198.18.0.1}
right:
  port: {interface: right}
  ipv4: {address: 198.19.0.2, gateway: 198.19.0.1}
"""
QUICK = ["--restabilise-wait", "0", "--max-rate", "1000000", "--output", "run"]
CLASSIC = ["--search", "classic"]

Run = Callable[..., int]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("testbed.yaml").write_text(TESTBED)
    return tmp_path


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command with an engine that simulates."""

    def run_on(engine: FakeEngine, *arguments: str) -> int:
        def prepare(_testbed: Testbed, _notify: Notify) -> EngineStarter:
            return lambda _log_path: contextlib.nullcontext(engine)

        monkeypatch.setattr(places, "prepare_engine", prepare)
        return app.run(list(arguments))

    return run_on


def throughput(run: Run, engine: FakeEngine, *more: str) -> int:
    return run(engine, "throughput", "testbed.yaml", *QUICK, *more)


def test_a_measurement_ends_with_a_table_and_the_reports_path(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    code = throughput(run, FakeEngine(step(250_000)), "--resolution", "1fps")
    out = capsys.readouterr().out
    assert code == 0
    assert "250,000" in out
    assert "500,000" in out
    assert out.splitlines()[-1] == "run/report.html"
    assert Path("run/report.html").exists()


def test_a_throughput_that_damaged_frames_limit_has_two_figures(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the table, in words, in JSON, and in the report with each trial's kinds."""
    damaging = ["--trial-duration", "10", "--resolution", "1fps", *CLASSIC]
    engine = FakeEngine(step(30_000), damages=without_checksum(65_535))
    assert throughput(run, engine, *damaging) == 0
    captured = capsys.readouterr()
    second = "damaged frames counted as received"
    assert f"0 damaged: 6,553 fps; {second}: 30,000 fps; forward, 1 in" in captured.out
    assert "(RFC 8200 8.1)" in captured.out
    lines = captured.out.splitlines()
    place = next(n for n, line in enumerate(lines) if "│" in line and "6,553" in line)
    assert "30,000" in lines[place + 1]
    assert f", {second}: 3" in captured.err
    page = Path("run/report.html").read_text()
    assert page.count(second) > 2
    assert "without a UDP checksum" in page
    engine = FakeEngine(step(30_000), damages=without_checksum(65_535))
    throughput(run, engine, *damaging, "--json", "--output", "other")
    damage = ResultsFile.model_validate_json(capsys.readouterr().out).cells[0].damage
    assert damage is not None
    assert damage.value == 30_000


def test_deviations_are_counted_and_on_request_listed(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    told = "deviation from RFC 2544 24 (SHOULD): trial duration of at least 60 s: 1 s"
    throughput(run, FakeEngine(step(250_000)), "--trial-duration", "1")
    out = capsys.readouterr().out
    assert "1 repeat: exploratory, not RFC results; --deviations lists 2" in out
    assert told not in out
    more = ("--trial-duration", "1", "--deviations", "--output", "other")
    throughput(run, FakeEngine(step(250_000)), *more)
    assert told in capsys.readouterr().out


def test_a_run_ends_with_few_sentences_and_the_reports_path(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    throughput(run, FakeEngine(step(250_000)), "--quick", "--ip", "4")
    lines = capsys.readouterr().out.splitlines()
    below = lines[max(n for n, line in enumerate(lines) if line.startswith("└")) + 1 :]
    assert 2 <= len(below) <= 6
    assert below[-1] == "run/report.html"
    assert below[0].startswith("throughput-ip4-64-both: ")


def test_json_is_one_object_without_trials_and_nothing_else(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    code = throughput(run, FakeEngine(step(250_000)), "--json")
    captured = capsys.readouterr()
    data = json.loads(captured.out)
    results = ResultsFile.model_validate(data)
    assert code == 0
    assert "trials" not in data
    assert (results.procedure, results.complete) == ("throughput", True)
    assert results.cells[0].verdict == "pass"
    assert "trial 2: 1,000,000 fps: fail" in captured.err


def test_progress_is_one_line_a_trial_with_the_interval_left(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    throughput(run, FakeEngine(step(1000)), "--resolution", "400000", *CLASSIC)
    lines = capsys.readouterr().err.splitlines()
    assert "[1/1] throughput-ip4-64-both-classic" in lines
    told = [line for line in lines if line.startswith("  trial ")]
    assert told[0] == "  trial 1, first frames: 1,000 fps for 0.1 s: pass"
    assert told[1].startswith("  trial 2: 1,000,000 fps: fail (")
    assert told[2].startswith("  trial 3: 500,000 fps in 0..1,000,000: fail (")
    assert told[2].endswith(", ended early")


def test_each_repeat_starts_with_the_whole_interval(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    throughput(run, FakeEngine(perfect()), "--repeats", "2", *CLASSIC)
    told = [s for s in capsys.readouterr().err.splitlines() if "trial" in s]
    assert told[1:] == [
        "  trial 2: 1,000,000 fps: pass",
        "  trial 3: 1,000,000 fps: pass",
    ]


def test_a_line_has_one_reason_and_counts_the_others(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    class Chatty(FakeEngine):
        def measure(self, trial: TrialRequest, *_progress: object) -> TrialResult:
            result = super().measure(trial)
            reasons = [Reason(code="link_down", message=f"[{n}]") for n in range(3)]
            verdict = Verdict(kind="invalid", reasons=reasons)
            return result.model_copy(update={"verdict": verdict})

    throughput(run, Chatty(perfect()))
    assert "invalid ([0]; and 2 more)" in capsys.readouterr().err


def test_a_lower_bound_is_a_result(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    code = throughput(run, FakeEngine(perfect(), tester_limit_fps=300_000))
    out = capsys.readouterr().out
    assert code == 0
    assert ">= " in out
    assert "measured" in out
    assert (
        "throughput-ip4-64-both: a lower bound: the tester could not offer more" in out
    )
    code = throughput(
        run,
        FakeEngine(perfect(), tester_limit_fps=300_000),
        *("--json", "--output", "json"),
    )
    [cell] = json.loads(capsys.readouterr().out)["cells"]
    assert (code, cell["bound"], cell["bound_cause"]) == (0, "lower", "tester")


def test_a_device_that_sends_pause_frames_is_told_with_its_counters(
    run: Run, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    slow = FakeEngine(
        perfect(), tester_limit_fps=300_000, held_back=True, pause_frames=7
    )
    assert throughput(run, slow, "--output", str(tmp_path / "paused")) == 0
    assert "something behind a port stopped the tester" in capsys.readouterr().out
    report = (tmp_path / "paused" / "report.html").read_text("utf-8")
    assert "Ethernet pause frames" in report
    assert re.search(r"left rx_xoff_packets \d+, right rx_xoff_packets \d+", report)


def test_who_asks_for_exact_values_gets_1_for_a_lower_bound(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = FakeEngine(perfect(), tester_limit_fps=300_000)
    assert throughput(run, slow, "--exact") == 1
    told = "--exact: only a lower bound: throughput-ip4-64-both"
    assert told in capsys.readouterr().err
    exact = FakeEngine(step(250_000))
    assert throughput(run, exact, "--exact", "--output", "exact") == 0
    assert "--exact" not in capsys.readouterr().err


def test_an_invalid_measurement_exits_with_1_and_says_why(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    troubles: dict[int, ReasonCode] = dict.fromkeys(range(1, 500), "receiver_overflow")
    code = throughput(run, FakeEngine(perfect(), troubles=troubles))
    out = capsys.readouterr().out
    assert code == 1
    assert "throughput-ip4-64-both: invalid: trials stayed invalid when" in out


def test_frame_loss_shows_its_curve(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(
        FakeEngine(step(500_000)),
        *("frame-loss", "testbed.yaml", *QUICK, "--load", "100", "--load", "50"),
    )
    out = capsys.readouterr().out
    assert code == 0
    rows = [line.split("│") for line in out.splitlines() if "1,000,000" in line]
    assert any(
        row[1].strip() == "100 %" and row[3].strip() == "50 %"
        for row in rows
        if len(row) > 3
    )


def test_a_campaign_file_runs_all_its_procedures(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("campaign.yaml").write_text(
        "name: both\ntestbed: testbed.yaml\nprocedures:\n"
        "  - {procedure: throughput, max_rate_fps: 1000, restabilise_wait_s: 0}\n"
        "  - {procedure: frame-loss, max_rate_fps: 1000, restabilise_wait_s: 0}\n"
    )
    code = run(FakeEngine(perfect()), "run", "campaign.yaml", "--json")
    data = json.loads(capsys.readouterr().out)
    assert code == 0
    assert data["procedure"] == "campaign"
    assert [c["procedure"] for c in data["cells"]] == ["throughput", "frame-loss"]


def test_a_report_can_be_made_again(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    throughput(run, FakeEngine(perfect()))
    Path("run/report.html").unlink()
    capsys.readouterr()
    assert run(FakeEngine(perfect()), "report", "run") == 0
    assert capsys.readouterr().out == "run/report.html\n"
    assert Path("run/report.html").exists()


def test_a_dead_engine_exits_with_3_and_shows_what_was_measured(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    death = EngineError("the engine ended (signal 9) during trial 3", "see the log")
    code = throughput(
        run,
        FakeEngine(perfect(), troubles={3: death}),
        *("--frame-size", "64", "--frame-size", "128", *CLASSIC),
    )
    captured = capsys.readouterr()
    assert code == 3
    assert "error: the engine ended (signal 9)" in captured.err
    assert "hint: see the log" in captured.err
    assert "Traceback" not in captured.err
    assert "throughput-ip4-64-both" in captured.out
    assert "incomplete" in captured.out


def test_an_interrupted_run_exits_with_130_and_keeps_its_results(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = FakeEngine(step(1), troubles={2: KeyboardInterrupt()})
    code = throughput(run, engine, "--json")
    captured = capsys.readouterr()
    assert code == 130
    assert "interrupted; results so far are in run" in captured.err
    assert json.loads(captured.out)["complete"] is False
    assert len(Path("run/journal.jsonl").read_text().splitlines()) == 2


def test_a_defect_is_named_and_its_traceback_is_stored_not_shown(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = FakeEngine(perfect(), troubles={1: ZeroDivisionError("oops")})
    code = throughput(run, engine)
    captured = capsys.readouterr()
    assert code == 3
    assert "error: this is a defect in dutperf: ZeroDivisionError: oops" in captured.err
    assert "run/crash.txt" in captured.err
    assert "Traceback" not in captured.err
    assert "Traceback" in Path("run/crash.txt").read_text()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--frame-size", "63"], "error: --frame-size must be at least 64, not 63"),
        (["--ip", "5"], "error: --ip must be 4, 6, '6-4' or '4-6', not 5"),
        (["--resolution", "x"], "error: --resolution must be a percentage"),
        (["--repeats", "0"], "--repeats must be a whole number from 1 to 1000, or"),
        (["--trial-duration", "nan"], "error: --trial-duration must be "),
        (["--ip", "6"], "IPv6 is asked for, but testbed simulated has no IPv6"),
        (["--lab", "linux-router"], "give either a testbed file or --lab NAME"),
        (["--direction", "up"], "--direction must be 'both', 'forward' or 'reverse'"),
        (["--load", "50"], "No such option"),
        (["--max-rate", "fast"], "--max-rate must be a whole number, not 'fast'"),
        (["--max-rate", "1.5"], "--max-rate must be a whole number, not '1.5'"),
        (
            ["--frame-size", "64..128"],
            "--frame-size must be a number of bytes, a range",
        ),
        (["--resolution", "5"], "5 may be a share or frames per second"),
    ],
)
def test_wrong_options_exit_with_2_and_are_named(
    run: Run, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    code = run(FakeEngine(perfect()), "throughput", "testbed.yaml", *arguments)
    captured = capsys.readouterr()
    assert code == 2
    assert told in " ".join(captured.err.split())
    assert not captured.out
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["throughput"], "error: give either a testbed file or --lab NAME"),
        (["throughput", "gone.yaml"], "error: gone.yaml: no such file"),
        (["throughput", "--lab", "linux-rooter"], "did you mean 'linux-router'"),
        (["run", "gone.yaml"], "error: gone.yaml: no such file"),
        (["report", "gone"], "error: gone"),
        (["measure"], "No such command"),
    ],
)
def test_missing_or_unknown_input_exits_with_2(
    run: Run, capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    assert run(FakeEngine(perfect()), *arguments) == 2
    assert told in capsys.readouterr().err


def test_a_used_output_directory_is_refused(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    throughput(run, FakeEngine(perfect()))
    assert throughput(run, FakeEngine(perfect())) == 2
    assert "run holds the files of another run" in capsys.readouterr().err


def test_defaults_are_those_of_a_campaign_file(run: Run) -> None:
    engine = FakeEngine(perfect())
    throughput(run, engine)
    assert engine.trials[-1].duration_ns == 60_000_000_000
    assert engine.trials[0].seed == 1


def test_every_option_reaches_the_trial(run: Run) -> None:
    engine = FakeEngine(perfect())
    throughput(
        run,
        engine,
        *("--frame-size", "1518", "--direction", "reverse", "--seed", "42"),
        *("--trial-duration", "1", "--settle-wait", "2.5", "--residual-wait", "0.5"),
        *("--lag-limit", "3", "--burst-limit", "4", "--repeats", "2"),
    )
    trial = engine.trials[1]
    assert (trial.duration_ns, trial.settle_ns) == (1_000_000_000, 2_500_000_000)
    assert (trial.residual_wait_ns, trial.lag_limit_ns) == (500_000_000, 3_000_000)
    assert (trial.burst_limit, trial.seed) == (4, 42)
    assert [d.name for d in trial.directions] == ["reverse"]
    assert trial.directions[0].streams[0].frame_sizes == [1518]
    assert len(engine.trials) == 3


@pytest.mark.parametrize("as_json", [True, False])
def test_a_reader_that_leaves_does_not_change_the_outcome(
    run: Run, monkeypatch: pytest.MonkeyPatch, here: Path, as_json: bool
) -> None:
    read, write = os.pipe()
    os.close(read)
    with open(write, "w", closefd=True) as nobody:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stdout", nobody)
        code = throughput(run, FakeEngine(perfect()), *(["--json"] if as_json else []))
    assert code == 0
    assert (here / "run/results.json").exists()


@pytest.fixture
def lab_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stands in for the lab; records what is done to it."""
    from dutperf.config.testbed import Hooks
    from dutperf.lab import plan

    calls: list[str] = []

    @contextlib.contextmanager
    def session(given: LabKeys) -> Iterator[Testbed]:
        calls.append(f"up {given.name}")
        yield plan(given).model_copy(update={"hooks": Hooks()})
        calls.append(f"down {given.name}")

    monkeypatch.setattr("dutperf.lab.lifecycle.session", session)
    monkeypatch.setattr("dutperf.lab.lifecycle.running", list)
    monkeypatch.setattr("dutperf.lab.dut_alive", lambda _name: True)
    return calls


def test_a_lab_is_up_for_the_measurement_and_down_after_it(
    run: Run, lab_calls: list[str]
) -> None:
    code = run(FakeEngine(perfect()), "throughput", "--lab", "linux-router", *QUICK)
    assert code == 0
    assert lab_calls == ["up linux-router", "down linux-router"]


def test_the_stored_campaign_of_a_lab_names_the_lab(
    run: Run, lab_calls: list[str]
) -> None:
    run(FakeEngine(perfect()), "throughput", "--lab", "linux-router", *QUICK)
    assert lab_calls
    assert "lab: linux-router" in Path("run/campaign.yaml").read_text()


def required(run: Run, fps: int, *texts: str) -> int:
    options = [part for text in texts for part in ("--require", text)]
    engine = FakeEngine(step(fps))
    return throughput(run, engine, "--resolution", "1%", *options, "--junit", "x.xml")


def test_what_is_required_decides_how_a_command_ends(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert required(run, 250_000, "throughput >= 200k", "throughput <= 1M") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2].startswith(
        "throughput >= 200k: met; throughput-ip4-64-both: 250,000"
    )
    assert lines[-1].startswith("throughput <= 1M: met; ")
    assert 'tests="2" failures="0" skipped="0"' in Path("x.xml").read_text()


def test_a_slower_device_ends_with_4_and_one_at_the_bound_with_1(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = ("throughput >= 300k", "throughput >= 100k")
    assert required(run, 250_000, *texts) == 4
    assert "throughput >= 300k: not met; " in capsys.readouterr().out
    assert '<failure message="250,000 fps (1 repeat' in Path("x.xml").read_text()
    shutil.rmtree("run")
    assert required(run, 250_000, "throughput >= 250,001") == 1
    assert "throughput >= 250,001: cannot tell; " in capsys.readouterr().out
    assert '<skipped message="cannot tell: 250,000' in Path("x.xml").read_text()


def test_a_run_that_is_resumed_is_held_to_what_it_was_asked_for(run: Run) -> None:
    assert required(run, 250_000, "throughput >= 300k") == 4
    assert "throughput >= 300k" in Path("run/campaign.yaml").read_text()
    assert run(FakeEngine(step(1)), "run", "--resume", "run") == 4
    more = ("--resume", "run", "--require", "throughput >= 1")
    assert run(FakeEngine(step(1)), "run", *more) == 4


def test_nothing_is_sent_for_a_requirement_that_nothing_measures(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    for junit, told in ((".", "cannot be a file there"), ("no/x.xml", "a file there")):
        options = ("--require", "throughput >= 1", "--junit", junit)
        assert throughput(run, FakeEngine(step(1)), *options) == 2
        assert told in capsys.readouterr().err
    assert throughput(run, FakeEngine(step(1)), "--junit", "x.xml") == 2
    assert "and nothing is" in capsys.readouterr().err
    dry = ("throughput", "testbed.yaml", "--dry-run", "--require", "latency <= 1 s")
    assert run(FakeEngine(step(1)), *dry) == 2
    for text, told in (
        ("p99 latency <= 1ms", "nothing here measures it"),
        ("throughput = 5", "requires nothing of a figure"),
    ):
        assert required(run, 250_000, text) == 2
        assert told in capsys.readouterr().err
    assert not Path("run").exists()


def test_a_percentile_that_is_required_is_measured(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--quick", "--rate", "1000", "--ip", "4", "--output", "run")
    text = "p99 latency <= 1 s"
    engine = FakeEngine(perfect())
    code = run(engine, "latency", "testbed.yaml", *options, "--require", text)
    assert code == 0
    assert (
        f"{text}: met; latency-ip4-64-both-1000fps, p99 forward"
        in capsys.readouterr().out
    )
    measures = json.loads(Path("run/results.json").read_text())["cells"][0]["measures"]
    assert {each["name"] for each in measures} == {"TL", "WCL", "p99"}


def test_percentiles_that_are_nearly_alike_have_names_of_their_own(run: Run) -> None:
    options = ("--quick", "--rate", "1000", "--ip", "4", "--output", "run")
    close = ("--percentile", "99.99999,99.99998,1", "--require", "p99.99999 <= 1 s")
    both = ("--require", "p1 latency >= 1 ns", "--require", "p1 latency <= 1 s")
    assert (
        run(FakeEngine(perfect()), "latency", "testbed.yaml", *options, *close, *both)
        == 0
    )
    measures = json.loads(Path("run/results.json").read_text())["cells"][0]["measures"]
    names = {each["name"] for each in measures}
    assert names == {"TL", "WCL", "p99.99999", "p99.99998", "p1"}
