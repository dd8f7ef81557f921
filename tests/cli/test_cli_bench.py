"""``dutperf bench``: the real program briefly, and the path on a FakeEngine."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_cpus import put_on
from typer.testing import CliRunner

from dutperf.bench import benches
from dutperf.bench.path_profile import PerfProfiler
from dutperf.cli.app import whole
from dutperf.config import Testbed, load_testbed
from dutperf.config.campaign import LabKeys
from dutperf.errors import InputError, SetupError
from dutperf.programs import find_program
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.simulation.fake_engine import Dut, FakeEngine, perfect, step

TESTBED = """\
name: simulated
cores: [0]
left:
  port: {interface: left}
  ipv4: {address: 198.18.0.2, gateway: 198.18.0.1}
right:
  port: {interface: right}
  ipv4: {address: 198.19.0.2, gateway: 198.19.0.1}
"""


def built() -> bool:
    try:
        find_program("dutperf-bench")
    except SetupError:
        return False
    return os.geteuid() == 0


@pytest.mark.engine
@pytest.mark.skipif(not built(), reason="needs root and the built dutperf-bench")
def test_json_has_the_floor_and_every_mode_in_cycles_per_frame() -> None:
    result = CliRunner().invoke(whole(), ["bench", "--rounds", "1", "--json"])
    assert result.exit_code == 0, result.output
    bench = json.loads(result.stdout)
    names = {mode["name"] for mode in bench["modes"]}
    assert {
        "send.fixed",
        "send.random_ports",
        "send.random_addresses",
        "send.random_ports_addresses",
        "send.networks_256_random_ports",
        "send.enumerate_random",
        "receive.count",
        "receive.full",
        "send.learned_random",
        "receive.learn",
        "receive.learn_random",
    } <= names
    assert bench["floor"]["name"] == "floor"
    assert all(mode["cycles_per_frame"] > 0 for mode in bench["modes"])
    (one, *more), pacing = bench["cores"], bench["pacing"]
    assert one["cores"] == 1
    assert one["send"]["fps"] > one["loop"]["fps"] > 0
    assert one["send"]["ratio"] == one["loop"]["ratio"] == 1
    assert "handed_over" not in one
    if len(os.sched_getaffinity(0)) > 1:
        (two,) = more
        assert len(set(two["cpus"])) == two["cores"] == 2
        for way in ("send", "loop", "across", "handed_over"):
            assert two[way]["ratio"] > 0
            assert all(cycles > 0 for cycles in two[way]["by_share_cycles_per_frame"])
            assert len(two[way]["by_share_cycles_per_frame"]) == 2
        assert bench["there_and_back_cycles"] > 0
        memif = bench["memif"]
        assert 0 < memif["fps_per_direction"] <= memif["sent_fps_per_direction"]
    else:
        assert not more
        assert bench["there_and_back_cycles"] is None
        assert "memif" not in bench
    ends = bench["connections"]
    assert set(ends) == {"opened", "answered", "closed"}
    assert all(0 < end["per_s"] < 1e8 for end in ends.values())
    assert all(end["cycles_per_segment"] > 0 for end in ends.values())
    queries = bench["queries"]
    assert 0 < queries["per_s"] < queries["queries_per_s_by_a_core"] < 1e9
    # What both take is one after the other.
    both = queries["cycles_of_client"] + queries["cycles_of_authority"]
    assert both == pytest.approx(queries["cycles_per_query"], rel=0.05)
    assert pacing["burst_p50_frames"] >= 1
    assert pacing["lag_p50_ns"] <= pacing["lag_p99_ns"] <= pacing["lag_max_ns"]
    assert 0 < pacing["rate_fps"] < one["send"]["fps"]


@pytest.mark.engine
@pytest.mark.skipif(not built(), reason="needs root and the built dutperf-bench")
def test_learned_tuples_are_measured_with_tables_of_the_sizes_asked_for() -> None:
    arguments = ["bench", "--rounds", "1", "--json", "--entries", "100k,1_000,100000"]
    result = CliRunner().invoke(whole(), arguments)
    assert result.exit_code == 0, result.output
    bench = json.loads(result.stdout)
    for name in ("send.learned_random", "receive.learn", "receive.learn_random"):
        sizes = [m["entries"] for m in bench["modes"] if m["name"] == name]
        assert sizes == [1000, 100_000]
    table = bench["table"]
    assert (table["entries"], table["asked_entries"]) == (100_000, 100_000)
    assert table["bytes_per_entry"] * table["entries"] <= table["memory_bytes"]
    assert table["allocation_ns"] > 0


# What the program reports of a table that did not fit.
REPORT = {
    "cpu": 0,
    "hugepages": False,
    "modes": [
        {"name": "floor", "cycles_per_frame": 18.0, "ratio": 1.0},
        {"name": "receive.count", "cycles_per_frame": 8.0, "ratio": 0.44},
        {
            "name": "receive.learn",
            "cycles_per_frame": 40.5,
            "ratio": 2.25,
            "entries": 1_000_000,
        },
    ],
    "table": {
        "asked_entries": 400_000_000,
        "entries": 1_000_000,
        "bytes_per_entry": 12,
        "available_bytes": 12_000_000,
        "memory_bytes": 12_582_912,
        "hugepages": True,
        "allocation_ns": 20_000_000,
    },
    "cores": [
        {
            "cores": 1,
            "cpus": [0],
            "send": {
                "fps": 1e8,
                "cycles_per_frame": 26.51,
                "by_share_cycles_per_frame": [26.51],
                "ratio": 1.0,
            },
        }
    ],
    "there_and_back_cycles": None,
    "connections": {"closed": {"per_s": 2.6e6, "cycles_per_segment": 110.0}},
    "queries": {
        "per_s": 4.1e6,
        "queries_per_s_by_a_core": 6.2e6,
        "answers_per_s_by_a_core": 9.3e6,
    },
    "pacing": {
        "rate_fps": 1e7,
        "burst_p50_frames": 1,
        "lag_p50_ns": 65,
        "lag_p99_ns": 1500,
        "lag_max_ns": 9000,
    },
}


def test_a_table_that_does_not_fit_is_told_with_the_arithmetic(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    program = tmp_path / "dutperf-bench"
    asked = tmp_path / "asked"
    program.write_text(
        f"#!/bin/sh\necho \"$@\" > {asked}\ncat <<'END'\n{json.dumps(REPORT)}\nEND\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr("dutperf.bench.benches.check_root", lambda: None)
    monkeypatch.setattr("dutperf.bench.benches.find_program", lambda _: program)
    result = CliRunner().invoke(whole(), ["bench", "--entries", "400M,1M"])
    assert result.exit_code == 0, result.output
    assert "--entries 1000000,400000000" in asked.read_text()
    lines = result.stdout.splitlines()
    assert (
        "table of four-tuples: 1,000,000 entries of 12 bytes, 12 MiB in huge pages, "
        "allocated in 0.02 s"
    ) in lines
    assert (
        "not measured with 400,000,000 entries: they need 4,578 MiB, "
        "12 MiB are available"
    ) in lines
    assert (
        "receive.learn, 1,000,000 entries: 32.5 cycles above receive.count"
    ) in lines


@pytest.mark.parametrize(
    ("memif", "told"),
    [
        (
            {"fps_per_direction": 8.62e6, "cycles_per_frame": 150.4},
            "8.6 million sent and received in each direction, 150 cycles for both",
        ),
        ({"skipped": "no memory"}, "memif: not measured, no memory"),
    ],
)
def test_shared_memory_is_told_or_why_it_is_not(
    memif: dict[str, object],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    measured = REPORT | {"memif": memif}
    monkeypatch.setattr(
        "dutperf.cli.bench_command.bench_data_path", lambda *_, **__: measured
    )
    result = CliRunner().invoke(whole(), ["bench"])
    assert result.exit_code == 0, result.output
    assert told in result.stdout


@pytest.mark.parametrize("entries", ["0", "4X", "1,,2", "", "-1", "2000G"])
def test_sizes_that_are_none_are_bad_input(entries: str) -> None:
    result = CliRunner().invoke(whole(), ["bench", "--entries", entries])
    assert isinstance(result.exception, InputError)
    assert "--entries" in result.exception.message


@pytest.mark.parametrize("cores", ["0", "1,,2", "", "1.5", "3", "1,99"])
def test_so_many_cores_are_not_there(
    cores: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_on(monkeypatch, {0}, isolated={5})
    result = CliRunner().invoke(whole(), ["bench", "--cores", cores])
    assert isinstance(result.exception, InputError)
    assert "--cores" in result.exception.message
    assert "whole numbers from 1 to" in result.exception.hint


@pytest.mark.engine
@pytest.mark.skipif(not built(), reason="needs root and the built dutperf-bench")
def test_several_cores_are_left_out_where_there_is_one() -> None:
    usable = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(usable)})
        arguments = ["bench", "--rounds", "1", "--cpu", str(min(usable))]
        result = CliRunner().invoke(whole(), arguments)
    finally:
        os.sched_setaffinity(0, usable)
    assert result.exit_code == 0, result.output
    assert "several cores: not measured, only one CPU is available" in result.stdout
    assert "median burst" in result.stdout


def test_a_cpu_that_is_isolated_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(_name: str) -> Path:
        raise SetupError("no program")

    put_on(monkeypatch, {0}, isolated={5})
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(benches, "find_program", none)
    result = CliRunner().invoke(whole(), ["bench", "--cpu", "5"])
    assert isinstance(result.exception, SetupError)
    assert result.exception.message == "no program"


def test_a_cpu_that_is_not_there_is_bad_input() -> None:
    result = CliRunner().invoke(whole(), ["bench", "--cpu", "4096"])
    assert isinstance(result.exception, InputError)
    assert "--cpu 4096" in result.exception.message


def test_a_bench_that_fails_says_what_the_program_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dutperf.bench.benches.check_root", lambda: None)
    monkeypatch.setattr(
        "dutperf.bench.benches.find_program", lambda _name: "/bin/false"
    )
    result = CliRunner().invoke(whole(), ["bench"])
    assert isinstance(result.exception, SetupError)
    assert "the bench failed" in result.exception.message


class NoPerf(PerfProfiler):
    """As on a machine without perf."""

    def start(self) -> None:
        self.trouble = "perf is not installed"


@pytest.fixture
def lab_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:  # noqa: ANN401 - a function
    """Makes the lab's device one that simulates; nobody waits."""
    (tmp_path / "testbed.yaml").write_text(TESTBED)

    @contextlib.contextmanager
    def session(given: LabKeys) -> Iterator[Testbed]:
        assert given.rules is None
        yield load_testbed(tmp_path / "testbed.yaml")

    def use(dut: Dut, tester_limit_fps: float | None = 600_000) -> None:
        def prepare(_testbed: Testbed, _notify: Notify) -> EngineStarter:
            engine = FakeEngine(dut, tester_limit_fps=tester_limit_fps)
            return lambda _log_path: contextlib.nullcontext(engine)

        monkeypatch.setattr(benches, "prepare_engine", prepare)

    monkeypatch.setattr("dutperf.lab.lifecycle.session", session)
    monkeypatch.setattr("dutperf.lab.lifecycle.running", list)
    monkeypatch.setattr("dutperf.lab.dut_alive", lambda _name: True)
    monkeypatch.setattr(benches, "QuietWait", lambda *_: lambda _seconds: None)
    monkeypatch.setattr(benches, "PerfProfiler", NoPerf)
    return use


