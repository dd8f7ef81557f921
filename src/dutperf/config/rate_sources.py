"""What a fixed load must be: within the maximum rate, with frames enough to tag.

Of one that is yet to be found it is known only which cell finds it; of the rate of
phase 1, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dutperf.config.campaign import Preset, preset_keys
from dutperf.model.capture import Capture
from dutperf.model.cell import Cell
from dutperf.model.fields import KeyedError
from dutperf.model.frames import version_of
from dutperf.model.loads import MOST_FPS, LoadShape
from dutperf.model.procedure_keys import StreamKeys, Tagging, TimedStreamKeys
from dutperf.model.rate_specs import RateSearchKeys, ThroughputSpec
from dutperf.model.specs import ConnectionRateSpec, ProcedureSpec
from dutperf.model.stateful_keys import RateKeys, Stateful
from dutperf.protocol.stream_messages import foreground_frames


def check_load(cell: Cell) -> None:
    """Refuse a rate above the maximum that was set, and more tags than frames.

    A load that is to be found is checked when it was.

    Raises:
        KeyedError: says which key is wrong.
    """
    rate_fps, limit_fps = cell.spec.given_rate_fps, cell.spec.max_rate_fps
    if rate_fps is None:
        return
    told, per_flow_fps = f"{rate_fps}", cell.spec.rate_per_flow_fps
    if per_flow_fps:
        told = f"{per_flow_fps} per flow, {rate_fps} of {cell.traffic.flows} flows,"
    if limit_fps is not None and rate_fps > limit_fps:
        raise KeyedError(
            ("rate_fps",),
            f"{told} is more than the maximum rate that was set, {limit_fps}",
            "lower it, or raise max_rate_fps",
        )
    if rate_fps > MOST_FPS:
        raise KeyedError(("rate_fps",), f"{told} must be at most {MOST_FPS}")
    if cell.spec.tagging:
        _check_tags(cell, rate_fps, cell.spec.tagging)


FEWEST_BURSTS = 2
"""In a trial: with one there is no interval between them."""


def check_load_over_time(cell: Cell) -> None:
    """Refuse bursts and other shapes where they have no meaning, or do not fit.

    Raises:
        KeyedError: says which key is wrong.
    """
    traffic = cell.traffic
    own_times = traffic.pcap if traffic.pcap and traffic.pcap.times != "even" else None
    measures = "frame-loss or delays"
    keys: tuple[str, ...]
    if traffic.load_shape is not None:
        keys = ("traffic", "load_shape")
    elif traffic.burst_frames is not None:
        keys, measures = ("traffic", "burst_frames"), "throughput, frame-loss or delays"
    elif own_times:
        keys = ("traffic", "pcap", "times")
    else:
        return
    if not cell.spec.takes_bursts:
        raise KeyedError(
            keys,
            f"must be left out of {cell.procedure}, whose load over time is its own",
            f"measure {measures} on open connections (RFC 9693 4.7) with it: phase 1 "
            "is steady, phase 2 has it"
            if cell.stateful
            else f"measure {measures} with it",
        )
    if traffic.load_shape is not None:
        _check_shape(cell, traffic.load_shape)
    elif traffic.burst_frames is not None:
        _check_bursts(cell, traffic.burst_frames)
    elif own_times:
        _check_times(cell, own_times)


def _check_times(cell: Cell, capture: Capture) -> None:
    keys = ("traffic", "pcap", "times")
    _refuse_search(cell, keys)
    version = version_of(cell.ip, "left")
    own_fps = capture.own_fps(version)
    if own_fps is None:
        raise KeyedError(
            keys,
            f"needs frames of different times, and those of IPv{version} in "
            f"{capture.name} have one",
            "leave times (--pcap-times) out",
        )
    rate_fps, duration_s = cell.spec.given_rate_fps, cell.spec.trial_duration_s
    frames = len(capture.of(version))
    if rate_fps and rate_fps * duration_s < frames:
        raise KeyedError(
            keys,
            f"needs longer trials: at {rate_fps} fps the {frames:,} frames of "
            f"{capture.name} take {frames / rate_fps:.3g} s, and a trial takes "
            f"{duration_s:g} s",
            "raise trial_duration_s (--trial-duration), or the rate; in the capture "
            f"it is {float(own_fps):.6g} fps",
        )


def _refuse_search(cell: Cell, keys: tuple[str, ...]) -> None:
    if isinstance(cell.spec, RateSearchKeys):
        raise KeyedError(
            keys,
            "must be left out of throughput, which is a steady load, or one in bursts",
            "measure frame-loss, or delays, with it",
        )


def _check_shape(cell: Cell, shape: LoadShape) -> None:
    keys = ("traffic", "load_shape")
    _refuse_search(cell, keys)
    if shape.period_s > cell.spec.trial_duration_s:
        raise KeyedError(
            keys,
            f"takes {shape.period_s:g} s, longer than a trial, "
            f"{cell.spec.trial_duration_s:g} s",
            "make it shorter, or raise trial_duration_s",
        )


def _check_bursts(cell: Cell, frames: int) -> None:
    rate_fps, duration_s = cell.spec.given_rate_fps, cell.spec.trial_duration_s
    if rate_fps and rate_fps * duration_s < FEWEST_BURSTS * frames:
        raise KeyedError(
            ("traffic", "burst_frames"),
            f"{frames} is too many: a trial of {duration_s:g} s at {rate_fps} fps has "
            f"no {FEWEST_BURSTS} such bursts",
            "take shorter bursts, or longer trials (trial_duration_s)",
        )


_THE_SAME = ("testbed", "ip", "frame_sizes", "direction", "traffic", "stateful")
"""What a throughput and the measurements at it must have in common."""


def with_source(cell: Cell, earlier: Iterable[Cell]) -> Cell:
    """``cell`` with the cells that find its load and its R, if these are to be found.

    Of several throughputs the one that is RFC 2544's.

    Raises:
        KeyedError: none of ``earlier`` finds it, or it is not clear which.
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
        if isinstance(c.spec, ConnectionRateSpec)
        and c.stateful
        and _frames_at(c) == _frames_at(cell)
        and _opened(c.stateful) == _opened(stateful)
    ]
    return [c for c in found if c.stateful and c.stateful.alpha] or found


