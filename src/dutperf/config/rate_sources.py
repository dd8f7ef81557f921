"""What a fixed load must be: within the maximum rate, with frames enough to tag.

Of one that is yet to be found it is known only which cell finds it; of the rate of
phase 1, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dutperf.config.campaign import Cell, ProcedureSpec, TrialTimes
from dutperf.config.delay_keys import ONLY_FOR
from dutperf.config.stateful_keys import Stateful
from dutperf.errors import InputError
from dutperf.protocol import foreground_frames


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


_THE_SAME = ("place", "ip", "frame_sizes", "direction", "traffic", "stateful")
"""What a throughput and the measurements at it must have in common."""


def with_source(cell: Cell, earlier: Iterable[Cell]) -> Cell:
    """``cell`` with the cells that find its load and its R, if these are to be found.

    Of several throughputs the one that is RFC 2544's.

    Raises:
        InputError: none of ``earlier`` finds it, or it is not clear which; its
            message begins with the key that is wrong.
    """
    before = list(earlier)
    return _with_throughput_cell(_with_connection_cell(cell, before), before)


def connection_cells(cell: Cell, earlier: Iterable[Cell]) -> list[Cell]:
    """Cells that find how fast the connections of ``cell`` can be opened.

    If there are such whose connections are validated, these.
    """
    stateful = cell.phase2
    if stateful is None:
        return []
    found = [
        c
        for c in earlier
        if c.procedure == "connection-rate"
        and c.stateful
        and (c.place, c.ip, c.frame_sizes) == (cell.place, cell.ip, cell.frame_sizes)
        and _opened(c.stateful) == _opened(stateful)
    ]
    return [c for c in found if c.stateful and c.stateful.alpha] or found


def _opened(stateful: Stateful) -> tuple[str, int]:
    return stateful.initiator, stateful.connections


def _with_connection_cell(cell: Cell, earlier: Sequence[Cell]) -> Cell:
    if cell.phase2 is None or cell.phase2.found_rate is None:
        return cell
    found = connection_cells(cell, earlier)
    if len(found) != 1:
        others = [c for c in earlier if c.procedure == "connection-rate"]
        told = _listed(
            found or others, "connection rate of the same connections", bool(found)
        )
        raise InputError(
            f"stateful.phase1_rate: {cell.id} is to open connections at a share of the "
            f"connection rate, but {told}",
            "list one procedure connection-rate with the same ip, frame_size, "
            "initiator and connections above it, or give phase1_rate in frames per "
            "second",
        )
    return cell.model_copy(update={"connection_cell": found[0].id})


def _with_throughput_cell(cell: Cell, earlier: Sequence[Cell]) -> Cell:
    if cell.found_rate is None:
        return cell
    searches = [c for c in earlier if c.procedure == "throughput"]
    found = [c for c in searches if _frames_of(c) == _frames_of(cell)]
    found = [c for c in found if _by_the_book(c)] or found
    if len(found) != 1:
        raise InputError(
            f"rate_fps: {cell.id} is to be measured at the throughput, but "
            f"{_listed(found or searches, _SEARCH, bool(found))}",
            "list one procedure throughput with the same ip, frame_size, direction and "
            "traffic above it, or give rate_fps in frames per second",
        )
    return cell.model_copy(update={"throughput_cell": found[0].id})


def with_sources(spec: ProcedureSpec) -> list[ProcedureSpec]:
    """``spec``, and before it what it is to be measured at, if that is to be found.

    The searches have the same frames, waits and limits, and trials that are no longer.
    """
    return [*_connection_rate(spec), *_with_throughput(spec)]


def _connection_rate(spec: ProcedureSpec) -> list[ProcedureSpec]:
    stateful = spec.stateful
    if stateful is None or stateful.found_rate is None:
        return []
    keys = {"place", "ip", "frame_size", *_ALSO_OF_THE_SEARCH}
    search = spec.model_dump(include=keys, exclude_none=True)
    foreign = {k for k in type(stateful).model_fields if _is_of_phase2(k)}
    opened = stateful.model_dump(exclude=foreign, exclude_none=True)
    return [ProcedureSpec(procedure="connection-rate", stateful=opened, **search)]


def _is_of_phase2(key: str) -> bool:
    return "connection-rate" not in ONLY_FOR[f"stateful.{key}"]


def _with_throughput(spec: ProcedureSpec) -> list[ProcedureSpec]:
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


_SEARCH = "throughput of the same frames"


def _listed(cells: Sequence[Cell], wanted: str, any_fits: bool) -> str:
    names = ", ".join(cell.id for cell in cells)
    if any_fits:
        return f"several cells find one: {names}"
    others = f" (those that are: {names})" if names else ""
    return f"no {wanted} is measured before it{others}"


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
