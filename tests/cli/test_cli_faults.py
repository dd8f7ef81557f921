"""What goes wrong at any moment of a run costs nothing that was measured before.

The device is simulated, so that each moment is met exactly; on real ones:
``tests/live/test_live_disasters.py``. Which faults there are: ``docs/faults.md``.
"""

from __future__ import annotations

import functools
import re
import shlex
import subprocess
import textwrap
from pathlib import Path

import pytest
from programs import ProgramServer
from simulated_program import (
    FAULT_VARIABLE,
    FAULTY_TRIAL,
    FILES,
    JUMPS_VARIABLE,
    STEPS,
)

from dutperf.results import ResultsFile, load_journal, load_results

CAMPAIGN = """\
name: faults
testbed:
  name: simulated
  left:
    port: {interface: left}
    ipv4: {address: 198.18.0.2, gateway: 198.18.0.1}
  right:
    port: {interface: right}
    ipv4: {address: 198.19.0.2, gateway: 198.19.0.1}
procedures:
  - procedure: throughput
    frame_size: [64]
    max_rate_fps: 1000000
    resolution: 20%
    restabilise_wait_s: 0
  - procedure: frame-loss
    frame_size: [64]
    max_rate_fps: 1000000
    load_percent: [100, 50]
    restabilise_wait_s: 0
"""
STORED = {
    "campaign.yaml",
    "environment.json",
    "journal.jsonl",
    "results.json",
    "report.html",
}
PATIENCE_S = 60
server = functools.cache(lambda: ProgramServer("--simulated"))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("campaign.yaml").write_text(CAMPAIGN)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> ResultsFile:
    """What a run finds that nothing happens to."""
    place = tmp_path_factory.mktemp("whole")
    (place / "campaign.yaml").write_text(CAMPAIGN)
    done = run("run", str(place / "campaign.yaml"), "--output", str(place / "r"))
    assert done.returncode == 0, done.stderr
    return load_results(place / "r")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    done = server().run(arguments, PATIENCE_S)
    assert "Traceback" not in done.stderr, done.stderr
    return done


