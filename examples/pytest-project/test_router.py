"""What the router must do before it is released."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(("frame_size", "least_fps"), [(64, 100_000), (1518, 80_000)])
def test_it_forwards_enough(dutperf, frame_size, least_fps):
    found = dutperf.measure("throughput", preset="quick", frame_size=[frame_size])
    found.assert_at_least(least_fps)


def test_it_is_quick_at_half_of_its_load(dutperf):
    found = dutperf.measure(
        "latency", preset="quick", frame_size=[64], rate_fps=50_000, repeats=3
    )
    found.assert_at_most("1 ms")  # typical latency
    found.assert_at_most("5 ms", figure="WCL")  # worst-case latency


def test_little_is_lost_at_a_fixed_load(dutperf):
    found = dutperf.measure(
        "frame-loss", preset="quick", frame_size=[64], max_rate_fps=100_000
    )
    found.assert_at_most("0.1 %")
