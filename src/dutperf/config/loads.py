"""What a fixed load must be: within the maximum rate, with frames enough to tag.

Of one that is yet to be found it is known only which cell finds it.
"""

from __future__ import annotations

from collections.abc import Iterable

from dutperf.config.campaign import Cell, ProcedureSpec, TrialTimes
from dutperf.engine.protocol import foreground_frames
from dutperf.errors import InputError


def check_load(cell: Cell) -> None:
    """Refuse a rate above the maximum that was set, and more tags than frames.

    A load that is to be found is checked when it was.

    Raises:
        InputError: its message begins with the key that is wrong.
    """
    rate_fps, limit_fps = cell.rate_fps, cell.max_rate_fps
    if not isinstance(rate_fps, int):
        return
    if limit_fps is not None and rate_fps > limit_fps:
        raise InputError(
            f"rate_fps: {rate_fps} is more than the maximum rate that was set, "
            f"{limit_fps}",
            "lower it, or raise max_rate_fps",
        )
    if cell.tags is not None and cell.first_tag_s is not None:
        _check_tags(cell, rate_fps, cell.tags, cell.first_tag_s)


_THE_SAME = ("place", "ip", "frame_sizes", "direction", "traffic")
"""What a throughput and the measurements at it must have in common."""


def with_source(cell: Cell, earlier: Iterable[Cell]) -> Cell:
    """``cell`` with the cell that finds its load, if that is to be found.

    Of several the one that is RFC 2544's throughput.

    Raises:
        InputError: none of ``earlier`` finds it, or it is not clear which; its
            message begins with the key that is wrong.
    """
    if cell.found_rate is None:
        return cell
    searches = [c for c in earlier if c.procedure == "throughput"]
    found = [c for c in searches if _frames_of(c) == _frames_of(cell)]
    found = [c for c in found if _by_the_book(c)] or found
    if len(found) != 1:
        raise InputError(
            f"rate_fps: {cell.id} is to be measured at the throughput, but "
            f"{_listed(found or searches, any_fits=bool(found))}",
            "list one procedure throughput with the same ip, frame_size, direction and "
            "traffic above it, or give rate_fps in frames per second",
        )
    return cell.model_copy(update={"throughput_cell": found[0].id})


def with_throughput(spec: ProcedureSpec) -> list[ProcedureSpec]:
    """``spec``, and before it the throughput that it is to be measured at, if it is.

    The search has the same frames, waits and limits, and trials that are no longer.
    """
    if spec.found_rate is None:
        return [spec]
    keys = {*_THE_SAME, *_ALSO_OF_THE_SEARCH} & set(ProcedureSpec.model_fields)
    frames = {"frame_size", "flows"}
    search = spec.model_dump(include={*keys, *frames}, exclude_none=True)
    standard_s = TrialTimes().trial_duration_s
    search["trial_duration_s"] = min(spec.trial_duration_s, standard_s)
    return [ProcedureSpec(procedure="throughput", **search), spec]


_ALSO_OF_THE_SEARCH = (
    "resolution",
    "settle_wait_s",
    "residual_wait_s",
    "restabilise_wait_s",
    "max_rate_fps",
    "lag_limit_ms",
    "burst_limit",
)


def _frames_of(cell: Cell) -> list[object]:
    return [getattr(cell, key) for key in _THE_SAME]


def _by_the_book(cell: Cell) -> bool:
    lossy = any(g.loss_percent or g.exceed_percent for g in cell.goals[:1])
    judged = cell.frame_timeout_ms is not None or cell.loss_tolerance_percent
    return not judged and not lossy and cell.verify_trials is None


def _listed(cells: list[Cell], *, any_fits: bool) -> str:
    names = ", ".join(cell.id for cell in cells)
    if any_fits:
        return f"several cells find one: {names}"
    others = f" (those that are: {names})" if names else ""
    return f"no throughput of the same frames is measured before it{others}"


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