def _frames_at(cell: Cell) -> tuple[object, ...]:
    return cell.testbed, cell.ip, cell.frame_sizes


def _opened(stateful: Stateful) -> tuple[str, int]:
    return stateful.initiator, stateful.connections


def _with_connection_cell(cell: Cell, earlier: Sequence[Cell]) -> Cell:
    if cell.phase2 is None or cell.phase2.rate_reference is None:
        return cell
    found = connection_cells(cell, earlier)
    if len(found) != 1:
        others = [c for c in earlier if isinstance(c.spec, ConnectionRateSpec)]
        told = _listed(
            found or others, "connection rate of the same connections", bool(found)
        )
        raise KeyedError(
            ("stateful", "phase1_rate"),
            f"{cell.id} is to open connections at a share of the "
            f"connection rate, but {told}",
            "list one procedure connection-rate with the same ip, frame_size, "
            "initiator and connections above it, or give phase1_rate in frames per "
            "second",
        )
    return cell.model_copy(update={"connection_cell": found[0].id})


def _with_throughput_cell(cell: Cell, earlier: Sequence[Cell]) -> Cell:
    if cell.spec.rate_reference is None:
        return cell
    searches = [c for c in earlier if isinstance(c.spec, ThroughputSpec)]
    found = [c for c in searches if _frames_of(c) == _frames_of(cell)]
    found = [c for c in found if c.spec.loss_criterion.by_the_book] or found
    if len(found) != 1:
        raise KeyedError(
            ("rate_fps",),
            f"{cell.id} is to be measured at the throughput, but "
            f"{_listed(found or searches, _SEARCH, bool(found))}",
            "list one procedure throughput with the same ip, frame_size, direction and "
            "traffic above it, or give rate_fps in frames per second",
        )
    return cell.model_copy(update={"throughput_cell": found[0].id})


def with_sources(
    spec: ProcedureSpec, preset: Preset | None = None
) -> list[ProcedureSpec]:
    """``spec``, and before it what it is to be measured at, if that is to be found.

    The searches have the same frames, waits and limits, and trials that are no longer;
    what ``spec`` has no key for is as the preset says.
    """
    return [*_connection_rate(spec, preset), *_with_throughput(spec, preset)]


def _connection_rate(spec: ProcedureSpec, preset: Preset | None) -> list[ProcedureSpec]:
    if not isinstance(spec, StreamKeys):
        return []
    stateful = spec.stateful
    if stateful is None or stateful.rate_reference is None:
        return []
    opened = stateful.model_dump(include=set(RateKeys.model_fields), exclude_none=True)
    keys = {"testbeds", "ip", "frame_size", *_ALSO_OF_THE_SEARCH}
    search = _shared(spec, ConnectionRateSpec, keys, preset)
    return [ConnectionRateSpec.model_validate(search | {"stateful": opened})]


def _with_throughput(spec: ProcedureSpec, preset: Preset | None) -> list[ProcedureSpec]:
    if spec.rate_reference is None:
        return [spec]
    keys = {"testbeds", *_THE_SAME, *_ALSO_OF_THE_SEARCH, "frame_size", "flows"}
    search = _shared(spec, ThroughputSpec, keys, preset)
    if isinstance(spec, TimedStreamKeys):
        standard_s = ThroughputSpec.model_fields["trial_duration_s"].default
        search["trial_duration_s"] = min(spec.trial_duration_s, standard_s)
    return [ThroughputSpec.model_validate(search), spec]


def _shared(
    spec: ProcedureSpec,
    other: type[ProcedureSpec],
    keys: set[str],
    preset: Preset | None,
) -> dict[str, Any]:
    """Those of ``keys`` that the ``other`` procedure has, too; and its name."""
    named = {"procedure": other.named()}
    search = preset_keys(preset, named) if preset else {}
    own = {"resolution", "trial_duration_s"}
    given = {key: value for key, value in search.items() if key in own}
    known = keys & set(other.model_fields)
    return named | given | spec.model_dump(include=known, exclude_none=True)


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


_SEARCH = "throughput of the same frames"


def _listed(cells: Sequence[Cell], wanted: str, any_fits: bool) -> str:
    names = ", ".join(cell.id for cell in cells)
    if any_fits:
        return f"several test cases find one: {names}"
    others = f" (those that are: {names})" if names else ""
    return f"no {wanted} is measured before it{others}"


def _check_tags(cell: Cell, rate_fps: int, tagging: Tagging) -> None:
    tags, first_tag_s = tagging
    duration_ns = round(cell.spec.trial_duration_s * 1e9)
    share = cell.traffic.foreground
    frames = foreground_frames(
        max(1, (rate_fps * duration_ns + 5 * 10**8) // 10**9),
        share.numerator,
        share.denominator,
    )
    taggable = frames - frames * round(first_tag_s * 1e9) // duration_ns
    if taggable < tags:
        raise KeyedError(
            ("tags",),
            f"{tags} are more than the {taggable} frames of a direction's "
            f"foreground that are sent after {first_tag_s:g} s",
            f"lower tags (--tags) to {taggable} or less, or take a longer trial, a "
            "higher rate_fps or an earlier first_tag_s",
        )
