"""Campaigns, journals and directories that cannot be used, as their user meets them.

Each is told with what, where and what to do, before anything is sent or changed.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import simulated_program
from simulated_program import PLACE

from dutperf.results import load_journal

LOSS = """\
  - procedure: frame-loss
    load_percent: [100, 50]
    max_rate_fps: 1000
    restabilise_wait_s: 0
"""
IMIX = "{imix: {sequence: aag}}"
CAMPAIGN = f"name: demo\n{PLACE}procedures:\n{LOSS}"

Dutperf = Callable[..., str]


@pytest.fixture
def dutperf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Dutperf:
    """Runs the program in a directory of its own; what it said, if it ends so."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, code: int) -> str:
        capsys.readouterr()
        with monkeypatch.context() as called:
            called.setattr(sys, "argv", ["dutperf", *arguments])
            ended = simulated_program.main()
        errors = capsys.readouterr().err
        assert ended == code, errors
        assert "Traceback" not in errors
        assert "defect" not in errors
        return errors

    return run


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (
            f"{PLACE}procedures:\n  - procedure: thruput\n",
            [
                "campaign.yaml:11: procedures[0].procedure: must be one of throughput,",
                "did you mean 'throughput'?",
            ],
        ),
        (f"{PLACE}procedures: []\n", ["procedures: must have at least 1 entry"]),
        (f"{PLACE}procedures:\n", ["procedures: must be a list, not empty"]),
        (PLACE, ["procedures: is missing", "what to measure, in this order"]),
        (f"procedures:\n{LOSS}", ["lab", "testbed"]),
        (
            f"lab: linux-ruter\nprocedures:\n{LOSS}",
            ["no lab named 'linux-ruter'", "did you mean 'linux-router'?"],
        ),
        (f"{PLACE}lab: linux-router\nprocedures:\n{LOSS}", ["lab", "testbed"]),
        (
            f"{PLACE}procedures:\n{LOSS}    direction: []\n",
            ["direction: must have at least 1 entry", "measures nothing"],
        ),
        (
            f"{PLACE}procedures:\n{LOSS}    frame_size: [64, 1519]\n",
            ["1519 does not fit the left port", "at most 1518 bytes", "smaller frames"],
        ),
        (
            f"{PLACE}procedures:\n{LOSS}    frame_size: [63]\n",
            ["frame_size[0]: must be at least 64"],
        ),
        (
            f"{PLACE}procedures:\n{LOSS}    ip: [6]\n",
            ["testbed simulated has no IPv6 addresses", "take 6 out of ip"],
        ),
        (
            f"{PLACE}procedures:\n{LOSS}    frame_size: [64]\n    traffic: {IMIX}\n",
            ["give frame_size or traffic.imix, not both"],
        ),
        (
            f"{PLACE}procedures:\n  - procedure: throughput\n    load_percent: [50]\n",
            ["load_percent: unknown key: it is of frame-loss"],
        ),
        (
            f"{PLACE}procedures:\n{LOSS}    frame_timeout_ms: 3000\n",
            ["not below the wait for late frames, 2 s", "raise residual_wait_s"],
        ),
        (
            f"{PLACE}procedures:\n{LOSS}{LOSS}",
            ["procedures[1]: frame-loss-ip4-64-both is listed twice", "repeats"],
        ),
    ],
)
def test_a_campaign_that_makes_no_sense(
    dutperf: Dutperf, tmp_path: Path, written: str, told: list[str]
) -> None:
    Path("campaign.yaml").write_text(f"name: demo\n{written}")
    errors = dutperf("run", "campaign.yaml", code=2)
    assert [part for part in told if part not in errors] == [], errors
    assert [path.name for path in tmp_path.iterdir()] == ["campaign.yaml"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["run", "campaign.yaml", "--resume", "a", "--output", "b"], "leave --output"),
        (["run", "campaign.yaml", "--resume", "a", "--dry-run"], "--dry-run"),
        (["run", "campaign.yaml", "--standard", "--quick"], "contradict each other"),
        (["throughput", "testbed.yaml", "--lab", "linux-router"], "either a testbed"),
        (["throughput", "testbed.yaml", "--standard", "--quick"], "contradict"),
    ],
)
def test_options_that_contradict_each_other(
    dutperf: Dutperf, options: list[str], told: str
) -> None:
    Path("campaign.yaml").write_text(CAMPAIGN)
    errors = dutperf(*options, code=2)
    assert "error: " in errors
    assert "hint: " in errors
    assert told in errors


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a run of five trials leaves that ended before its results."""
    folder = tmp_path_factory.mktemp("stored")
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        here.setattr(sys, "argv", ["dutperf", "run", "campaign.yaml", "--output", "r"])
        Path("campaign.yaml").write_text(CAMPAIGN)
        assert simulated_program.main() == 0
    (folder / "r/results.json").unlink()
    assert len(load_journal(folder / "r").records) == 5
    return folder


@pytest.fixture
def ended(dutperf: Dutperf, stored: Path) -> Path:  # noqa: ARG001 - for its directory
    """Its directory, beside its campaign."""
    shutil.copytree(stored, Path(), dirs_exist_ok=True)
    return Path("r")


def resume(dutperf: Dutperf, code: int) -> str:
    return dutperf("run", "campaign.yaml", "--resume", "r", code=code)


def rewritten(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("left", "told"),
    [
        (-1, "going on after the last whole record, trial 4"),
        (-500, "going on after the last whole record, trial 4"),
        (30, "the run begins at its start"),
        (0, "the run begins at its start"),
    ],
)
def test_a_journal_that_ends_in_mid_line_is_gone_on_with(
    dutperf: Dutperf, ended: Path, left: int, told: str
) -> None:
    journal = ended / "journal.jsonl"
    content = journal.read_bytes()
    journal.write_bytes(content[: left if left >= 0 else len(content) + left])
    assert told in " ".join(resume(dutperf, code=0).split())
    numbers = [record.number for record in load_journal(ended).records]
    assert numbers == [1, 2, 3, 4, 5]


def test_a_report_of_it_says_so_too(dutperf: Dutperf, ended: Path) -> None:
    journal = ended / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-10])
    dutperf("report", "r", code=0)
    page = (ended / "report.html").read_text()
    assert "This run is not complete" in page
    assert "The last trial was being written and is lost" in page


@pytest.mark.parametrize(
    ("old", "new", "told", "todo"),
    [
        (
            '"schema_version":3',
            '"schema_version":2',
            "has schema version 2",
            "use the dutperf that wrote it",
        ),
        (
            '"schema_version":3',
            '"schema_version":4',
            "has schema version 4",
            "use the dutperf that wrote it",
        ),
        (
            '"campaign":"demo"',
            '"campaign":"other"',
            "a run of another campaign: other, not demo",
            "r/campaign.yaml",
        ),
        (
            '"number":2,',
            '"number":2',
            "r/journal.jsonl:3 is not valid JSON",
            "cut the file off there, and resume",
        ),
        (
            '"number":2,',
            '"number":7,',
            "its trials are not numbered 1, 2, 3, ...",
            "changed by hand, or damaged",
        ),
    ],
)
def test_a_journal_of_something_else_is_refused_and_kept(
    dutperf: Dutperf, ended: Path, old: str, new: str, told: str, todo: str
) -> None:
    journal = ended / "journal.jsonl"
    rewritten(journal, old, new)
    before = {path: path.read_bytes() for path in ended.iterdir()}
    errors = resume(dutperf, code=2)
    assert told in errors
    assert todo in errors
    assert {path: path.read_bytes() for path in ended.iterdir()} == before


def test_a_journal_that_was_measured_otherwise_is_refused(
    dutperf: Dutperf, ended: Path
) -> None:
    """The journal of a campaign of the same name, its campaign.yaml exchanged."""
    for path in (Path("campaign.yaml"), ended / "campaign.yaml"):
        rewritten(path, "50", "40")
    errors = resume(dutperf, code=2)
    assert "trial 5 of the journal is not the one that this run would" in errors
    assert "load_fps: was 500, is 400" in errors


def test_a_directory_that_holds_a_run_is_not_overwritten(
    dutperf: Dutperf, ended: Path
) -> None:
    errors = dutperf("run", "campaign.yaml", "--output", "r", code=2)
    assert "r holds the files of another run" in errors
    assert "--resume r" in errors
    assert len(load_journal(ended).records) == 5


@pytest.mark.parametrize("what", ["nowhere", "campaign.yaml", "empty"])
def test_what_holds_no_run_cannot_be_resumed(dutperf: Dutperf, what: str) -> None:
    Path("campaign.yaml").write_text(CAMPAIGN)
    Path("empty").mkdir()
    errors = dutperf("run", "campaign.yaml", "--resume", what, code=2)
    assert f"{what} holds no run to resume" in errors
    shutil.rmtree("empty")
    assert not Path("nowhere").exists()
