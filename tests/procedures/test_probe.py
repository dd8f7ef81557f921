"""What virtual ports can offer is found before a search begins there."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning import TESTBED, Run, campaign, spec, spoilt

from dutperf.config import Testbed
from dutperf.errors import InputError
from dutperf.procedures.tester_limit import NOBODY
from dutperf.protocol.port_messages import PortSpec, PortsResult, PortStatus
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import ResultsFile, TrialRecord
from dutperf.simulation.fake_engine import (
    Dut,
    FakeEngine,
    SimulatedNat,
    perfect,
    step,
)

OFFER_FPS = 400_000


def shared_memory() -> Testbed:
    """Two memif ports, which tell no speed."""
    data = TESTBED.model_dump(exclude_none=True)
    for side in ("left", "right"):
        data[side]["port"] = {"memif": f"/run/{side}.sock"}
    return Testbed.model_validate(data)


def run(path: Path, dut: Dut, **keys: object) -> Run:
    given: dict[str, object] = {"link_speed_mbps": None, "tester_limit_fps": OFFER_FPS}
    engine = FakeEngine(dut, **(given | keys))  # type: ignore[arg-type]
    return Run(path / "run", engine, testbed=shared_memory())


def probes(results: ResultsFile) -> list[TrialRecord]:
    return [trial for trial in results.trials if trial.role == "probe"]


def own(results: ResultsFile) -> list[TrialRecord]:
    return [trial for trial in results.trials if trial.role == "trial"]


LOSS = spec(procedure="frame-loss", max_rate_fps=None, load_percent=[100, 50])


def test_no_maximum_rate_needs_to_be_given(tmp_path: Path) -> None:
    asked = campaign(spec(max_rate_fps=None))
    results = run(tmp_path, step(250_000))(asked)
    [cell] = results.cells
    assert cell.verdict == "pass"
    assert cell.median == pytest.approx(250_000, abs=1000)
    assert cell.parameters["max_load_is"] == "tester"
    assert max(trial.load_fps for trial in own(results)) <= OFFER_FPS


def test_a_probe_is_a_few_short_trials_to_nobody(tmp_path: Path) -> None:
    results = run(tmp_path, step(250_000))(campaign(LOSS))
    told = [trial.role for trial in results.trials]
    assert told == ["first_frames", *["probe"] * 3, "trial", "trial"]
    sent_s = sum(t.result.directions[0].sending_ns for t in probes(results)) / 1e9
    assert sent_s < 1
    for trial in probes(results):
        streams = [s for d in trial.request.directions for s in d.streams]
        assert {stream.dst_mac for stream in streams} == {NOBODY}
    first_byte = int(NOBODY[:2], 16)
    assert (first_byte & 1, first_byte & 2) == (0, 2)  # one station's, made up
    assert results.cells[0].repeats[0].trials == 1


def test_frame_loss_calls_100_percent_what_can_be_offered(tmp_path: Path) -> None:
    results = run(tmp_path, step(250_000))(campaign(LOSS))
    [cell] = results.cells
    assert [point.load_fps for point in cell.points] == [380_000, 190_000]
    assert "of the maximum rate that the tester can offer, 380,000 fps" in cell.quantity
    (told,) = [d.actual for d in cell.deviations if "100 %" in d.requirement]
    assert told == (
        "100 % is 380,000 fps, 95% of what the tester could offer (maximum offered "
        "load, RFC 2285 3.5.3)"
    )


def test_a_tester_that_was_stopped_in_one_of_them_offers_what_it_can(
    tmp_path: Path,
) -> None:
    class Stopped(FakeEngine):
        """Something else has the tester's CPU in the first probe."""

        def measure(self, trial: TrialRequest, *_progress: object) -> TrialResult:
            result = super().measure(trial)
            if len(self.trials) != 2:
                return result
            slow = [
                d.model_copy(update={"offered_rate_fps": d.offered_rate_fps / 2})
                for d in result.directions
            ]
            return result.model_copy(update={"directions": slow})

    engine = Stopped(step(250_000), tester_limit_fps=OFFER_FPS)
    results = Run(tmp_path / "run", engine, testbed=shared_memory())(campaign(LOSS))
    assert own(results)[0].load_fps == 380_000


