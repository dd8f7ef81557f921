from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from planning import TESTBED, Run, campaign, spec

from dutperf.config import PlannedTestbed, Testbed, load_campaign
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.errors import EngineError, InputError, SetupError
from dutperf.procedures.events import (
    CellStarted,
    Notice,
    ReportWritten,
    ResultsChanged,
    RunStarted,
)
from dutperf.protocol.port_messages import PortSpec, PortsResult
from dutperf.protocol.result_messages import ReasonCode, TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import (
    ResultsDirectory,
    ResultsFile,
    TrialRecord,
    load_environment,
    load_journal,
    load_results,
)
from dutperf.run.campaign_run import run_campaign
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.simulation.fake_engine import FakeEngine, perfect, step

Troubles = Mapping[int, ReasonCode | BaseException]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run"


def test_a_campaign_leaves_complete_results_of_all_cells(path: Path) -> None:
    run = Run(path, FakeEngine(step(300_000)))
    results = run()
    assert results.complete
    assert [cell.id for cell in results.cells] == [
        "throughput-ip4-128-both",
        "throughput-ip6-128-both",
    ]
    assert load_results(path) == results
    assert list(load_journal(path).records) == results.trials
    assert run.reports == 1
    assert run.opener.ended


def test_each_result_says_which_rfc_it_conforms_to_and_how_far(path: Path) -> None:
    short = spec(ip=[4, 6], trial_duration_s=1)
    tolerant = spec(loss_tolerance_percent=0.1)
    results = Run(path, FakeEngine(step(300_000)))(campaign(short, tolerant))
    told = [cell.conformance for cell in results.cells]
    assert [(t.rfc, t.status) for t in told if t] == [
        ("RFC 2544", "none"),
        ("RFC 5180", "none"),
        ("RFC 2544", "other_measure"),
    ]
    assert told[0]
    assert (
        told[0].statement
        == "exploratory run, not a result by RFC 2544 26.1: trials of 1 s"
    )
    assert {d.level for d in results.cells[0].deviations} == {"SHOULD"}


def test_the_stored_campaign_and_environment_can_be_read_again(path: Path) -> None:
    Run(path, FakeEngine(perfect()))()
    assert load_campaign(path / "campaign.yaml").testbeds == [TESTBED]
    assert load_environment(path).engine_version == "fake"


def test_watchers_learn_directory_cells_results_and_report(path: Path) -> None:
    run = Run(path, FakeEngine(perfect()))
    run()
    kinds = (RunStarted, CellStarted, ResultsChanged, ReportWritten)
    assert [type(e) for e in run.events if isinstance(e, kinds)] == [
        RunStarted,
        CellStarted,
        ResultsChanged,
        CellStarted,
        ResultsChanged,
        ResultsChanged,
        ReportWritten,
    ]


def test_one_engine_serves_both_procedures(path: Path) -> None:
    run = Run(path, FakeEngine(perfect()))
    results = run(campaign(spec(), spec(procedure="frame-loss")))
    assert [cell.procedure for cell in results.cells] == ["throughput", "frame-loss"]
    assert [t.trial_id for t in run.engine.trials] == [1, 2, 3, 4, 5]


def test_addresses_outside_the_benchmarking_networks_are_a_notice(path: Path) -> None:
    data = TESTBED.model_dump(exclude_none=True)
    data["left"]["ipv4"] = {"address": "10.0.0.2", "gateway": "10.0.0.1"}
    run = Run(path, FakeEngine(perfect()))
    outside = type(TESTBED).model_validate(data)
    run_campaign(
        campaign(spec()),
        [PlannedTestbed(testbed=outside)],
        run.around,
        on_event=run.events.append,
        results_dir=path,
    )
    notices = [e.text for e in run.events if isinstance(e, Notice)]
    assert "10.0.0.2 is outside 198.18.0.0/15" in notices[0]


def test_what_is_wrong_beforehand_leaves_no_directory(path: Path) -> None:
    with pytest.raises(InputError, match="too small for IPv6"):
        Run(path, FakeEngine(perfect()))(campaign(spec(ip=[6], frame_size=[64])))
    assert not path.exists()


def test_a_machine_that_is_not_ready_leaves_no_directory(path: Path) -> None:
    def refuse(_testbed: Testbed, _notify: Notify) -> EngineStarter:
        raise SetupError("measuring needs root")

    run = Run(path, FakeEngine(perfect()), opener=refuse)
    with pytest.raises(SetupError, match="needs root"):
        run()
    assert not path.exists()


