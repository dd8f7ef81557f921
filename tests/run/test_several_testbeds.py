"""A campaign at several testbeds: each for itself, and none loses another's results."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from planning import TESTBED, Run, spec

from dutperf.config import Campaign, PlannedTestbed, Testbed, expand, load_campaign
from dutperf.config.campaign import LabKeys
from dutperf.errors import DutperfError, EngineError, InputError, SetupError
from dutperf.evidence.replayed import check_environments
from dutperf.procedures.events import CellStarted, OnEvent, TestbedStarted
from dutperf.protocol.result_messages import ReasonCode
from dutperf.results import (
    ResultsDirectory,
    ResultsFile,
    TrialRecord,
    load_environments,
    load_journal,
    load_results,
)
from dutperf.run import Job, OnOutcome, TestbedsError, jobs_of
from dutperf.run.campaign_run import run_campaign
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.run.local_executor import LocalExecutor, Surroundings
from dutperf.simulation.fake_engine import Dut, FakeEngine, step

EXAMPLES = Path(__file__).parents[2] / "examples"
NAMES = ("first", "second", "third")
TESTBEDS = [TESTBED.model_copy(update={"name": name}) for name in NAMES]
MATRIX = Campaign(
    name="matrix",
    testbed=list(TESTBEDS),
    procedures=[
        spec(resolution="5%", repeats=2),
        spec(
            procedure="latency",
            rate_fps="throughput",
            repeats=2,
            tags=10,
            trial_duration_s=1,
            first_tag_s=0.5,
        ),
    ],
)
DEVICES: dict[str, Dut] = {
    "first": step(300_000),
    "second": step(200_000),
    "third": step(100_000),
}


class World:
    """Places with a device each; ``done``: trials that were measured there before.

    ``troubles`` of a testbed are those of its engine, by the number of the trial there.
    """

    def __init__(
        self,
        path: Path,
        *,
        refuse: Sequence[str] = (),
        done: dict[str, int] | None = None,
        troubles: dict[str, dict[int, ReasonCode | BaseException]] | None = None,
    ) -> None:
        self.log: list[str] = []
        self._refuse = refuse
        self.engines = {}
        for name, device in DEVICES.items():
            before = (done or {}).get(name, 0)
            of = (troubles or {}).get(name, {})
            own = {number - before: trouble for number, trouble in of.items()}
            self.engines[name] = FakeEngine(device, troubles=own)
        self.run = Run(
            path,
            self.engines["first"],
            opener=self._open_engine,
            open_testbed=self._open_testbed,
        )
        self.run.planned = [PlannedTestbed(testbed=testbed) for testbed in TESTBEDS]

    @contextlib.contextmanager
    def _open_testbed(self, planned: PlannedTestbed) -> Iterator[Testbed]:
        self.log.append(f"up {planned.name}")
        if planned.name in self._refuse:
            raise SetupError(f"lab {planned.name} is in use", "wait for it")
        try:
            yield planned.testbed
        finally:
            self.log.append(f"down {planned.name}")

    def _open_engine(self, testbed: Testbed, _notify: Notify) -> EngineStarter:
        @contextlib.contextmanager
        def start(log_path: Path) -> Iterator[FakeEngine]:
            log_path.write_text("simulated\n")
            self.log.append(f"engine {testbed.name}")
            yield self.engines[testbed.name]

        return start

    @property
    def trials(self) -> dict[str, int]:
        """How many trials were measured at each testbed."""
        return {name: len(engine.trials) for name, engine in self.engines.items()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> ResultsFile:
    """The run without any trouble."""
    return World(tmp_path_factory.mktemp("whole") / "run").run(MATRIX)


def where(record: TrialRecord) -> str:
    return record.cell.partition("@")[2]


def counts(results: ResultsFile) -> dict[str, int]:
    """Trials of each testbed."""
    testbeds = [where(trial) for trial in results.trials]
    return {name: testbeds.count(name) for name in NAMES}


def told(results: ResultsFile) -> tuple[object, ...]:
    """Cells and trials, whatever the order in which testbeds were measured."""
    trials = sorted(results.trials, key=lambda t: NAMES.index(where(t)))
    facts = [
        (t.cell, t.repeat, t.attempt, t.load_fps, t.result.directions) for t in trials
    ]
    return results.complete, results.cells, facts


def failing(world: World, *, resume: bool = False) -> DutperfError:
    with pytest.raises(DutperfError) as caught:
        world.run.resume(MATRIX) if resume else world.run(MATRIX)
    return caught.value


def test_each_testbed_has_its_cells_its_engine_and_its_environment(path: Path) -> None:
    world = World(path)
    results = world.run(MATRIX)
    assert results.complete
    assert [(cell.id, cell.place) for cell in results.cells] == [
        (f"{name}@{testbed}", testbed)
        for testbed in NAMES
        for name in (
            "throughput-ip4-64-both",
            "latency-ip4-64-both-at-throughput",
        )
    ]
    assert world.log == [
        step.format(name)
        for name in NAMES
        for step in ("up {}", "engine {}", "down {}")
    ]
    assert set(load_environments(path)) == set(NAMES)
    firsts = {where(t): t.number for t in reversed(results.trials)}
    assert {where(t): t.number for t in results.trials if t.environment} == firsts
    assert check_environments(path, list(results.trials)) == ([], [])
    assert {file.name for file in path.glob("engine*.log")} == {
        f"engine-{name}.log" for name in NAMES
    }
    assert [t.number for t in results.trials] == list(range(1, len(results.trials) + 1))


def test_what_was_found_at_a_testbed_is_used_at_that_testbed(
    whole: ResultsFile,
) -> None:
    medians = {cell.place: cell.median for cell in whole.cells[::2]}
    loads = {where(t): t.load_fps for t in whole.trials if "latency" in t.cell}
    assert loads == {testbed: int(rate or 0) for testbed, rate in medians.items()}
    assert len(set(loads.values())) == len(NAMES)


def test_watchers_learn_of_testbeds_and_count_cells_through_all(path: Path) -> None:
    world = World(path)
    world.run(MATRIX)
    events = world.run.events
    assert [e.name for e in events if isinstance(e, TestbedStarted)] == list(NAMES)
    cells = [e for e in events if isinstance(e, CellStarted)]
    assert [(e.index, e.count) for e in cells] == [(n, 6) for n in range(1, 7)]


def test_a_testbed_that_cannot_be_opened_costs_its_own_cells_only(
    path: Path, whole: ResultsFile
) -> None:
    world = World(path, refuse=["second"])
    error = failing(world)
    assert isinstance(error, TestbedsError)
    assert error.exit_code == 3
    assert error.message.startswith("second: lab second is in use\n")
    assert "results so far (4 of 6 test cases)" in error.message
    assert f"--resume {path}" in error.hint
    stored = load_results(path)
    assert not stored.complete
    assert stored.cells == [c for c in whole.cells if c.place != "second"]
    assert [(n.id, n.place, n.message) for n in stored.not_measured] == [
        (cell.id, "second", "lab second is in use")
        for cell in whole.cells
        if cell.place == "second"
    ]
    assert world.run.reports == 1


def test_what_stands_in_the_way_of_one_is_told_before_a_frame(path: Path) -> None:
    def check(planned: PlannedTestbed) -> None:
        if planned.name == "third":
            raise SetupError("lab wire is up and kept", "take it down first")

    world = World(path)
    object.__setattr__(world.run.around, "check_testbed", check)
    error = failing(world)
    assert (error.message, error.hint) == (
        "lab wire is up and kept",
        "take it down first",
    )
    assert not world.log
    assert not path.exists()


def test_nothing_stands_in_the_way_of_one_that_was_measured(path: Path) -> None:
    def check(planned: PlannedTestbed) -> None:
        asked.append(planned.name)

    asked: list[str] = []
    failing(World(path, refuse=["second"]))
    world = World(path)
    object.__setattr__(world.run.around, "check_testbed", check)
    assert world.run.resume(MATRIX).complete
    assert asked == ["second"]


def test_it_is_measured_when_the_run_goes_on_and_nothing_else_is(
    path: Path, whole: ResultsFile
) -> None:
    failing(World(path, refuse=["second"]))
    world = World(path)
    results = world.run.resume(MATRIX)
    assert told(results) == told(whole)
    assert results.not_measured == []
    assert world.log == ["up second", "engine second", "down second"]
    assert any("not opened again" in text for text in world.run.notices)
    assert load_results(path) == results
    assert list(load_journal(path).records) == results.trials


def test_a_testbed_that_fails_half_way_goes_on_where_it_was(
    path: Path, whole: ResultsFile
) -> None:
    death = EngineError("the engine ended (signal 9)")
    error = failing(World(path, troubles={"first": {3: death}}))
    assert error.message.startswith("first: the engine ended (signal 9)")
    stored = load_results(path)
    assert [c.place for c in stored.cells] == ["second"] * 2 + ["third"] * 2
    assert [n.place for n in stored.not_measured] == ["first"] * 2
    assert counts(stored) == {**counts(whole), "first": 2}
    world = World(path, done={"first": 2})
    assert told(world.run.resume(MATRIX)) == told(whole)
    rest = counts(whole)["first"] - 2
    assert world.trials == {"first": rest, "second": 0, "third": 0}


def test_a_device_that_has_gone_costs_its_own_cells_only(path: Path) -> None:
    world = World(path, troubles={"first": {1: EngineError("the port has gone")}})
    object.__setattr__(world.run.around, "dut_alive", lambda p: p.name != "first")
    error = failing(world)
    assert error.message.startswith("first: the device under test has gone")
    assert [c.place for c in load_results(path).cells] == ["second"] * 2 + ["third"] * 2


def test_a_testbed_may_fail_again_and_its_neighbours_results_stay(
    path: Path, whole: ResultsFile
) -> None:
    failing(World(path, refuse=["first", "second"]))
    again = World(path, refuse=["first"])
    failing(again, resume=True)
    stored = load_results(path)
    assert [n.place for n in stored.not_measured] == ["first"] * 2
    assert again.trials["third"] == 0
    assert told(World(path).run.resume(MATRIX)) == told(whole)


def test_where_no_testbed_can_be_opened_nothing_is_left_behind(path: Path) -> None:
    error = failing(World(path, refuse=NAMES))
    assert [line.partition(":")[0] for line in error.message.splitlines()[:3]] == list(
        NAMES
    )
    assert "nothing was measured" in error.message
    assert "--resume" not in error.hint
    assert not path.exists()


def test_wherever_it_was_interrupted_the_results_are_the_same(
    tmp_path: Path, whole: ResultsFile
) -> None:
    of = counts(whole)
    for last in range(1, len(whole.trials) + 1, 7):
        done: dict[str, int] = {}
        left = last - 1
        for name in NAMES:
            done[name] = min(left, of[name])
            left -= done[name]
        at = next(name for name in NAMES if done[name] < of[name])
        path = tmp_path / str(last)
        first = World(path, troubles={at: {done[at] + 1: KeyboardInterrupt()}})
        with pytest.raises(KeyboardInterrupt):
            first.run(MATRIX)
        assert not any(line == f"up {NAMES[-1]}" for line in first.log[:-3])
        rest = World(path, done=done)
        assert told(rest.run.resume(MATRIX)) == told(whole)
        assert rest.trials == {name: of[name] - done[name] for name in NAMES}


def test_a_full_disk_ends_the_run_at_once(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dutperf.results.storage import storage_error

    def refuse(self: ResultsDirectory, _record: TrialRecord) -> None:
        raise storage_error(OSError(28, "full"), self.path)

    monkeypatch.setattr(ResultsDirectory, "append", refuse)
    world = World(path)
    with pytest.raises(SetupError, match="No space left"):
        world.run(MATRIX)
    assert "up second" not in world.log


@pytest.mark.forged
def test_a_journal_with_another_campaigns_cell_is_refused_before_a_frame(
    path: Path,
) -> None:
    failing(World(path, refuse=["second"]))
    journal = path / "journal.jsonl"
    journal.write_text(journal.read_text().replace("@third", "@fourth"))
    world = World(path)
    with pytest.raises(
        InputError, match="a test case that this campaign does not have"
    ):
        world.run.resume(MATRIX)
    assert not world.log


def test_a_testbed_more_is_a_change(path: Path) -> None:
    two = MATRIX.model_copy(update={"testbed": TESTBEDS[:2]})
    run = World(path, troubles={"first": {2: KeyboardInterrupt()}}).run
    run.planned = run.planned[:2]
    with pytest.raises(KeyboardInterrupt):
        run(two)
    with pytest.raises(InputError, match="the campaign has changed"):
        World(path).run.resume(MATRIX)


def test_the_stored_campaign_is_the_same_one(path: Path, whole: ResultsFile) -> None:
    failing(World(path, refuse=["second"]))
    stored = load_campaign(path / "campaign.yaml")
    assert stored.testbeds == TESTBEDS
    assert told(World(path).run.resume(stored)) == told(whole)


def jobs(campaign: Campaign, *testbeds: Testbed) -> list[Job]:
    planned = [
        PlannedTestbed(lab=LabKeys(name="somewhere"), testbed=testbed)
        for testbed in testbeds
    ]
    return jobs_of(campaign, planned, expand(campaign, *testbeds))


@pytest.mark.parametrize(
    "name", ["linux-router.yaml", "demo.yaml", "nat64.yaml", "papers/004/delay.yaml"]
)
def test_a_job_can_be_written_down_and_read_elsewhere(name: str) -> None:
    campaign = load_campaign(EXAMPLES / name)
    for job in jobs(campaign, *(campaign.testbeds or [TESTBED])):
        assert Job.model_validate_json(job.model_dump_json()) == job


def test_another_executor_gets_all_it_needs_with_the_jobs(
    path: Path, whole: ResultsFile
) -> None:
    """It sends jobs as JSON, last testbed first, to what measures them."""

    class Sending:
        def __init__(self, *local: object) -> None:
            self._local = LocalExecutor(*local)  # type: ignore[arg-type]

        def run(self, jobs: Sequence[Job], on_outcome: OnOutcome) -> None:
            sent = [job.model_dump_json() for job in jobs]
            arrived = [Job.model_validate_json(text) for text in sent]
            arrived.sort(key=lambda job: job.planned.name, reverse=True)
            self._local.run(arrived, on_outcome)

    def make(
        around: Surroundings, directory: ResultsDirectory, on_event: OnEvent
    ) -> Sending:
        return Sending(around, directory, on_event)

    world = World(path)
    results = run_campaign(
        MATRIX,
        world.run.planned,
        world.run.around,
        on_event=world.run.events.append,
        results_dir=path,
        make_executor=make,
    )
    assert world.log[0] == "up third"
    assert told(results) == told(whole)
