"""The campaigns of examples/papers: measurable, run by make papers, and told of."""

from __future__ import annotations

from pathlib import Path

import pytest

from dutperf.api.places import planned_testbeds
from dutperf.config import expand, load_campaign
from dutperf.config.expansion import check_testbeds

ROOT = Path(__file__).parents[2]
PAPERS = ROOT / "examples" / "papers"
CAMPAIGNS = sorted(PAPERS.glob("*/*.yaml"))


@pytest.mark.engine  # which checks what a behaviour says
@pytest.mark.parametrize("path", CAMPAIGNS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_paper_is_a_campaign_that_can_be_measured(path: Path) -> None:
    campaign = load_campaign(path)
    planned = planned_testbeds(campaign)
    check_testbeds(campaign, [each.name for each in planned])
    cells = expand(campaign, *(each.testbed for each in planned))
    assert {cell.testbed for cell in cells} == {each.name for each in planned}


@pytest.mark.parametrize("path", CAMPAIGNS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_a_campaign_is_run_and_told_of(path: Path) -> None:
    inside = f"{path.parent.name}/{path.name}"
    assert f"dutperf run examples/papers/{inside}" in path.read_text()
    assert path.name in (path.parent / "README.md").read_text()
    assert f"$papers/{inside}" in (ROOT / "scripts" / "papers").read_text()


def test_every_paper_is_listed() -> None:
    listed = (PAPERS / "README.md").read_text()
    numbers = [path.name for path in PAPERS.iterdir() if path.is_dir()]
    assert len(numbers) == 6
    assert all(f"[{number}]({number}/README.md)" in listed for number in numbers)