@pytest.mark.parametrize(("given_fps", "limit"), [(100_000, "set"), (10**6, "tester")])
def test_what_was_set_stays_unless_it_cannot_be_offered(
    tmp_path: Path, given_fps: int, limit: str
) -> None:
    asked = LOSS.model_copy(update={"max_rate_fps": given_fps})
    results = run(tmp_path, perfect())(campaign(asked))
    assert results.cells[0].parameters["max_load_is"] == limit
    assert len(probes(results)) == (1 if limit == "set" else 3)
    assert own(results)[0].load_fps == min(given_fps, 380_000)


def test_a_probe_that_cannot_tell_changes_nothing(tmp_path: Path) -> None:
    asked = LOSS.model_copy(update={"max_rate_fps": 10**6})
    troubles = spoilt("link_down", 2)
    results = run(tmp_path, perfect(), troubles=troubles)(campaign(asked))
    assert len(probes(results)) == 1
    assert own(results)[0].load_fps == 10**6


def test_other_procedures_and_links_with_a_medium_have_none(tmp_path: Path) -> None:
    pdv = spec(procedure="pdv", rate_fps=1000, repeats=1, max_rate_fps=None)
    assert not probes(run(tmp_path / "pdv", perfect())(campaign(pdv)))
    real = Run(tmp_path / "real", FakeEngine(perfect(), tester_limit_fps=OFFER_FPS))
    assert not probes(real(campaign(LOSS)))


def test_ports_that_are_not_probed_are_still_asked_for_their_speed(
    tmp_path: Path,
) -> None:
    class Half(FakeEngine):
        """One port has a medium, and does not tell its speed."""

        def open_ports(self, ports: list[PortSpec], shares: int = 1) -> PortsResult:
            opened = super().open_ports(ports, shares).ports
            other = opened[0].model_copy(update={"driver": "pci"})
            return PortsResult(ports=[PortStatus.model_validate(other), opened[1]])

    silent = Half(perfect(), link_speed_mbps=None)
    asked = Run(tmp_path / "run", silent, testbed=shared_memory())
    with pytest.raises(InputError, match="does not tell its link speed"):
        asked(campaign(LOSS))


def test_a_run_is_resumed_in_the_middle_of_a_probe(tmp_path: Path) -> None:
    asked = campaign(spec(max_rate_fps=None, resolution="5%"), LOSS)
    whole = run(tmp_path / "whole", step(250_000))(asked)
    for last in range(1, len(whole.trials) + 1):
        troubles = {last: KeyboardInterrupt()}
        broken = run(tmp_path / str(last), step(250_000), troubles=troubles)
        with pytest.raises(KeyboardInterrupt):
            broken(asked)
        again = run(tmp_path / str(last), step(250_000)).resume(asked)
        assert again.cells == whole.cells
        assert [t.request for t in again.trials] == [t.request for t in whole.trials]


def test_tags_that_begin_after_a_probe_are_none_of_it(tmp_path: Path) -> None:
    """Of a latency in bursts, whose frames leave at what can be offered."""
    tags = {"first_tag_s": 0.5, "tags": 10, "trial_duration_s": 1}
    load = {"rate_fps": 1000, "max_rate_fps": None, "repeats": 1}
    bursts = {"traffic": {"burst_frames": 16}}
    asked = spec(procedure="latency", **load, **tags, **bursts)
    results = run(tmp_path, perfect())(campaign(asked))
    assert [trial.request.record.tags for trial in probes(results)] == [None] * 3
    (trial,) = own(results)
    assert trial.request.record.tags is not None
    assert trial.request.directions[0].rate_fps == 380_000


def test_bursts_on_connections_are_at_what_can_be_offered(tmp_path: Path) -> None:
    """Phase 1 follows it, and a steady load on connections is searched without."""
    opened = {"connections": 500, "phase1_rate": 5000, "table_size": 10**6}
    given = {"max_rate_fps": None, "stateful": opened, "trial_duration_s": 0.2}
    bursts = spec(traffic={"burst_frames": 16}, resolution="20%", **given)
    results = run(tmp_path, step(250_000), nat=SimulatedNat())(campaign(bursts))
    told = [trial.role for trial in results.trials]
    assert told[:5] == [*["probe"] * 3, "phase1", "trial"]
    assert results.cells[0].parameters["burst_rate_fps"] == 380_000
    with pytest.raises(InputError, match="does not tell its link speed"):
        run(tmp_path / "steady", perfect())(campaign(spec(**given)))
