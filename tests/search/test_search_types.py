"""Resolutions and outcomes."""

from __future__ import annotations

import math

import pytest

from dutperf.search import Outcome, Resolution


@pytest.mark.parametrize(
    ("text", "lower_fps", "upper_fps", "reached"),
    [
        ("5%", 95, 100, True),
        ("5%", 94, 100, False),
        ("0.1%", 999_000, 1_000_000, True),
        ("0.1%", 998_999, 1_000_000, False),
        ("0.3%", 997, 1000, True),  # 0.003 is no binary fraction
        ("5%", 0, 1, False),
        ("1000", 0, 1000, True),
        ("1000", 0, 1001, False),
        ("1", 10**12 - 1, 10**12, True),
        ("0.5", 7, 8, False),
    ],
)
def test_a_resolution_is_reached_exactly(
    text: str, lower_fps: int, upper_fps: int, reached: bool
) -> None:
    assert Resolution.parse(text).reached(lower_fps, upper_fps) is reached


@pytest.mark.parametrize("text", ["", "%", "x", "-1", "1e3", "0", "0%", "100%", "5 %"])
def test_what_is_no_resolution_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="resolution"):
        Resolution.parse(text)


@pytest.mark.parametrize("offered_fps", [math.nan, math.inf, -1.0])
def test_an_offered_rate_must_be_a_rate(offered_fps: float) -> None:
    with pytest.raises(ValueError, match="no rate"):
        Outcome("invalid", offered_fps=offered_fps)


@pytest.mark.parametrize("loss_ratio", [math.nan, -0.1, 1.1])
def test_a_loss_ratio_must_be_a_ratio(loss_ratio: float) -> None:
    with pytest.raises(ValueError, match="no ratio"):
        Outcome("fail", loss_ratio=loss_ratio)
