"""Delays on the command line: commands, options, tables, and what is refused."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dutperf.api import places
from dutperf.cli import app, console
from dutperf.config import Testbed
from dutperf.results import ResultsFile
from dutperf.results.units import duration
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.simulation.fake_engine import (
    FakeEngine,
    every,
    fixed,
    jitter,
    perfect,
    step,
)

MS = 1_000_000
TESTBED = """\
name: simulated
left:
  port: {interface: left}
  ipv4: {address: 198.18.0.2, gateway: 198.18.0.1}
  ipv6: {address: "2001:2::2", gateway: "2001:2::1"}
right:
  port: {interface: right}
  ipv4: {address: 198.19.0.2, gateway: 198.19.0.1}
  ipv6: {address: "2001:2:0:1::2", gateway: "2001:2:0:1::1"}
"""
COMMON = ["--ip", "4", "--restabilise-wait", "0", "--max-rate", "100000"]
LOAD = ["--rate", "1000", "--repeats", "3", "--trial-duration", "2"]
TAGS = ["--tags", "500", "--first-tag", "1"]

Run = Callable[..., int]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(console, "_PLAIN_WIDTH", 300)
    Path("testbed.yaml").write_text(TESTBED)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a procedure with an engine that simulates."""

    def run_on(engine: FakeEngine, command: str, *arguments: str) -> int:
        def prepare(_testbed: Testbed, _notify: Notify) -> EngineStarter:
            return lambda _log_path: contextlib.nullcontext(engine)

        monkeypatch.setattr(places, "prepare_engine", prepare)
        place = ["testbed.yaml", "--output", "run"]
        return app.run([command, *place, *COMMON, *arguments])

    return run_on


def rows(out: str) -> list[list[str]]:
    """The cells of all tables' rows."""
    lines = [line for line in out.splitlines() if line.startswith("│")]
    return [[part.strip() for part in line.strip("│").split("│")] for line in lines]


def test_latency_shows_both_quantities_of_both_directions(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = FakeEngine(perfect(), delays=every(9, 5 * MS))
    assert run(engine, "latency", *LOAD, *TAGS, "--verbose") == 0
    out = capsys.readouterr().out
    told = ["20 us", "20 us", "5.02 ms", "5.02 ms", "3", "500"]
    assert [row[4:11] for row in rows(out)[:2]] == [
        ["forward", *told],
        ["reverse", *told],
    ]
    assert "delay: one-way delay of a frame: from right before" in out
    assert "share of a delay is at least 1.2 us and at most 1.2 us" in out
    assert (
        "deviation from RFC 8219 7.2 (MUST): at least 20 repeats: 3 instead of" in out
    )


def test_lost_tags_are_shown_and_a_latency_is_beyond_all_measure(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(FakeEngine(step(995)), "latency", *LOAD, *TAGS) == 0
    captured = capsys.readouterr()
    [row] = [row for row in rows(captured.out) if row[4] == "forward"]
    assert row[7:12] == ["> lost", "> lost", "3", "500", "15"]
    assert "10 of 2000 frames lost" in captured.err
    assert "forward foreground: 30 of 6,000 frames were lost" in captured.out


def test_the_old_latency_is_a_mean(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    first = ["--first-tag", "1", "--rfc2544-latency"]
    assert run(FakeEngine(perfect(), delays=fixed(MS)), "latency", *LOAD, *first) == 0
    out = capsys.readouterr().out
    assert " mean " in out
    [row] = [row for row in rows(out) if row[4] == "forward"]
    assert row[5:9] == ["1 ms", "1 ms", "3", "1"]
    assert "RFC 2544 26.2" in out


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("pdv", ["PDV", "Dmin", "D99.9"]),
        ("ipdv", ["IPDV max", "IPDV median", "IPDV min"]),
    ],
)
def test_variation_is_shown_by_stream(
    run: Run, capsys: pytest.CaptureFixture[str], command: str, names: list[str]
) -> None:
    mix = ["--mix", "50/50", "--background-ip", "6"]
    engine = FakeEngine(perfect(), delays=jitter(MS, 2 * MS))
    assert run(engine, command, *LOAD, *mix) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in names)
    assert [row[4:6] for row in rows(out)] == [
        ["forward", "foreground"],
        ["forward", "background"],
        ["reverse", "foreground"],
        ["reverse", "background"],
    ]


