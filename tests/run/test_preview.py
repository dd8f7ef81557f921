from __future__ import annotations

from pathlib import Path

import pytest
from planning import TESTBED, FakeOpener, campaign, spec

from dutperf.errors import InputError, SetupError
from dutperf.run.preview import Preview, preview_frames
from dutperf.simulation.fake_engine import FakeEngine, perfect


def preview(engine: FakeEngine, path: Path, **keys: int) -> Preview:
    both = campaign(spec(traffic={"mix": "90/10"}), spec(ip=[6]))
    given = {"rate_fps": 1000, "count": 20} | keys
    return preview_frames(
        both, TESTBED, FakeOpener(engine), path=path, notify=lambda _text: None, **given
    )


def test_the_first_cells_first_frames_are_asked_for(tmp_path: Path) -> None:
    engine = FakeEngine(perfect())
    found = preview(engine, tmp_path / "x.pcap")
    [asked] = engine.previews
    assert (asked.count, asked.path) == (20, str(tmp_path / "x.pcap"))
    assert [d.rate_fps for d in asked.trial.directions] == [1000, 1000]
    assert found.cell.id == "throughput-ip4-84-both-mix90-10"
    assert found.frames == 40
    assert engine.trials == []


def test_a_trial_is_as_long_as_the_frames_need(tmp_path: Path) -> None:
    assert (
        preview(FakeEngine(perfect()), tmp_path / "x", count=100_000).frames == 200_000
    )


def test_a_trial_is_never_longer_than_a_stamp_can_tell(tmp_path: Path) -> None:
    found = preview(FakeEngine(perfect()), tmp_path / "x", count=10**6, rate_fps=1)
    assert found.frames == 2 * 140_737


@pytest.mark.parametrize("place", ["gone/x.pcap", "."])
def test_a_place_that_takes_no_file_is_refused(tmp_path: Path, place: str) -> None:
    with pytest.raises(InputError, match="--pcap"):
        preview(FakeEngine(perfect()), tmp_path / place)


def test_the_mac_addresses_have_to_be_true(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"198\.18\.0\.1 does not answer"):
        preview(FakeEngine(perfect(), silent={"198.18.0.1"}), tmp_path / "x")
