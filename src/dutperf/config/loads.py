"""What a fixed load must be: within the maximum rate, with frames enough to tag."""

from __future__ import annotations

from dutperf.config.campaign import Cell
from dutperf.engine.protocol import foreground_frames
from dutperf.errors import InputError


def check_load(cell: Cell) -> None:
    """Refuse a rate above the maximum that was set, and more tags than frames.

    Raises:
        InputError: its message begins with the key that is wrong.
    """
    rate_fps, limit_fps = cell.rate_fps, cell.max_rate_fps
    if rate_fps is None:
        return
    if limit_fps is not None and rate_fps > limit_fps:
        raise InputError(
            f"rate_fps: {rate_fps} is more than the maximum rate that was set, "
            f"{limit_fps}",
            "lower it, or raise max_rate_fps",
        )
    if cell.tags is not None and cell.first_tag_s is not None:
        _check_tags(cell, rate_fps, cell.tags, cell.first_tag_s)


def _check_tags(cell: Cell, rate_fps: int, tags: int, first_tag_s: float) -> None:
    duration_ns = round(cell.trial_duration_s * 1e9)
    share = cell.traffic.foreground
    frames = foreground_frames(
        max(1, (rate_fps * duration_ns + 5 * 10**8) // 10**9),
        share.numerator,
        share.denominator,
    )
    taggable = frames - frames * round(first_tag_s * 1e9) // duration_ns
    if taggable < tags:
        raise InputError(
            f"tags: {tags} are more than the {taggable} frames of a direction's "
            f"foreground that are sent after {first_tag_s:g} s",
            f"lower tags (--tags) to {taggable} or less, or take a longer trial, a "
            "higher rate_fps or an earlier first_tag_s",
        )
