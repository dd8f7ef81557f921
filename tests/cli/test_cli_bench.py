"""``dutperf bench``: the real program on this machine, briefly."""

from __future__ import annotations

import json
import os

import pytest
from typer.testing import CliRunner

from dutperf.cli.app import app
from dutperf.engine import process
from dutperf.errors import InputError, SetupError

pytestmark = pytest.mark.engine


def built() -> bool:
    try:
        process.find_program("dutperf-bench")
    except SetupError:
        return False
    return os.geteuid() == 0


@pytest.mark.skipif(not built(), reason="needs root and the built dutperf-bench")
def test_json_has_the_floor_and_every_mode_in_cycles_per_frame() -> None:
    result = CliRunner().invoke(app, ["bench", "--rounds", "1", "--json"])
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
    } <= names
    assert bench["floor"]["name"] == "floor"
    assert all(mode["cycles_per_frame"] > 0 for mode in bench["modes"])


def test_a_cpu_that_is_not_there_is_bad_input() -> None:
    result = CliRunner().invoke(app, ["bench", "--cpu", "4096"])
    assert isinstance(result.exception, InputError)
    assert "--cpu 4096" in result.exception.message


def test_a_bench_that_fails_says_what_the_program_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dutperf.cli.bench_command.check_root", lambda: None)
    monkeypatch.setattr(
        "dutperf.cli.bench_command.find_program", lambda _name: "/bin/false"
    )
    result = CliRunner().invoke(app, ["bench"])
    assert isinstance(result.exception, SetupError)
    assert "the bench failed" in result.exception.message
