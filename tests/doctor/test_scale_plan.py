"""What a tester takes for a link's speed, told before it is bought."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from dutperf.cli.app import whole
from dutperf.doctor.cpu_checks import buffers_mb, scale_plan
from dutperf.errors import InputError


def test_100_gbe_with_the_smallest_frames() -> None:
    plan = scale_plan(100_000, 64, 60.0)
    assert plan.line_fps == 148_809_523
    assert (plan.shares, plan.cores) == (15, 60)
    assert plan.tracking_mb == 1065, "8.93e9 bits"
    assert plan.other_mb > 4 * plan.tracking_mb, "of both directions, each kept twice"
    assert 2 * plan.huge_pages >= plan.memory_mb


def test_one_share_keeps_its_bits_once() -> None:
    plan = scale_plan(10_000, 1518, 60.0)
    assert (plan.line_fps, plan.shares, plan.cores) == (812_743, 1, 4)
    assert plan.other_mb < 4 * plan.tracking_mb + 20


def test_a_faster_core_takes_fewer_shares() -> None:
    plans = [scale_plan(100_000, 64, 60.0, each * 10**6) for each in (10, 30, 200)]
    assert [plan.shares for plan in plans] == [15, 5, 1]
    assert [plan.memory_mb for plan in plans] == [buffers_mb(n) for n in (15, 5, 1)]


def test_the_command_tells_it_to_people_and_to_programs() -> None:
    told = CliRunner().invoke(whole(), ["doctor", "--plan", "100G"])
    assert told.exit_code == 0
    assert "148,809,523 fps per direction" in told.stdout
    asked = ["doctor", "--plan", "25G", "--frame-size", "512", "--json"]
    plan = json.loads(CliRunner().invoke(whole(), asked).stdout)["plan"]
    assert plan["line_fps"] == 5_874_060
    assert plan["shares"] == 1


@pytest.mark.parametrize("wrong", ["fast", "0", "1.5", "100"])
def test_what_is_no_rate_is_refused(wrong: str) -> None:
    told = CliRunner().invoke(whole(), ["doctor", "--plan", wrong])
    assert isinstance(told.exception, InputError)
    assert str(told.exception) == f"--plan {wrong}: is no rate"
