"""``dutperf run --dry-run``: the plan, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dutperf import lab
from dutperf.api import places
from dutperf.cli import app
from dutperf.cli.live_view import span

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without root in an empty directory; measuring fails the test."""

    def refuse(*_arguments: object, **_more: object) -> None:
        pytest.fail("a dry run must not touch the machine")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(places, "prepare_engine", refuse)
    monkeypatch.setattr(lab, "use", refuse)
    monkeypatch.setattr(lab, "up", refuse)


CAMPAIGN = """\
name: planned
lab: linux-router
procedures:
  - {procedure: throughput, ip: [4, 6], resolution: 1%}
  - {procedure: frame-loss, ip: [4]}
"""


def dry_run(*more: str) -> int:
    Path("campaign.yaml").write_text(CAMPAIGN)
    return app.run(["run", "campaign.yaml", "--dry-run", *more])


def test_it_shows_cells_trials_and_time_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert dry_run() == 0
    out = capsys.readouterr().out
    row = next(line for line in out.splitlines() if "throughput-ip4-64-both" in line)
    repeats, trials, duration = (s.strip() for s in row.strip("│").split("│")[1:])
    assert repeats == "1"
    # 1 % of half the maximum is 8 halvings away; with the first frames and probes.
    assert 11 <= int(trials) <= 15
    assert duration in ("6 min", "7 min", "8 min")  # half of them end early
    alike = next(line for line in out.splitlines() if "throughput-ip6-84-both" in line)
    assert alike.split("│")[2:] == row.split("│")[2:]
    assert "3 test cases, " in out.splitlines()[-1]
    assert "50 % of the maximum rate" in out.splitlines()[-1]
    assert [path.name for path in tmp_path.iterdir()] == ["campaign.yaml"]


def test_json_is_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    assert dry_run("--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert data["schema_version"] == 1
    assert data["trials"] == sum(cell["trials"] for cell in data["cells"])
    assert data["duration_s"] == pytest.approx(
        sum(cell["duration_s"] for cell in data["cells"])
    )
    assert data["cells"][0]["id"] == "throughput-ip4-64-both"
    curve = data["cells"][-1]
    first, probes = 1, 3
    own = curve["trials"] - first - probes
    assert curve["duration_s"] == pytest.approx(own * 69 + 9.1 + probes * 0.4)
    assert "most_trials" not in data


def test_repeats_that_depend_on_the_device_are_a_range(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("auto.yaml").write_text(
        "name: auto\nlab: linux-router\nprocedures:\n"
        "  - {procedure: throughput, ip: [4], repeats: auto, max_repeats: 16}\n"
        "  - {procedure: throughput, ip: [6]}\n"
    )
    assert app.run(["run", "auto.yaml", "--dry-run", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    auto, once = data["cells"]
    assert auto["trials"] < auto["most_trials"] < 3 * auto["trials"]
    assert "most_trials" not in once
    assert data["most_trials"] == auto["most_trials"] + once["trials"]
    assert app.run(["run", "auto.yaml", "--dry-run"]) == 0
    assert " 8 to 16 " in capsys.readouterr().out


@pytest.mark.parametrize(
    "name",
    [
        "demo.yaml",
        "modifiers.yaml",
        "nat64.yaml",
        "networks.yaml",
        "searches.yaml",
        "stateful.yaml",
    ],
)
def test_every_example_has_a_plan(name: str) -> None:
    assert app.run(["run", str(EXAMPLES / name), "--dry-run"]) == 0


def test_what_a_run_would_refuse_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("wrong.yaml").write_text(
        "name: wrong\nlab: linux-router\nprocedures:\n"
        "  - {procedure: throughput, ip: [6], frame_size: [64]}\n"
    )
    assert app.run(["run", "wrong.yaml", "--dry-run"]) == 2
    assert "too small for IPv6" in capsys.readouterr().err


def test_an_unknown_lab_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("wrong.yaml").write_text(
        "name: wrong\nlab: linux-rooter\nprocedures:\n  - {procedure: throughput}\n"
    )
    assert app.run(["run", "wrong.yaml", "--dry-run"]) == 2
    assert "did you mean 'linux-router'" in capsys.readouterr().err


def test_a_place_for_results_contradicts_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert dry_run("--output", "x") == 2
    assert "--dry-run measures and stores nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("duration_s", "text"),
    [
        (0.4, "0 s"),
        (99, "99 s"),
        (120, "2 min"),
        (5999, "1 h 40 min"),
        (86_400, "24 h 0 min"),
        (3 * 86_400 + 3_600, "3 d 1 h"),
    ],
)
def test_a_time_is_told_as_people_do(duration_s: float, text: str) -> None:
    assert span(duration_s) == text


def test_each_procedure_has_one(capsys: pytest.CaptureFixture[str]) -> None:
    for name, more in (("throughput", []), ("latency", ["--rate", "throughput"])):
        asked = [name, "--lab", "linux-router", "--quick", "--dry-run", *more]
        assert app.run(asked) == 0
        assert f"{name}-ip4-64-both" in capsys.readouterr().out
    asked = ["throughput", "--lab", "linux-router", "--dry-run", "--output", "x"]
    assert app.run(asked) == 2
    assert "--dry-run measures and stores nothing" in capsys.readouterr().err


def test_several_labs_are_measured_one_after_another(
    capsys: pytest.CaptureFixture[str],
) -> None:
    labs = ("--lab", "linux-router", "--lab", "tayga-siit")
    assert app.run(["throughput", *labs, "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert "lab linux-router: 2 test cases" in out
    assert "lab tayga-siit: 1 test case" in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["throughput", "--lab", "wire", "--lab", "wire"], "--lab wire is given twice"),
        (["stream", "--rate", "1k", "--duration", "1"], "this command has one lab"),
        (["frames", "--pcap", "x.pcap"], "this command has one lab"),
        (["selftest"], "this command has one lab"),
    ],
)
def test_no_lab_is_left_out_in_silence(
    capsys: pytest.CaptureFixture[str], arguments: list[str], told: str
) -> None:
    labs = () if "--lab" in arguments else ("--lab", "wire", "--lab", "tayga-siit")
    assert app.run([*arguments, *labs]) == 2
    assert told in capsys.readouterr().err


def test_a_results_directory_is_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "journal.jsonl").touch()
    assert app.run(["run", str(tmp_path)]) == 2
    assert f"dutperf run --resume {tmp_path}" in capsys.readouterr().err