def test_json_holds_the_measures(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(FakeEngine(perfect()), "latency", *LOAD, *TAGS, "--json")
    results = ResultsFile.model_validate(json.loads(capsys.readouterr().out))
    assert (results.procedure, results.cells[0].unit) == ("latency", "ns")
    assert [m.name for m in results.cells[0].measures] == ["TL", "TL", "WCL", "WCL"]


def test_a_timeout_and_a_tolerance_are_named_beside_the_rate(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    judged = ["--frame-timeout", "10", "--loss-tolerance", "0.01"]
    assert run(FakeEngine(step(50_000)), "throughput", *judged) == 0
    out = capsys.readouterr().out
    assert "Rate per direction, frames within 10 ms, losing up to 0.01 %" in out
    cell = "throughput-ip4-64-both-within-10ms-tolerating-0.01percent"
    told = "throughput per direction, frames within 10 ms, losing up to 0.01 %"
    [line] = [s for s in out.splitlines() if s.startswith(f"{cell}: ")]
    assert line.endswith(f" fps: {told}")
    assert "not RFC results: --deviations lists 3 deviations" in out


def test_a_sweep_of_a_throughput_has_a_table_of_its_own(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = FakeEngine(step(50_000), delays=every(10, 8 * MS))
    assert run(engine, "throughput", "--timeout-sweep", "0.5,5, 10") == 0
    out = capsys.readouterr().out
    assert rows(out)[-1][1:] == ["10 %", "10 %", "0 %", "1"]
    assert "Throughput" in out


def test_a_sweep_of_a_curve_has_a_row_for_each_load(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    engine = FakeEngine(step(50_000), delays=every(10, 8 * MS))
    sweep = ["--timeout-sweep", "5", "--timeout-sweep", "10"]
    loads = ["--load", "100,50", *sweep]
    assert run(engine, "frame-loss", *loads) == 0
    out = capsys.readouterr().out
    assert rows(out) == [
        ["100 %", "100,000", "50 %", "50 %", "50 %", "1 of 1", "1"],
        ["50 %", "50,000", "0 %", "0 %", "0 %", "1 of 1", "1"],
        ["100 %", "55 %", "50 %", "1"],
        ["50 %", "10 %", "0 %", "1"],
    ]


def test_foreground_and_background_are_told_apart_for_each_trial(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    mix = ["--mix", "90/10", "--background-ip", "6", "--load", "100"]
    late = ["--frame-timeout", "5", "--trial-duration", "1"]
    engine = FakeEngine(step(80_000), delays=every(10, 8 * MS))
    assert run(engine, "frame-loss", *mix, *late) == 0
    assert (
        "foreground 36,000 lost and 14,400 late of 180,000; "
        "background 4,000 lost and 1,600 late of 20,000"
    ) in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["latency"],
            "hint: add --rate: load of each direction: frames per second",
        ),
        (["latency", "--rate", "0"], "error: --rate must be at least 1, not 0"),
        (
            ["latency", "--rate=1k", "--trial-duration=10", "--first-tag=60"],
            "error: --first-tag 60 s is not before the end of the trial, 10 s",
        ),
        (["latency", "--rate", "9", "--tags", "0"], "--tags must be at least 1, not 0"),
        (
            ["latency", "--rate", "833"],
            "tags: 50000 are more than the 49980 frames of a direction's foreground",
        ),
        (["throughput", "--frame-timeout", "0"], "--frame-timeout must be above 0"),
        (["throughput", "--frame-timeout", "-1"], "--frame-timeout must be above 0"),
        (
            ["throughput", "--frame-timeout", "2000"],
            "--frame-timeout 2000 ms is not below the wait for late frames, 2 s",
        ),
        (["frame-loss", "--timeout-sweep", "1,x"], "--timeout-sweep must be a number"),
        (["frame-loss", "--timeout-sweep", "5,5"], "--timeout-sweep must not list 5"),
        (
            ["throughput", "--loss-tolerance", "0.00000001"],
            "--loss-tolerance must be whole parts per billion",
        ),
        (["throughput", "--loss-tolerance", "100"], "--loss-tolerance must be below"),
    ],
)
def test_what_cannot_be_is_refused_by_its_flag_before_a_frame_is_sent(
    run: Run,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    message: str,
) -> None:
    engine = FakeEngine(perfect())
    assert run(engine, *arguments) == 2
    assert message in capsys.readouterr().err
    assert engine.trials == []
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("command", "flag"),
    [
        ("throughput", "--rate"),
        ("throughput", "--tags"),
        ("frame-loss", "--loss-tolerance"),
        ("latency", "--frame-timeout"),
        ("pdv", "--tags"),
        ("ipdv", "--load"),
    ],
)
def test_options_of_other_procedures_are_unknown(
    run: Run, capsys: pytest.CaptureFixture[str], command: str, flag: str
) -> None:
    assert run(FakeEngine(perfect()), command, flag, "1") == 2
    assert f"No such option: {flag}" in capsys.readouterr().err


def test_the_help_of_latency_has_its_own_defaults(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(FakeEngine(perfect()), "latency", "--help") == 0
    text = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "default: 120" in text
    assert "default: 50000" in text


@pytest.mark.parametrize(
    ("value_ns", "text"),
    [
        (0, "0 ns"),
        (-1.5, "-1.5 ns"),
        (999, "999 ns"),
        (1000, "1 us"),
        (-20_500, "-20.5 us"),
        (999_999_999, "1 s"),  # rounded
        (1_500_000_000, "1.5 s"),
    ],
)
def test_durations_have_the_unit_that_fits(value_ns: float, text: str) -> None:
    assert duration(value_ns) == text


def test_a_duration_that_is_rounded_up_has_the_next_unit() -> None:
    assert duration(999_400_000, 3) == "999 ms"
    assert duration(999_500_001, 3) == "1 s"


# --- at the throughput found


def at_throughput(run: Run, engine: FakeEngine, rate: str) -> int:
    short = ["--trial-duration", "2", "--repeats", "2"]
    return run(engine, "latency", "--rate", rate, *short, *TAGS)


def test_a_latency_at_the_throughput_finds_it_first(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert at_throughput(run, FakeEngine(step(40_000)), "throughput") == 0
    captured = capsys.readouterr()
    assert "[1/2] throughput-ip4-64-both" in captured.err
    assert "[2/2] latency-ip4-64-both-at-throughput" in captured.err
    results = ResultsFile.model_validate_json(Path("run/results.json").read_text())
    search, latency = results.cells
    assert results.procedure == "campaign"
    assert latency.load is not None
    assert (latency.load.rate_fps, latency.load.cell) == (search.median, search.id)
    assert "at the throughput found: one repeat, " in " ".join(captured.out.split())
    assert "load at the throughput rate" not in captured.out


def test_without_a_throughput_the_command_fails_with_its_reason(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert at_throughput(run, FakeEngine(lambda *_: 0), "90% of throughput") == 1
    out = capsys.readouterr().out
    assert (
        "latency-ip4-64-both-at-90percent-of-throughput: invalid: nothing was sent: "
        in out
    )


def test_a_load_that_reads_wrong_is_refused_by_its_flag(
    run: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    assert at_throughput(run, FakeEngine(perfect()), "throughput p77") == 2
    assert "--rate must be a lower quantile, p1 to p49" in capsys.readouterr().err
