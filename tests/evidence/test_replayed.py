"""A run that was forged in journal and results alike is found by its own code."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gateways import NAT44
from planning import TESTBED, Run, campaign, spec

from dutperf import __version__
from dutperf.cli import app, verify_command
from dutperf.config import Campaign, PlannedTestbed
from dutperf.evidence import Verification, verify
from dutperf.report import write_report
from dutperf.results import ResultsFile
from dutperf.run.campaign_run import results_again
from dutperf.run.openings import Openings
from dutperf.simulation.fake_engine import (
    FakeEngine,
    SimulatedNat,
    buffered,
    jitter,
    perfect,
)

Json = dict[str, Any]
Forge = Callable[[list[Json], Json], None]


def plan(_campaign: Campaign) -> list[PlannedTestbed]:
    return [PlannedTestbed(testbed=TESTBED)]


def verified(path: Path) -> Verification:
    return verify(path, plan, results_again, write_report)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results directory; nobody writes to it."""
    path = tmp_path_factory.mktemp("replayed") / "run"
    engine = FakeEngine(buffered(999, 200_000), delays=jitter(20_000, 90_000))
    run = Run(path, engine)
    run.around = replace(run.around, write_report=write_report)
    short = {"trial_duration_s": 1, "frame_size": [1518]}
    run(
        campaign(
            spec(resolution="5%", repeats=3, **short),
            spec(procedure="frame-loss", load_percent=[100, 50], **short),
            spec(procedure="back-to-back", repeats=2, frame_size=[1518]),
        )
    )
    return path


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def wrong(path: Path) -> dict[str, list[str]]:
    return {check.name: check.wrong for check in verified(path).checks if check.wrong}


def forged(path: Path, forge: Forge) -> None:
    """Journal and results changed alike, as someone would who knows the files."""
    journal, results = path / "journal.jsonl", path / "results.json"
    header, *trials = map(json.loads, journal.read_text().splitlines())
    stored = json.loads(results.read_text())
    forge(trials, stored)
    for number, trial in enumerate(trials, 1):
        trial["number"] = number
    stored["trials"] = trials
    lines = [json.dumps(each, separators=(",", ":")) for each in (header, *trials)]
    journal.write_text("\n".join(lines) + "\n")
    results.write_text(json.dumps(stored, separators=(",", ":")))


def replaced(path: Path, old: str, new: str, *names: str) -> None:
    for name in names:
        text = (path / name).read_text()
        assert old in text, name
        (path / name).write_text(text.replace(old, new))


def test_a_run_is_what_its_journal_makes(run: Path) -> None:
    found = verified(run)
    assert wrong(run) == {}
    assert [c.name for c in found.checks if not c.looked] == ["sums", "signature"]


def test_frames_of_1518_bytes_are_not_sold_as_64(run: Path) -> None:
    for old, new in (
        ("ip4-1518-", "ip4-64-"),
        ('"frame_size":1518', '"frame_size":64'),
    ):
        replaced(run, old, new, "results.json")
    replaced(run, "ip4-1518-", "ip4-64-", "journal.jsonl")
    replaced(run, "1518", "64", "campaign.yaml")
    assert "replay" in wrong(run)


def test_trials_of_a_second_are_not_sold_as_60(run: Path) -> None:
    replaced(run, "trial_duration_s: 1", "trial_duration_s: 60", "campaign.yaml")
    old, new = '"trial_duration_s":1.0', '"trial_duration_s":60.0'
    replaced(run, old, new, "results.json")
    assert any("duration_ns" in line for line in wrong(run)["replay"])


def test_a_key_that_came_later_changes_nothing(run: Path) -> None:
    """A cell that does not have it means what the key does not change."""
    replaced(run, '"group":null,', "", "results.json")
    assert wrong(run) == {}


def test_but_one_that_said_something_is_missed(run: Path) -> None:
    replaced(run, '"trial_duration_s":1.0,', "", "results.json")
    assert any("trial_duration_s" in line for line in wrong(run)["replay"])


