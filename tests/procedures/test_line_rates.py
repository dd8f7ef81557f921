"""What stands beside a result: the theoretical maximum, and the sum of directions."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_samples import make_cell
from planning import TRANSLATOR, Run, campaign, cell, spec

from dutperf.config import expand
from dutperf.procedures.max_rate import LimitKind, MaxRate, max_rate
from dutperf.procedures.tester_limit import at_line_rate, beside_media, media_of
from dutperf.protocol.base import MplsLabel, VlanTag, line_rate_fps
from dutperf.results import CellResult, PortRecord
from dutperf.simulation.fake_engine import FakeEngine, perfect, step


def port(name: str, speed_mbps: int | None, kernel_driver: str = "ixgbe") -> PortRecord:
    return PortRecord(
        name=name,
        driver="af_xdp",
        dpdk_name="",
        device=name,
        mac="02:00:00:00:00:01",
        link_speed_mbps=speed_mbps,
        kernel_driver=kernel_driver,
    )


def found(tmp_path: Path, **keys: object) -> CellResult:
    run = Run(tmp_path / "run", FakeEngine(step(250_000), link_speed_mbps=1000))
    finest = {} if "procedure" in keys else {"resolution": "1"}
    [result] = run(campaign(spec(**finest, **keys))).cells
    return result


@pytest.mark.parametrize(
    ("direction", "total_fps"), [("both", 500_000), ("forward", 250_000)]
)
def test_a_throughput_is_counted_both_ways(
    tmp_path: Path, direction: str, total_fps: int
) -> None:
    result = found(tmp_path, direction=direction)
    assert (result.median, result.sum_fps) == (250_000, total_fps)
    assert "per direction" in result.quantity


def test_a_throughput_tells_what_of_the_media_it_reaches(tmp_path: Path) -> None:
    media = found(tmp_path).media
    assert media is not None
    assert (media.rate_fps, media.link_speed_mbps) == (1_488_095, 1000)
    assert media.share_percent == pytest.approx(16.8, rel=1e-3)


def test_vlan_tags_take_of_the_media_what_they_are_long() -> None:
    at = make_cell()
    ports = [
        port("left", 1000).model_copy(update={"vlan": [VlanTag(id=1)]}),
        port("right", 1000).model_copy(update={"vlan": [VlanTag(id=1)] * 2}),
    ]
    media = media_of(at, ports)
    assert media is not None
    assert media.rate_fps == max_rate(at, ports).rate_fps
    assert media.rate_fps == line_rate_fps(1000, 64 + 8)
    assert media_of(at, ports[:1]) != media


def test_labels_take_of_the_media_what_they_are_long() -> None:
    at = make_cell()
    stack = {"vlan": [VlanTag(id=1)], "mpls": [MplsLabel(label=16)] * 2}
    ports = [port("left", 1000), port("right", 1000).model_copy(update=stack)]
    media = media_of(at, ports)
    assert media is not None
    assert media.rate_fps == max_rate(at, ports).rate_fps
    assert media.rate_fps == line_rate_fps(1000, 64 + 12)


def test_the_wire_carries_vlan_tags_too(tmp_path: Path) -> None:
    result = found(tmp_path)
    tagged = [port("left", 1000).model_copy(update={"vlan": [VlanTag(id=1)]})]
    beside = beside_media(result, make_cell(), tagged)
    assert [way.mbps for way in result.wire] == [168.0, 168.0]
    assert [way.mbps for way in beside.wire] == [176.0, 168.0]


def test_a_loss_has_no_share_of_the_media(tmp_path: Path) -> None:
    result = found(tmp_path, procedure="frame-loss", trial_duration_s=1)
    assert result.sum_fps is None
    assert result.media is not None
    assert result.media.share_percent is None


def test_a_loss_curve_that_begins_below_the_media_says_so(tmp_path: Path) -> None:
    """1,000,000 fps of 1,488,095."""
    result = found(tmp_path, procedure="frame-loss", trial_duration_s=60)
    assert [(d.rfc, d.actual) for d in result.deviations] == [
        ("RFC 2544 26.3", "100 % is 1,000,000 fps, the maximum rate that was set")
    ]
    assert "1,488,095 fps" in result.deviations[0].requirement


def test_a_loss_curve_from_the_medias_maximum_has_no_deviation(tmp_path: Path) -> None:
    result = found(tmp_path, procedure="frame-loss", max_rate_fps=None)
    assert result.deviations == []


def test_the_slower_link_counts() -> None:
    media = media_of(cell(), [port("left", 10_000), port("right", 1000)])
    assert media is not None
    assert (media.rate_fps, media.nominal) == (1_488_095, False)


def test_the_longer_frames_count() -> None:
    [translated] = expand(campaign(spec(ip=["6-4"])), TRANSLATOR)
    media = media_of(translated, [port("left", 10_000), port("right", 10_000)])
    assert media is not None
    assert media.rate_fps == 12_019_230


def test_a_virtual_links_speed_is_nominal() -> None:
    ports = [port(side, 10_000, "veth") for side in ("left", "right")]
    media = media_of(cell(), ports)
    assert media is not None
    assert media.nominal


def test_an_unknown_speed_gives_no_maximum() -> None:
    assert media_of(cell(), [port("left", None), port("right", 1000)]) is None
    assert media_of(cell(), []) is None


# --- what ends at the media, and what only at a virtual link's name


@pytest.mark.parametrize(
    ("kind", "rate_fps", "left", "right", "cause"),
    [
        ("media", 14_880_952, "ixgbe", "ixgbe", None),
        ("media", 14_880_952, "veth", "veth", "nominal"),
        ("media", 14_880_952, "veth", "ixgbe", None),
        ("set", 1_000_000, "ixgbe", "ixgbe", "set"),
        ("set", 14_880_952, "ixgbe", "ixgbe", None),
        ("set", 14_880_952, "veth", "veth", "set"),
        ("tester", 400_000, "veth", "veth", "tester"),
    ],
)
def test_a_device_as_fast_as_physical_media_has_no_lower_bound(
    kind: LimitKind, rate_fps: int, left: str, right: str, cause: str | None
) -> None:
    ports = [port("left", 10_000, left), port("right", 10_000, right)]
    limit = at_line_rate(MaxRate(rate_fps, kind), cell(), ports)
    assert limit.bound_cause == cause


def test_links_that_do_not_tell_their_speed_are_no_limit() -> None:
    ports = [port("left", None), port("right", None)]
    assert at_line_rate(MaxRate(5, "set"), cell(), ports).bound_cause == "set"


def test_the_rate_of_the_links_is_a_result(tmp_path: Path) -> None:
    """The links of a FakeEngine have no driver: they are physical."""
    run = Run(tmp_path / "run", FakeEngine(perfect(), link_speed_mbps=10))
    [result] = run(campaign(spec(max_rate_fps=None))).cells
    assert (result.bound, result.media and result.media.nominal) == (None, False)
