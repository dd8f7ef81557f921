"""The example files work as they are."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_samples import make_campaign, make_testbed

from dutperf.config import deviations, expand, load_campaign, load_testbed, notices

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_hardware_testbed_has_both_versions_and_legal_addresses() -> None:
    testbed = load_testbed(EXAMPLES / "hardware-testbed.yaml")
    campaign = make_campaign({"procedure": "throughput"})
    assert testbed.ip_versions() == [4, 6]
    assert notices(testbed, campaign) == []


def test_the_router_campaign_is_by_the_book() -> None:
    cells = expand(load_campaign(EXAMPLES / "linux-router.yaml"), make_testbed())
    assert {cell.procedure for cell in cells} == {"throughput", "frame-loss"}
    assert [found for cell in cells for found in deviations(cell)] == []


def test_the_demo_is_short_and_says_where_it_deviates() -> None:
    cells = expand(load_campaign(EXAMPLES / "demo.yaml"), make_testbed())
    assert [cell.id for cell in cells] == [
        "throughput-ip4-64-both",
        "throughput-ip6-84-both",
        "frame-loss-ip4-64-both",
        "frame-loss-ip6-84-both",
    ]
    assert all(cell.trial_duration_s == 1 for cell in cells)
    assert all(deviations(cell) for cell in cells)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda p: p.name)
def test_every_example_says_how_to_use_it(path: Path) -> None:
    assert path.read_text().startswith("# ")
