"""The campaigns of examples/papers/004 show what the paper found, on simulated DUTs."""

from __future__ import annotations

from pathlib import Path

import pytest
from planning import TESTBED, FakeOpener

from dutperf.config import PlannedTestbed, load_campaign
from dutperf.results import CellResult
from dutperf.run.campaign_run import run_campaign
from dutperf.run.local_executor import Surroundings
from dutperf.simulation.fake_engine import FakeEngine, every, lossy, perfect, sometimes

PAPER = Path(__file__).parents[2] / "examples" / "papers" / "004"
SECOND = 1_000_000_000
ORDINARY_NS = 20_000


def run(name: str, engine: FakeEngine, directory: Path) -> list[CellResult]:
    results = run_campaign(
        load_campaign(PAPER / name),
        [PlannedTestbed(testbed=TESTBED)],
        Surroundings(
            open_engine=FakeOpener(engine),
            write_report=lambda path: path,
            sleep=lambda _seconds: None,
        ),
        on_event=lambda _event: None,
        results_dir=directory / "run",
    )
    return results.cells


def test_classic_throughput_does_not_notice_a_second_and_a_timeout_does(
    tmp_path: Path,
) -> None:
    device = FakeEngine(perfect(), delays=every(10, SECOND))
    classic, within = run("delay.yaml", device, tmp_path)
    assert (classic.median, classic.verdict) == (20_000, "pass")
    assert [t.loss_percent for t in classic.timeouts] == [pytest.approx(10)] * 2 + [0]
    assert (within.median, within.verdict) == (0, "fail")
    assert within.quantity == "throughput per direction, frames within 100 ms"


def test_random_loss_ruins_zero_loss_throughput_and_a_tolerance_does_not(
    tmp_path: Path,
) -> None:
    classic, tolerant = run("loss.yaml", FakeEngine(lossy(100)), tmp_path)
    values = [repeat.value or 0 for repeat in classic.repeats]
    assert max(values) < 20_000 / 4
    assert len(set(values)) > 1
    assert [repeat.value for repeat in tolerant.repeats] == [20_000]
    assert tolerant.quantity == "throughput per direction, losing up to 0.03 %"


@pytest.mark.parametrize("seed", range(3))
def test_single_tags_disagree_and_many_tags_do_not(seed: int, tmp_path: Path) -> None:
    device = FakeEngine(perfect(), delays=sometimes(10, SECOND, seed=seed))
    twenty, fifty, many = run("latency.yaml", device, tmp_path)
    assert twenty.median is not None
    assert fifty.median is not None
    assert abs(twenty.median - fifty.median) > 5_000_000
    typical, worst = many.measures
    assert [f.value for f in typical.repeats] == [ORDINARY_NS] * 10
    assert [f.value for f in worst.repeats] == [ORDINARY_NS + SECOND] * 10


@pytest.mark.parametrize("path", sorted(PAPER.glob("*.yaml")), ids=lambda p: p.name)
def test_every_campaign_says_how_to_run_it(path: Path) -> None:
    text = path.read_text()
    told_by_the_file = "behaviour:" in text
    assert told_by_the_file or "dutperf lab up known-answer --behaviour" in text
    assert f"dutperf run examples/papers/004/{path.name}" in text
    assert path.name in (PAPER / "README.md").read_text()
