"""Sweeps on a simulated device with receive side scaling, whose knee is known."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
from planning import TESTBED, Run, campaign, spec

from dutperf import lab
from dutperf.config import (
    Campaign,
    PlannedTestbed,
    expand,
    load_campaign,
    resolved,
)
from dutperf.config.testbed import Hooks
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.errors import InputError
from dutperf.evidence.verify import verify
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.stream_messages import StreamRequest
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.remote.remote_executor import RemoteExecutor
from dutperf.results import ResultsDirectory, ResultsFile, load_results
from dutperf.run import jobs_of
from dutperf.run.campaign_run import results_again
from dutperf.simulation.fake_engine import FakeEngine, perfect, step

if TYPE_CHECKING:
    from dutperf.remote.hub import Hub

EACH_FPS, MOST = 2000, 100
EXAMPLE = Path(__file__).parents[2] / "examples/papers/rss/addresses.yaml"
NUMBERS = [1, 3, 7, 15, 31, 63, 255]


class Spreading(FakeEngine):
    """Each source address brings 2,000 fps more, up to 100 of them."""

    def __init__(self, end: int | None = None) -> None:
        super().__init__(perfect(), troubles={end: KeyboardInterrupt()} if end else {})

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        [vary] = [
            each.max - each.min + 1
            for each in trial.directions[0].streams[0].vary
            if each.field == "src_ip"
        ] or [1]
        self._dut = step(EACH_FPS * min(vary, MOST))
        return super().measure(trial, on_progress)


def swept(**keys: object) -> Campaign:
    """Over addresses, then a cell that is not of the sweep."""
    sweep = {"key": "addresses", "max": 1728, "points": 4, "refine": 6} | keys
    return campaign(
        spec(resolution="2%", traffic=[{"ports": FIXED}], sweep=sweep),
        spec(resolution="10%", frame_size=[128]),
    )


FIXED = {"source": "fixed", "destination": "fixed"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ResultsFile]:
    path = tmp_path_factory.mktemp("whole") / "run"
    return path, Run(path, Spreading())(swept())


def test_the_knee_is_found_where_it_was_set(whole: tuple[Path, ResultsFile]) -> None:
    [found] = whole[1].sweeps
    assert found.knee_above is not None
    assert found.knee_until is not None
    assert found.knee_above < 0.95 * MOST <= found.knee_until
    assert found.knee_until <= 1.1 * found.knee_above
    assert found.words.startswith(f"knee at {found.knee} addresses (above ")
    assert found.plateau == pytest.approx(EACH_FPS * MOST, rel=0.02)
    values = {p.number: p.value for p in found.points}
    assert list(values) == sorted(values)
    assert values[12] == pytest.approx(12 * EACH_FPS, rel=0.02)


def test_what_is_added_comes_last_and_only_where_it_bends(
    whole: tuple[Path, ResultsFile],
) -> None:
    asked = [cell.id for cell in expand(swept(), TESTBED)]
    done = [cell.id for cell in whole[1].cells]
    assert done[: len(asked)] == asked
    added = [c.cell.spec.sweep for c in whole[1].cells[len(asked) :]]
    assert 2 <= len(added) <= 6
    assert all(each and 12 < each.number < 144 for each in added)


def test_the_run_can_be_verified(whole: tuple[Path, ResultsFile]) -> None:
    planned = [PlannedTestbed(testbed=TESTBED)]
    checks = verify(whole[0], lambda _campaign: planned, results_again).checks
    assert {check.name: check.wrong for check in checks if check.wrong} == {}


@pytest.mark.forged
def test_an_added_result_that_was_altered_is_noticed(tmp_path: Path) -> None:
    Run(tmp_path / "run", Spreading())(swept(points=4, refine=1))
    file = tmp_path / "run" / "results.json"
    text = file.read_text()
    last = load_results(tmp_path / "run").cells[-1].id
    file.write_text(text.replace(last, last.replace("addresses", "1addresses")))
    planned = [PlannedTestbed(testbed=TESTBED)]
    checks = verify(tmp_path / "run", lambda _campaign: planned, results_again).checks
    assert any(check.wrong for check in checks)


def test_wherever_it_was_interrupted_the_results_are_the_same(
    tmp_path: Path, whole: tuple[Path, ResultsFile]
) -> None:
    trials = len(whole[1].trials)
    for last in (trials - 30, trials - 1):
        path = tmp_path / str(last)
        with pytest.raises(KeyboardInterrupt):
            Run(path, Spreading(end=last))(swept())
        again = Run(path, Spreading())
        results = again.resume(swept())
        assert len(again.engine.trials) == trials - last + 1
        assert results.cells == whole[1].cells
        assert results.sweeps == whole[1].sweeps


def test_without_refinement_nothing_is_added(tmp_path: Path) -> None:
    results = Run(tmp_path / "run", Spreading())(swept(refine=0))
    [found] = results.sweeps
    assert [p.number for p in found.points] == [1, 12, 144, 1728]
    assert found.words == "no knee: still rising at the largest number"


def test_a_curve_that_still_rises_has_no_knee(tmp_path: Path) -> None:
    results = Run(tmp_path / "run", Spreading())(swept(max=64, points=4, refine=2))
    [found] = results.sweeps
    assert found.knee is None
    assert found.words == "no knee: still rising at the largest number"
    assert len(found.points) == 6


def test_a_journal_of_another_sweep_is_refused(tmp_path: Path) -> None:
    Run(tmp_path / "run", Spreading())(swept())
    with pytest.raises(InputError, match="changed"):
        Run(tmp_path / "run", Spreading()).resume(swept(refine=1))


@pytest.mark.parametrize(
    ("key", "most"),
    [("addresses", 256), ("ports", 256), ("networks", 256), ("flows", 256)],
)
def test_the_stored_campaign_gives_the_same_test_cases(key: str, most: int) -> None:
    what = campaign(spec(ip=[4, 6], sweep={"key": key, "max": most, "points": 3}))
    stored = resolved(what, TESTBED)
    again = Campaign.model_validate(stored)
    assert expand(again, TESTBED) == expand(what, TESTBED)
    assert resolved(again, TESTBED) == stored


# examples/papers/rss on a simulated device whose hash is written here from its
# definition: what comes of the example before any device is there.


KEY = int(
    "6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa",
    16,
)
KEY_BITS = 320
PLACES = {"src_ip": (0, 32), "dst_ip": (32, 32), "src_port": (64, 16)}
PLACES |= {"dst_port": (80, 16)}
QUEUES, SERVED_FPS = 4, 10_000


def toeplitz(value: int, begin: int, width: int) -> int:
    """What a field that begins at that bit of the input adds to the hash."""
    found = 0
    for bit in range(width):
        if value >> (width - 1 - bit) & 1:
            found ^= KEY >> (KEY_BITS - 32 - begin - bit) & 0xFFFFFFFF
    return found


def fullest_queue(stream: StreamRequest) -> float:
    """Its share of the frames, if each combination of values is equally likely."""
    shares = [1.0] + [0.0] * (QUEUES - 1)
    for field, (begin, width) in PLACES.items():
        base = getattr(stream, field)
        base = int(ip_address(base)) if isinstance(base, str) else base
        counts = [0] * QUEUES
        values = [base]
        for vary in (each for each in stream.vary if each.field == field):
            shift = width - vary.offset - vary.width
            kept = base & ~(((1 << vary.width) - 1) << shift)
            values = [kept | n << shift for n in range(vary.min, vary.max + 1)]
        for value in values:
            counts[toeplitz(value, begin, width) % QUEUES] += 1
        shares = [
            sum(shares[n ^ m] * counts[m] for m in range(QUEUES)) / len(values)
            for n in range(QUEUES)
        ]
    return max(shares)


class Hashing(Spreading):
    """Four queues; a rate is lossless if the fullest one can serve its share."""

    def __init__(self) -> None:
        super().__init__()
        self.fullest: dict[str, float] = {}

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        [stream] = trial.directions[0].streams
        key = repr((stream.src_port, stream.vary))
        if key not in self.fullest:
            self.fullest[key] = fullest_queue(stream)
        self._dut = step(SERVED_FPS / self.fullest[key])
        return FakeEngine.measure(self, trial, on_progress)


def test_the_hash_is_that_of_the_published_suite() -> None:
    fields = [("66.9.149.187", 0), ("161.142.100.80", 32)]
    found = 0
    for address, begin in fields:
        found ^= toeplitz(int(ip_address(address)), begin, 32)
    assert found == 0x323E8FC2
    assert found ^ toeplitz(2794, 64, 16) ^ toeplitz(1766, 80, 16) == 0x51CCC178


def test_the_example_finds_the_knees_of_its_hash(tmp_path: Path) -> None:
    example = load_campaign(EXAMPLE)
    specs = [
        s.model_copy(
            update={"sweep": s.sweep and s.sweep.model_copy(update={"values": NUMBERS})}
        )
        for s in example.procedures
    ]
    place = lab.plan("known-answer").model_copy(update={"hooks": Hooks()})
    run = Run(tmp_path / "run", Hashing(), testbed=place)
    what = Campaign(name="rss", testbed=[place], procedures=specs)
    by_addresses, by_ports = run(what).sweeps
    values = {p.number: p.value for p in by_addresses.points}
    for number, rate_fps in {1: 10_000, 3: 22_500, 7: 32_667, 15: 37_500}.items():
        assert values[number] == pytest.approx(rate_fps, rel=0.03)
    for found in (by_addresses, by_ports):
        assert found.plateau == pytest.approx(40_000, rel=0.03)
        assert found.knee_above is not None
        assert found.knee_until is not None
        assert 7 <= found.knee_above < found.knee_until <= 31
    assert by_addresses.knee_until in (17, 18, 19)


def test_on_many_hosts_it_must_not_be_refined(tmp_path: Path) -> None:
    planned = [PlannedTestbed(testbed=TESTBED)]
    jobs = jobs_of(swept(), planned, expand(swept(), TESTBED))
    run = Run(tmp_path / "run", Spreading())
    with ResultsDirectory.create(tmp_path / "run", "sweep") as directory:
        hub = cast("Hub", None)  # nobody is asked
        executor = RemoteExecutor(hub, run.around, directory, run.events.append, "run")
        with pytest.raises(InputError, match="on many hosts"):
            executor.run(jobs, lambda _outcome: None)