def test_a_start_that_fails_leaves_no_directory_and_keeps_its_log(path: Path) -> None:
    class Broken(FakeEngine):
        def open_ports(self, ports: list[PortSpec], shares: int = 1) -> PortsResult:
            told = f"{len(ports)} ports, {shares} shares"
            raise EngineError(f"cannot open {told}; see {path / 'engine.log'}")

    with pytest.raises(EngineError, match="cannot open 2 ports") as caught:
        Run(path, Broken(perfect()))()
    assert not path.exists()
    assert str(path) not in caught.value.message
    assert "nothing was measured; the log is" in caught.value.message
    log = re.search(r"see (\S+/engine.log)", caught.value.message)
    assert log
    assert Path(log[1]).read_text() == "simulated\n"
    shutil.rmtree(Path(log[1]).parent)


def test_results_that_somebody_removed_are_not_called_safe(path: Path) -> None:
    class Removing(FakeEngine):
        def measure(
            self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
        ) -> TrialResult:
            if trial.trial_id == 3:
                shutil.rmtree(path)
            return super().measure(trial, on_progress)

    with pytest.raises(SetupError) as caught:
        Run(path, Removing(perfect()))(campaign(spec(ip=[4, 6], repeats=3)))
    told = f"{caught.value.message}\n{caught.value.hint}"
    assert "safe" not in told
    assert "--resume" not in told
    assert "removed" in told


def test_a_silent_next_hop_ends_the_run_before_the_first_frame(path: Path) -> None:
    run = Run(path, FakeEngine(perfect(), silent={"2001:2::1"}))
    with pytest.raises(SetupError, match="2001:2::1"):
        run()
    assert not run.engine.trials
    assert not run.reports


def test_an_unknown_link_speed_ends_the_run_before_the_first_frame(path: Path) -> None:
    run = Run(path, FakeEngine(perfect(), link_speed_mbps=None))
    with pytest.raises(InputError, match="does not tell its link speed"):
        run(campaign(spec(max_rate_fps=None)))
    assert not run.engine.trials
    assert not path.exists()


def test_interruption_aborts_the_trial_and_keeps_what_was_measured(
    path: Path,
) -> None:
    run = Run(path, FakeEngine(perfect(), troubles={3: KeyboardInterrupt()}))
    with pytest.raises(KeyboardInterrupt):
        run()
    stored = load_results(path)
    assert run.engine.aborted
    assert run.opener.ended
    assert not stored.complete
    assert [cell.id for cell in stored.cells] == ["throughput-ip4-128-both"]
    assert len(stored.trials) == 2
    assert run.reports == 1


def test_the_engines_death_names_the_last_trial_and_where_the_results_are(
    path: Path,
) -> None:
    death = EngineError("the engine ended (signal 9) during trial 3")
    run = Run(path, FakeEngine(step(300_000), troubles={3: death}))
    with pytest.raises(EngineError) as caught:
        run()
    assert "signal 9" in caught.value.message
    assert "the last finished trial is 2" in caught.value.message
    assert str(path) in caught.value.message
    assert len(load_results(path).trials) == 2
    assert run.reports == 1


@pytest.mark.parametrize(
    "troubles",
    [{1: "link_down"}, {1: EngineError("the engine ended (signal 11)")}],
    ids=["invalid trial", "dead engine"],
)
def test_a_deleted_lab_is_what_the_message_is_about(
    path: Path, troubles: Troubles
) -> None:
    run = Run(path, FakeEngine(perfect(), troubles=troubles), dut_alive=False)
    with pytest.raises(SetupError, match="device under test has gone"):
        run()


def test_a_full_disk_stops_the_run_and_the_results_are_still_told(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: ResultsDirectory, _results: ResultsFile) -> None:
        raise SetupError("results.json: no space left on device")

    monkeypatch.setattr(ResultsDirectory, "write_results", refuse)
    run = Run(path, FakeEngine(perfect()))
    with pytest.raises(SetupError, match=r"results\.json: no space"):
        run()
    told = [e.results for e in run.events if isinstance(e, ResultsChanged)]
    assert [cell.median for cell in told[-1].cells] == [1_000_000]


def test_no_trial_starts_after_one_that_could_not_be_stored(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: ResultsDirectory, _record: TrialRecord) -> None:
        raise SetupError("journal.jsonl: no space left on device")

    monkeypatch.setattr(ResultsDirectory, "append", refuse)
    run = Run(path, FakeEngine(step(1)))
    with pytest.raises(SetupError, match=r"journal\.jsonl: no space"):
        run()
    assert len(run.engine.trials) == 1


def test_a_report_that_fails_does_not_hide_why_the_run_ended(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(path, FakeEngine(perfect(), troubles={2: KeyboardInterrupt()}))

    def refuse(_directory: Path) -> Path:
        raise SetupError("report.html: no space left on device")

    monkeypatch.setattr(run, "around", replace(run.around, write_report=refuse))
    with pytest.raises(KeyboardInterrupt):
        run()
    assert load_results(path).trials