def struck(
    fault: str, monkeypatch: pytest.MonkeyPatch, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """A run to which ``fault`` happens; ``arguments``: another than of the campaign."""
    with monkeypatch.context() as patch:
        patch.setenv(FAULT_VARIABLE, fault)
        return run(*(arguments or ("run", "campaign.yaml", "--output", "r")))


def found(results: ResultsFile) -> tuple[object, ...]:
    """All that does not depend on when it was measured."""
    trials = [
        (t.number, t.cell, t.repeat, t.attempt, t.load_fps, t.request, t.result.verdict)
        for t in results.trials
    ]
    return results.complete, results.cells, trials


def kept() -> int:
    """How many trials the journal has, each whole; 0 without a journal."""
    journal = Path("r/journal.jsonl")
    return len(load_journal(journal).records) if journal.exists() else 0


def ends_as(whole: ResultsFile) -> None:
    """The run goes on at once, finds what it would have, and leaves nothing else."""
    way = "--resume" if Path("r").exists() else "--output"
    before = kept()
    done = run("run", "campaign.yaml", way, "r")
    assert done.returncode == 0, done.stderr
    taken = f"resuming: {before} finished trials are in r/journal.jsonl"
    assert taken in done.stderr or before == 0
    assert found(load_results(Path("r"))) == found(whole)
    assert {path.name for path in Path("r").iterdir()} == STORED
    assert {path.name for path in Path().iterdir()} == {"campaign.yaml", "r"}


TRIALS = {"sending": FAULTY_TRIAL - 1, "sent": FAULTY_TRIAL - 1}
"""How many are stored at a moment; at those before them none, else all."""
EARLY = {"engine start", "next hops", "campaign", "environment"}


def stored_at(moment: str, whole: ResultsFile) -> int:
    return 0 if moment in EARLY else TRIALS.get(moment, len(whole.trials))


@pytest.mark.parametrize("moment", [*STEPS, *FILES])
def test_killed_in_any_phase_it_loses_nothing(
    moment: str, whole: ResultsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert struck(f"{moment}:SIGKILL", monkeypatch).returncode == -9
    half_a_line = {"journal": FAULTY_TRIAL - 1}
    first_cell = {"results": len([t for t in whole.trials if "throughput" in t.cell])}
    expected = half_a_line | first_cell
    assert kept() == expected.get(moment, stored_at(moment, whole))
    ends_as(whole)


@pytest.mark.parametrize("moment", [*STEPS, *FILES])
def test_interrupted_at_any_moment_it_says_how_to_go_on(
    moment: str, whole: ResultsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = struck(f"{moment}:SIGINT", monkeypatch)
    assert done.returncode == 130
    assert "interrupted; results so far are in r" in done.stderr
    go_on = "hint: go on where it ended: dutperf run --resume r"
    assert (go_on in done.stderr) == Path("r/campaign.yaml").exists()
    assert not list(Path("r").glob(".*"))
    if kept():
        assert [t.number for t in load_results(Path("r")).trials] == [
            r.number for r in load_journal(Path("r")).records
        ]
        assert Path("r/report.html").exists() or moment == "report"
    ends_as(whole)


@pytest.mark.parametrize("moment", FILES)
def test_a_disk_that_is_full_for_any_file_is_told(
    moment: str, whole: ResultsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = struck(f"{moment}:ENOSPC", monkeypatch)
    file = FILES[moment].removeprefix(".").removesuffix(".new")
    assert done.returncode == 3
    assert f"error: cannot write r/{file}: No space left on device" in done.stderr
    assert "hint: free some space" in done.stderr
    go_on = "then go on where it ended: dutperf run --resume r"
    assert (go_on in done.stderr) == (kept() > 0) == (moment not in EARLY)
    assert not list(Path("r").glob(".*"))
    ends_as(whole)


def test_killed_while_trials_are_taken_from_its_journal_it_loses_nothing(
    whole: ResultsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    struck("results:SIGKILL", monkeypatch)
    before = kept()
    resumed = ("run", "campaign.yaml", "--resume", "r")
    for moment in ("engine start", "next hops"):
        assert struck(f"{moment}:SIGKILL", monkeypatch, *resumed).returncode == -9
        assert kept() == before
    ends_as(whole)


def test_a_tester_without_memory_says_so_and_goes_on_later(
    whole: ResultsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = struck("sending:MemoryError", monkeypatch)
    assert done.returncode == 3
    assert "error: this machine has no memory left for dutperf" in done.stderr
    assert "hint: free some" in done.stderr
    assert "hint: then go on where it ended: dutperf run --resume r" in done.stderr
    assert kept() == FAULTY_TRIAL - 1
    ends_as(whole)


@pytest.mark.parametrize("jumps", ["86400", "-86400", "86400,-86400"])
def test_the_time_of_day_may_jump(
    jumps: str, whole: ResultsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the stamps of trials and files nothing depends on it."""
    monkeypatch.setenv(JUMPS_VARIABLE, jumps)
    struck("sent:SIGKILL", monkeypatch)
    days = {r.started_at[:10] for r in load_journal(Path("r")).records}
    assert len(days) == (2 if "," in jumps else FAULTY_TRIAL - 1)
    ends_as(whole)


def test_what_a_command_without_a_campaign_file_measured_is_continued_by_the_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    testbed = CAMPAIGN[CAMPAIGN.index("  name: sim") : CAMPAIGN.index("procedures")]
    Path("testbed.yaml").write_text(textwrap.dedent(testbed))
    load = ("--max-rate", "1000000", "--frame-size", "64", "--restabilise-wait", "0")
    asked = ("throughput", "testbed.yaml", *load, "--output", "r")
    done = struck("sent:SIGINT", monkeypatch, *asked)
    (hint,) = re.findall("where it ended: dutperf (.*)", done.stderr)
    again = run(*shlex.split(hint))
    assert again.returncode == 0, again.stderr
    assert load_results(Path("r")).complete