def test_nor_if_the_requests_were_changed_too(run: Path) -> None:
    """Then the counts are of other trials."""
    test_trials_of_a_second_are_not_sold_as_60(run)
    old, new = '"duration_ns":1000000000', '"duration_ns":60000000000'
    replaced(run, old, new, "journal.jsonl", "results.json")
    assert "journal" in wrong(run)


def test_a_time_that_is_none_is_told(run: Path) -> None:
    def forge(trials: list[Json], _stored: Json) -> None:
        trials[1]["started_at"] = "yesterday"

    forged(run, forge)
    assert any("which is no time" in line for line in wrong(run)["journal"])


def test_a_repeat_that_was_deleted_is_missed(run: Path) -> None:
    def forge(trials: list[Json], stored: Json) -> None:
        cell = stored["cells"][0]["id"]
        gone = [t for t in trials if t["cell"] == cell and t["repeat"] == 2]
        assert gone
        trials[:] = [t for t in trials if t not in gone]
        for trial in trials:
            if trial["cell"] == cell and trial["repeat"] == 3:
                trial["repeat"] = 2

    forged(run, forge)
    assert "replay" in wrong(run)


def test_two_trials_that_were_exchanged_are_found(run: Path) -> None:
    """Their times run backwards."""

    def forge(trials: list[Json], _stored: Json) -> None:
        for number, trial in enumerate(trials):
            trial["started_at"] = f"2026-01-01T00:00:00.{number:03}+00:00"
        trials[0], trials[1] = trials[1], trials[0]

    forged(run, forge)
    assert any("began at" in line for line in wrong(run)["journal"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"status":"none"', '"status":"unconditional"'),
        ("RFC 2544 26.1)", "RFC 2544 26.3)"),
        ('"unit":"fps"', '"unit":"frames"'),
        ("trial duration of at least 60 s", "trial duration"),
        ('"max_load_fps":1000000', '"max_load_fps":2000000'),
        ('"link_speed_mbps":10000', '"link_speed_mbps":1000'),
    ],
)
def test_words_of_a_result_are_made_again(run: Path, old: str, new: str) -> None:
    replaced(run, old, new, "results.json")
    assert "replay" in wrong(run)


def test_a_report_with_other_numbers_is_refused(run: Path) -> None:
    replaced(run, "195,312", "995,312", "report.html")
    assert list(wrong(run)) == ["report"]


def test_a_run_of_another_version_is_less_proven_not_refused(run: Path) -> None:
    """Another dutperf may ask for other trials, and make another report."""
    mine = f'"dutperf_version":"{__version__}"'
    other = '"dutperf_version":"0.9.0"'
    replaced(run, mine, other, "journal.jsonl")
    replaced(run, "195,312", "995,312", "report.html")
    replaced(run, '"unit":"fps"', '"unit":"frames"', "results.json")
    told = verified(run)
    assert (told.good, told.proven) == (True, False)
    found = {check.name: check for check in told.checks}
    for name in ("replay", "report"):
        assert found[name].wrong == []
        assert not found[name].looked
        assert "dutperf 0.9.0 made it" in found[name].unknown[0]


def of_another_version(path: Path) -> None:
    mine = f'"dutperf_version":"{__version__}"'
    replaced(path, mine, '"dutperf_version":"0.9.0"', "journal.jsonl")
    replaced(path, '"unit":"fps"', '"unit":"frames"', "results.json")


def of_a_campaign_that_nobody_reads(path: Path) -> None:
    """And no report, which would differ."""
    replaced(path, "procedures:", "proceedings:", "campaign.yaml")
    (path / "report.html").unlink()


