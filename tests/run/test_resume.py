"""A run that ended early goes on where it was, and ends as if nothing had been."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest
from captures import datagram, written
from planning import TWO_CELLS, Run, campaign, spec

from dutperf.config import Campaign, load_campaign, spec_from
from dutperf.config.captures import with_captures
from dutperf.errors import InputError, SetupError
from dutperf.procedures.events import ReportWritten, TrialReplayed
from dutperf.protocol.result_messages import ReasonCode
from dutperf.results import (
    ResultsDirectory,
    ResultsFile,
    load_environment,
    load_journal,
    load_results,
)
from dutperf.simulation.fake_engine import FakeEngine, step

MIXED = campaign(
    spec(resolution="5%", repeats=2, frame_size=[128]),
    spec(procedure="frame-loss", load_percent=[100, 50], restabilise_wait_s=4),
    spec(procedure="latency", rate_fps=1000, repeats=2, trial_duration_s=120),
)


def engine(
    done: int = 0, end: int | None = None, by: type[BaseException] = KeyboardInterrupt
) -> FakeEngine:
    """One simulated device; ``done`` trials were measured on it before.

    Its 2nd and 15th trial are spoilt. Trial ``end``, if given, ends the run.
    """
    spoilt: dict[int, ReasonCode | BaseException] = {
        2 - done: "link_changed",
        15 - done: "clock_unstable",
    }
    return FakeEngine(step(300_000), troubles=spoilt | ({end: by()} if end else {}))


def told(results: ResultsFile) -> tuple[object, ...]:
    """All but times of day and counters of ports, which go on counting."""
    trials = [
        (
            *(t.number, t.cell, t.repeat, t.attempt, t.load_fps, t.request),
            *(t.result.verdict, t.result.directions),
        )
        for t in results.trials
    ]
    return results.complete, results.cells, trials


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> ResultsFile:
    """The run without any interruption."""
    return Run(tmp_path_factory.mktemp("whole") / "run", engine())(MIXED)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run"


def interrupted(path: Path, at_trial: int, what: Campaign = MIXED) -> None:
    with pytest.raises(KeyboardInterrupt):
        Run(path, engine(end=at_trial))(what)


def test_wherever_it_was_interrupted_the_results_are_the_same(
    tmp_path: Path, whole: ResultsFile
) -> None:
    for last in (1, 2, 3, *range(4, len(whole.trials) + 1, 4)):
        path = tmp_path / str(last)
        interrupted(path, last)
        rest = Run(path, engine(last - 1))
        results = rest.resume(MIXED)
        assert told(results) == told(whole)
        assert load_results(path) == results
        assert list(load_journal(path).records) == results.trials
        assert len(rest.engine.trials) == len(whole.trials) - (last - 1)


def test_a_run_may_be_interrupted_again_and_again(
    path: Path, whole: ResultsFile
) -> None:
    interrupted(path, 3)
    for done in range(2, len(whole.trials) - 2, 2):
        with pytest.raises(KeyboardInterrupt):
            Run(path, engine(done, end=3)).resume(MIXED)
        assert len(load_results(path).trials) == done + 2
    done = len(load_journal(path).records)
    assert told(Run(path, engine(done)).resume(MIXED)) == told(whole)


def test_it_keeps_the_time_at_which_it_began(path: Path) -> None:
    interrupted(path, 2)
    before = load_results(path).created_at
    assert Run(path, engine(1)).resume(MIXED).created_at == before


def test_stored_trials_cost_no_wait_and_the_first_new_one_does(path: Path) -> None:
    waits: list[float] = []
    interrupted(path, 4, campaign(spec(restabilise_wait_s=7)))
    run = Run(path, engine(3), sleep=waits.append)
    run.resume(campaign(spec(restabilise_wait_s=7)))
    replayed = [e for e in run.events if isinstance(e, TrialReplayed)]
    assert len(replayed) == 3
    assert waits == [7] * len(run.engine.trials)


def test_a_complete_run_has_nothing_left_but_its_report(path: Path) -> None:
    results = Run(path, engine())(MIXED)
    again = Run(path, engine())
    assert again.resume(MIXED) == results
    assert not again.engine.trials
    assert any("nothing is left to measure" in text for text in again.notices)
    assert isinstance(again.events[-1], ReportWritten)


def test_a_run_that_ended_after_its_last_trial_needs_no_other(
    path: Path, whole: ResultsFile
) -> None:
    Run(path, engine())(MIXED)
    (path / "results.json").unlink()
    again = Run(path, engine())
    assert told(again.resume(MIXED)) == told(whole)
    assert not again.engine.trials


@pytest.mark.parametrize("left", ["", '{"schema_version": 3, "dutp'])
def test_a_run_that_ended_before_its_first_trial_begins_again(
    path: Path, whole: ResultsFile, left: str
) -> None:
    path.mkdir()
    (path / "journal.jsonl").write_text(left)
    run = Run(path, engine())
    assert told(run.resume(MIXED)) == told(whole)
    assert any("the run begins at its start" in text for text in run.notices)


@pytest.mark.parametrize("cut", [1, 2, 500])
def test_a_torn_last_line_is_measured_again_and_that_is_said(
    path: Path, whole: ResultsFile, cut: int
) -> None:
    interrupted(path, 4)
    journal = path / "journal.jsonl"
    os.truncate(journal, journal.stat().st_size - cut)
    run = Run(path, engine(2))
    assert told(run.resume(MIXED)) == told(whole)
    assert "going on after the last whole record, trial 2" in run.notices[0]
    assert [r.number for r in load_journal(path).records] == list(
        range(1, len(whole.trials) + 1)
    )


def test_a_full_disk_can_be_mended_and_the_run_resumed(
    path: Path, whole: ResultsFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    append = ResultsDirectory.append

    def refuse(self: ResultsDirectory, record: object) -> None:
        if len(self.records) == 5:
            raise SetupError("journal.jsonl: no space left on device")
        append(self, record)  # type: ignore[arg-type]

    with monkeypatch.context() as full:
        full.setattr(ResultsDirectory, "append", refuse)
        with pytest.raises(SetupError, match="no space"):
            Run(path, engine())(MIXED)
    assert told(Run(path, engine(5)).resume(MIXED)) == told(whole)


def test_a_changed_campaign_is_refused_with_the_difference(path: Path) -> None:
    interrupted(path, 2)
    before = (path / "journal.jsonl").read_bytes()
    changed = [
        MIXED.procedures[0].model_copy(update={"resolution": "1%"}),
        *MIXED.procedures[1:],
    ]
    run = Run(path, engine())
    with pytest.raises(InputError) as caught:
        run.resume(MIXED.model_copy(update={"procedures": changed, "seed": 9}))
    assert "the campaign has changed" in caught.value.message
    assert "\nseed: was 1, is 9" in caught.value.message
    assert "\nprocedures[0].resolution: was 5%, is 1%" in caught.value.message
    assert not run.engine.trials
    assert (path / "journal.jsonl").read_bytes() == before


def test_the_stored_campaign_is_the_same_one(path: Path, whole: ResultsFile) -> None:
    interrupted(path, 2)
    stored = load_campaign(path / "campaign.yaml")
    assert told(Run(path, engine(1)).resume(stored)) == told(whole)


def test_a_procedure_more_is_a_change(path: Path) -> None:
    interrupted(path, 2, TWO_CELLS)
    longer = campaign(*TWO_CELLS.procedures, spec(procedure="frame-loss"))
    with pytest.raises(InputError) as caught:
        Run(path, engine()).resume(longer)
    told_of = "procedures[2]: was absent, is a block of keys (frame-loss)"
    assert told_of in caught.value.message


def test_another_campaigns_directory_is_refused(path: Path) -> None:
    interrupted(path, 2)
    with pytest.raises(InputError, match="another campaign: simulation, not other"):
        Run(path, engine()).resume(MIXED.model_copy(update={"name": "other"}))


def test_a_search_that_would_go_another_way_is_refused(path: Path) -> None:
    """As with ports of another speed, or another dutperf."""
    what = campaign(spec(max_rate_fps=None, resolution="5%"))
    interrupted(path, 3, what)
    results = (path / "results.json").read_bytes()
    run = Run(path, FakeEngine(step(300_000), link_speed_mbps=1000))
    with pytest.raises(InputError) as caught:
        run.resume(what)
    assert "trial 2 of the journal is not the one" in caught.value.message
    assert "load_fps: was 14880952, is 1488095" in caught.value.message
    assert (path / "results.json").read_bytes() == results
    assert not run.engine.trials


def test_an_environment_that_changed_is_told_and_the_first_is_kept(
    path: Path,
) -> None:
    interrupted(path, 2)
    file = path / "environment.json"
    file.write_text(file.read_text().replace('"fake"', '"older"'))
    run = Run(path, engine(1))
    run.resume(MIXED)
    change = "engine_version: was older, is fake"
    assert f"not as when the run began: {change}" in run.notices
    assert load_environment(path).engine_version == "older"
    # ... and it is kept with the trials that it concerns, in the results, too.
    for (part,) in (load_environment(path).parts, load_results(path).parts):
        assert (part.first_trial, part.changes) == (2, [change])


def test_a_part_without_a_trial_is_no_part(path: Path) -> None:
    interrupted(path, 3)
    for done, end in ((2, 1), (2, 2), (3, None)):
        run = Run(path, engine(done, end=end))
        with contextlib.suppress(KeyboardInterrupt):
            run.resume(MIXED)
    assert [part.first_trial for part in load_results(path).parts] == [3, 4]


def test_a_run_does_not_go_on_with_another_kind_of_port(path: Path) -> None:
    interrupted(path, 2)
    file = path / "environment.json"
    environment = load_environment(path)
    ports = [
        port.model_copy(update={"driver": "af_packet"}) for port in environment.ports
    ]
    changed = environment.model_copy(update={"ports": ports})
    file.write_text(changed.model_dump_json())
    run = Run(path, engine(1))
    with pytest.raises(InputError, match=r"left\.driver: was af_packet") as caught:
        run.resume(MIXED)
    assert "--output" in caught.value.hint
    assert run.engine.trials == []


@pytest.mark.parametrize("left", [None, "", "{"])
def test_an_environment_that_was_lost_stops_nobody(
    path: Path, left: str | None
) -> None:
    interrupted(path, 2)
    file = path / "environment.json"
    file.unlink() if left is None else file.write_text(left)
    run = Run(path, engine(1))
    assert run.resume(MIXED).complete
    assert any("no environment is stored any more" in text for text in run.notices)
    assert '"fake"' in file.read_text()


def test_a_campaign_that_was_lost_is_asked_for(path: Path) -> None:
    interrupted(path, 2)
    (path / "campaign.yaml").unlink()
    with pytest.raises(InputError, match="nobody can tell what the run") as caught:
        Run(path, engine()).resume(MIXED)
    assert "put the file back" in caught.value.hint


def test_a_directory_in_use_is_refused(path: Path) -> None:
    interrupted(path, 2)

    class Greedy(FakeEngine):
        """While it measures, somebody resumes the same run."""

        def measure(self, *_: object) -> None:  # type: ignore[override]
            Run(path, engine()).resume(MIXED)

    with pytest.raises(InputError, match="in use by another run"):
        Run(path, Greedy(step(1))).resume(MIXED)
    Run(path, engine(1)).resume(MIXED)  # and is free afterwards


@pytest.mark.parametrize("what", ["absent", "empty"])
def test_what_holds_no_run_cannot_be_resumed(path: Path, what: str) -> None:
    if what == "empty":
        path.mkdir()
    with pytest.raises(InputError, match="holds no run to resume"):
        Run(path, engine()).resume(MIXED)


def test_trials_that_are_not_in_order_are_refused(path: Path) -> None:
    interrupted(path, 4)
    journal = path / "journal.jsonl"
    header, first, *_ = journal.read_text().splitlines(keepends=True)
    journal.write_text(header + first + first)
    with pytest.raises(InputError, match="not numbered 1, 2, 3"):
        Run(path, engine()).resume(MIXED)


def test_more_trials_than_the_campaign_needs_are_refused(path: Path) -> None:
    what = campaign(spec(procedure="frame-loss", load_percent=[100]))
    Run(path, engine())(what)
    (path / "results.json").unlink()
    journal = path / "journal.jsonl"
    whole = journal.read_text()
    again = whole.splitlines(keepends=True)[-1].replace('"number":3', '"number":4', 1)
    journal.write_text(whole + again)
    with pytest.raises(InputError, match="needs only the first 3"):
        Run(path, engine()).resume(what)
    assert journal.exists()


def test_captures_that_no_stored_campaign_can_hold_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At a tenth of the limit; what is refused has left no directory."""
    monkeypatch.setattr("dutperf.run.campaign_run.LARGEST_STORED_BYTES", 100_000)
    packets = [datagram(ports=(n, n)) for n in range(300)]
    file = str(written(tmp_path / "a.pcap", packets))

    def asked(test_cases: int) -> Campaign:
        profiles = [
            {"pcap": file, "addresses": count} for count in range(2, test_cases + 2)
        ]
        keys = {"procedure": "throughput", "ip": 4, "traffic": profiles}
        return campaign(*with_captures([spec_from(keys, "test")], tmp_path))

    run = Run(tmp_path / "r", engine())
    with pytest.raises(
        InputError, match=r"the stored campaign 0\.1 MB long"
    ) as refused:
        run(asked(12))
    assert "fewer test cases" in refused.value.hint
    assert not run.path.exists()