LAB = ["bench", "--lab", "linux-router"]


def test_the_path_of_a_lab_has_both_rates_of_both_drivers(lab_of: Any) -> None:  # noqa: ANN401 - a function
    lab_of(step(300_000))
    result = CliRunner().invoke(whole(), [*LAB, "--rounds", "1", "--json"])
    assert result.exit_code == 0, result.output
    data = json.loads(result.stdout)
    assert data["schema_version"] == 1
    assert (data["lab"], data["rounds"], data["worker_cpu"]) == ("linux-router", 1, 0)
    assert [d["driver"] for d in data["drivers"]] == ["af_xdp", "af_packet"]
    for driver in data["drivers"]:
        assert driver["lossless"]["median_fps"] <= 300_000
        assert 300_000 < driver["valid"]["median_fps"] <= 600_000
        assert driver["profiler_trouble"] == "perf is not installed"
        assert driver["trials"]


def test_the_paths_table_shows_the_rates_and_why_there_is_no_profile(
    lab_of: Any,  # noqa: ANN401 - a function
) -> None:
    lab_of(perfect(), None)
    arguments = [*LAB, "--driver", "af_xdp", "--rounds", "1"]
    result = CliRunner().invoke(whole(), arguments)
    assert result.exit_code == 0, result.output
    assert "14,880,952" in result.stdout  # the media's rate: 10 Gbit/s, 64 bytes
    assert "af_packet" not in result.stdout
    assert "not known: perf is not installed" in result.stdout


def test_a_path_without_any_valid_trial_exits_with_1(lab_of: Any) -> None:  # noqa: ANN401 - a function
    lab_of(perfect(), 0)
    result = CliRunner().invoke(
        whole(), [*LAB, "--driver", "af_packet", "--rounds", "1"]
    )
    assert result.exit_code == 1, result.output
    assert "-" in result.stdout


def test_an_unknown_lab_is_bad_input() -> None:
    result = CliRunner().invoke(whole(), ["bench", "--lab", "linux-rooter"])
    assert isinstance(result.exception, InputError)
    assert "linux-router" in result.exception.hint