@pytest.mark.parametrize("forge", [of_another_version, of_a_campaign_that_nobody_reads])
def test_what_cannot_be_judged_is_not_taken_for_good(
    run: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    forge: Callable[[Path], None],
) -> None:
    monkeypatch.setattr(verify_command, "planned_testbeds", plan)
    assert app.run(["verify", str(run)]) == 0
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.endswith("against these results; not looked at: sums, signature")
    forge(run)
    assert app.run(["verify", str(run)]) == 5
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("not proven: ")
    assert "replay" in last
    assert app.run(["verify", str(run), "--json"]) == 5
    told = json.loads(capsys.readouterr().out)
    assert (told["good"], told["proven"]) == (True, False)


def test_of_a_run_that_ended_early_what_there_is_is_made_again(run: Path) -> None:
    def forge(trials: list[Json], stored: Json) -> None:
        gone = stored["cells"].pop()["id"]
        trials[:] = [t for t in trials if t["cell"] != gone]
        stored["complete"] = False

    forged(run, forge)
    write_report(run)
    assert wrong(run) == {}


# --- of a device that may know what would be opened


def plan_of_nat44(_campaign: Campaign) -> list[PlannedTestbed]:
    return [PlannedTestbed(testbed=NAT44)]


REMAINING = campaign(
    *(
        spec(
            procedure="connection-rate",
            resolution="10%",
            max_rate_fps=20_000,
            stateful={"connections": number, "timeout_ms": 50, **keys},
        )
        for number, keys in ((2000, {}), (700, {"table_size": 10**6}), (900, {}))
    )
)


def at_nat44(path: Path, nat: SimulatedNat, end: int | None = None) -> Run:
    """What it opened is in no file; ``end``: the trial that it dies in."""
    return Run(
        path,
        FakeEngine(
            perfect(), nat=nat, troubles={end: KeyboardInterrupt()} if end else None
        ),
        testbed=NAT44,
        openings=Openings(None, ("left", "right"), now=lambda: nat.now_ns / 1e9),
        sleep=lambda seconds: nat.wait(int(seconds * 1e9)),
    )


def codes(results: ResultsFile) -> list[list[str]]:
    return [[reason.code for reason in cell.reasons] for cell in results.cells]


@pytest.fixture(scope="module")
def remaining(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose first cell could open connections once, and its last not at all."""
    path = tmp_path_factory.mktemp("remaining") / "run"
    results = at_nat44(path, SimulatedNat(connection_rate_fps=5000))(REMAINING)
    assert codes(results) == [["connections_remain"], [], ["connections_remain"]]
    return path


@pytest.fixture
def left(remaining: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(remaining, tmp_path / "run"))


def of_nat44(path: Path) -> Verification:
    return verify(path, plan_of_nat44, results_again)


@pytest.mark.parametrize("end", [1, 4])
def test_a_run_goes_on_behind_a_cell_that_could_open_nothing(
    end: int, tmp_path: Path
) -> None:
    """Whatever results.json tells of it: a kill may have come before."""
    nat = SimulatedNat(connection_rate_fps=5000)
    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        at_nat44(path, nat, end)(REMAINING)
    (path / "results.json").unlink(missing_ok=True)
    results = at_nat44(path, nat).resume(REMAINING)
    assert codes(results) == [["connections_remain"], [], ["connections_remain"]]
    assert [(c.name, c.wrong) for c in of_nat44(path).checks if c.wrong] == []


def test_a_cell_that_could_open_nothing_is_made_again(left: Path) -> None:
    found = of_nat44(left)
    assert [(c.name, c.wrong) for c in found.checks if c.wrong] == []
    (replay,) = (c for c in found.checks if c.name == "replay")
    assert replay.looked
    assert len(replay.unknown) == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"verdict":"invalid"', '"verdict":"fail"'),
        ("not measured", "measured"),
        ("no hook empties its table", "a hook empties its table"),
    ],
)
def test_nor_is_anything_else_excused_by_that(left: Path, old: str, new: str) -> None:
    replaced(left, old, new, "results.json")
    (replay,) = (c for c in of_nat44(left).checks if c.name == "replay")
    assert replay.wrong
