"""The charts over the time of sending: rates, lost frames, delays of tagged frames."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from dutperf.charts.chart import (
    HOVER_END,
    Chart,
    Figure,
    Trace,
    delay_range,
    heading,
    log_axis,
    numbers,
)
from dutperf.charts.delay_charts import look_of
from dutperf.charts.loss_charts import Interval, RunClass, intervals_of, run_classes
from dutperf.charts.text import duration_ns, plural, whole
from dutperf.protocol.result_messages import DirectionResult, StreamResult
from dutperf.protocol.stream_messages import DirectionRequest
from dutperf.protocol.trial_messages import TagPlan, TrialRequest, tagged_frames
from dutperf.results import TrialRecord

_TAG_COLUMNS = 130
_RATE_STEPS = 500
"""Rates are told apart as finely as a screen can."""
_SHADOW_STEPS = 400
"""Shadows are at least that share of the width: one of milliseconds must be seen."""
_HEIGHTS = {"rate": 70, "lost": 110, "tags": 150}
_GAP = 26
_FOOT = 56
_BACKGROUND_LOST = "var(--fail-pale)"
_BACKGROUND = ", background"
_SENT_AT = "time of sending, s"


@dataclass(frozen=True)
class _Room:
    """What all directions of a trial share: axes that can be compared."""

    rows: tuple[str, ...]
    seconds: float
    interval_ns: float
    top_fps: float
    top_lost: int
    tags: tuple[float, float]

    @property
    def height(self) -> int:
        return sum(_HEIGHTS[row] + _GAP for row in self.rows) + _FOOT

    def domain(self, row: str) -> list[float]:
        """The part of the figure that ``row`` takes, the first one on top."""
        above = self.rows[: self.rows.index(row)]
        inner = self.height - _FOOT
        top = inner - sum(_HEIGHTS[name] + _GAP for name in above) - _GAP
        return [round((top - _HEIGHTS[row]) / inner, 4), round(top / inner, 4)]


def time_charts(trial: TrialRecord) -> list[Chart]:
    """One figure for each direction: what was sent when, and what became of it."""
    request, directions = trial.request, trial.result.directions
    parts = [_intervals(direction, request) for direction in directions]
    every = [interval for streams in parts for part in streams for interval in part]
    if not every:
        return []
    tagged = [d.streams[0].tags for d in directions if d.streams[0].tags]
    delays = [ns for tags in tagged for ns in tags.delays_ns if ns is not None]
    top_lost = max(
        sum(interval.lost for interval in together)
        for streams in parts
        for together in zip(*streams, strict=True)
    )
    rows = ("rate", "lost", "tags")
    has = {"rate": True, "lost": top_lost > 0, "tags": bool(delays)}
    room = _Room(
        rows=tuple(row for row in rows if has[row]),
        seconds=max(interval.end_s for interval in every),
        interval_ns=every[0].seconds * 1e9,
        top_fps=max(i.sent / i.seconds for i in every),
        top_lost=top_lost,
        tags=delay_range(delays) if delays else (0, 1),
    )
    return [
        _time_chart(trial, direction, streams, room)
        for direction, streams in zip(directions, parts, strict=True)
    ]


def _intervals(
    direction: DirectionResult, request: TrialRequest
) -> list[list[Interval]]:
    return [intervals_of(s.series, request.duration_ns) for s in direction.streams]


def _time_chart(
    trial: TrialRecord,
    direction: DirectionResult,
    streams: Sequence[Sequence[Interval]],
    room: _Room,
) -> Chart:
    axes = {
        row: f"y{number if number > 1 else ''}"
        for number, row in enumerate(room.rows, 1)
    }
    data: list[Trace] = []
    for index, intervals in enumerate(streams):
        data += _rates(intervals, direction.name, index, room, axes["rate"])
        if "lost" in axes:
            data.append(_lost(intervals, index, axes["lost"]))
    figure: Figure = {
        "height": room.height,
        "showlegend": False,
        "barmode": "stack",
        "bargap": 0,
        "xaxis": {
            "ticksuffix": "\u00a0s",
            "range": [0, room.seconds],
            "anchor": axes[room.rows[-1]],
        },
    }
    tags, plan = direction.streams[0].tags, trial.request.record.tags
    if "tags" in axes and tags and plan:
        times = tag_times_s(trial.request, _requested(trial.request, direction), plan)
        data += _tags(
            list(zip(times, tags.delays_ns, strict=False)), room, axes["tags"]
        )
    titles = {
        "rate": "fps sent, received",
        "lost": f"frames lost in {duration_ns(room.interval_ns)}",
        "tags": "delay of tagged frames",
    }
    scales: dict[str, Figure] = {
        "rate": {"range": [0, room.top_fps * 1.12], "nticks": 3},
        "lost": {
            "range": [0, room.top_lost * 1.12],
            "nticks": 4,
            "tickformat": ",d",
        },
        "tags": log_axis(*room.tags),
    }
    for row, axis in axes.items():
        figure[axis.replace("y", "yaxis")] = {
            "domain": room.domain(row),
            "showgrid": True,
            **scales[row],
        }
    figure["annotations"] = [
        heading(titles[row], room.domain(row)[1], "above") for row in room.rows
    ]
    figure["shapes"] = [_shadow(shadow, room) for shadow in _visible(direction, room)]
    lost = sum(stream.lost for stream in direction.streams)
    return Chart(
        f"time-{trial.number}-{direction.name}",
        f"Trial {trial.number}, {direction.name}, over the time of sending: "
        f"{whole(lost)} frames lost{_shaded(direction)}",
        data,
        figure,
    )


def _shaded(direction: DirectionResult) -> str:
    """How many shadows there are, for those who cannot see them."""
    count = len(direction.shadows)
    return (
        f", {plural(count, 'recovery window')} after stalls of the tester"
        if count
        else ""
    )


def _visible(direction: DirectionResult, room: _Room) -> list[tuple[float, float]]:
    """Shadows of the tester's stalls in seconds; what looks like one is one."""
    apart_s = room.seconds / _SHADOW_STEPS
    found: list[tuple[float, float]] = []
    for shadow in direction.shadows:
        end_s = room.seconds if shadow.end_ns is None else shadow.end_ns / 1e9
        begin_s = shadow.begin_ns / 1e9
        if found and begin_s - found[-1][1] < apart_s:
            begin_s = found.pop()[0]
        found.append((begin_s, min(max(end_s, begin_s + apart_s), room.seconds)))
    return found


def _shadow(seconds: tuple[float, float], room: _Room) -> Figure:
    bottom = room.domain(room.rows[-1])[0]
    return {
        "type": "rect",
        "layer": "below",
        "x0": round(seconds[0], 6),
        "x1": round(seconds[1], 6),
        "yref": "paper",
        "y0": bottom,
        "y1": 1,
        "line": {"width": 0},
        "fillcolor": "var(--muted)",
        "opacity": 0.25,
    }


def _rates(
    intervals: Sequence[Interval], direction: str, index: int, room: _Room, axis: str
) -> Iterator[Trace]:
    """Sent as a line, received as an area under it: what is white between was lost."""
    look = look_of(direction, index)
    for name, counts, style in (
        ("received", [i.received for i in intervals], {"fill": "tozeroy"}),
        ("sent", [i.sent for i in intervals], {}),
    ):
        x, y = _steps(intervals, counts, room.top_fps / _RATE_STEPS)
        yield {
            "type": "scatter",
            "mode": "lines",
            "x": x,
            "y": y,
            "yaxis": axis,
            "line": {
                "shape": "hv",
                "width": 1.5 if name == "sent" else 0,
                "color": look.colour,
                "dash": look.dash,
            },
            "fillcolor": look.soft,
            "hovertemplate": f"%{{x:.4~g}} s: {name} %{{y:,d}} fps" + HOVER_END,
            **numbers(f"{name}{_BACKGROUND if index else ''}", _SENT_AT, "fps"),
            **style,
        }


def _steps(
    intervals: Sequence[Interval], counts: Sequence[int], step_fps: float
) -> tuple[list[float], list[int]]:
    """Rates, where they change by a step that can be seen."""
    x: list[float] = []
    y: list[int] = []
    for interval, count in zip(intervals, counts, strict=True):
        rate_fps = round(count / interval.seconds)
        if not y or abs(rate_fps - y[-1]) >= step_fps:
            x.append(interval.start_s)
            y.append(rate_fps)
    return [*x, intervals[-1].end_s], [*y, y[-1]]


def _lost(intervals: Sequence[Interval], index: int, axis: str) -> Trace:
    # Without any the first one, of height zero: an axis needs something to hold.
    hit = [i for i in intervals if i.lost > 0] or [intervals[0]]
    colour = "var(--fail)" if index == 0 else _BACKGROUND_LOST
    return {
        "type": "bar",
        "x": [round((i.start_s + i.end_s) / 2, 6) for i in hit],
        "width": [round(i.seconds, 6) for i in hit],
        "y": [interval.lost for interval in hit],
        "yaxis": axis,
        # An edge of its own colour: one interval of hundreds must be seen.
        "marker": {"color": colour, "line": {"width": 1.5, "color": colour}},
        "customdata": [[i.start_s, i.end_s, i.sent] for i in hit],
        "hovertemplate": "sent from %{customdata[0]:.6~g} to %{customdata[1]:.6~g} s:"
        + Markup("<br>%{y:,d} of %{customdata[2]:,d} frames lost")
        + HOVER_END,
        **numbers(f"lost{_BACKGROUND if index else ''}", _SENT_AT, "frames"),
    }


def _requested(request: TrialRequest, direction: DirectionResult) -> DirectionRequest:
    return next(d for d in request.directions if d.name == direction.name)


def tag_times_s(
    request: TrialRequest, direction: DirectionRequest, plan: TagPlan
) -> list[float]:
    """When each tagged frame was due (see ``TagPlan``), in seconds.

    The foreground's frames are spread evenly over the duration.
    """
    frames = direction.frames_of(0, request.frames(direction))
    tagged = tagged_frames(
        plan,
        frames=frames,
        duration_ns=request.duration_ns,
        seed=request.seed,
        stream=direction.streams[0].id,
    )
    return [frame * request.duration_ns / frames / 1e9 for frame in tagged]


def _tags(
    tags: Sequence[tuple[float, int | None]], room: _Room, axis: str
) -> list[Trace]:
    """Each tag, or of many the median and the longest delay of each short time."""
    columns = list(_columns(tags))
    several = len(tags) > len(columns)
    found: list[Trace] = []
    arrived = [column for column in columns if column.longest is not None]
    if several:
        found.append(
            _points("median", arrived, [c.typical for c in arrived], axis)
            | {"marker": {"size": 3, "color": "var(--ink)"}}
        )
    found.append(
        _points(
            "longest" if several else "tag", arrived, [c.longest for c in arrived], axis
        )
        | {"marker": {"size": 4, "color": "var(--longest)"}}
    )
    gone = [column for column in columns if column.lost]
    if gone:
        top = 10 ** (room.tags[1] - 0.03 * (room.tags[1] - room.tags[0]))
        found.append(
            _points("lost", gone, [top] * len(gone), axis)
            | {
                "marker": {"symbol": "x", "size": 7, "color": "var(--fail)"},
                "hovertemplate": "%{x:.4~g} s: tagged frames lost" + HOVER_END,
                **numbers("tagged frames", _SENT_AT, "lost", ys=[c.lost for c in gone]),
            }
        )
    return found


@dataclass(frozen=True)
class _Column:
    """Neighbouring tags: what they have in common on a screen."""

    at_s: float
    typical: float | None
    longest: int | None
    lost: int


def _columns(tags: Sequence[tuple[float, int | None]]) -> Iterator[_Column]:
    together = math.ceil(len(tags) / _TAG_COLUMNS)
    for first in range(0, len(tags), together):
        chosen = tags[first : first + together]
        arrived = sorted(delay for _, delay in chosen if delay is not None)
        middle = len(arrived) // 2
        yield _Column(
            at_s=round(sum(at for at, _ in chosen) / len(chosen), 4),
            typical=(arrived[middle] + arrived[~middle]) / 2 if arrived else None,
            longest=arrived[-1] if arrived else None,
            lost=len(chosen) - len(arrived),
        )


def _points(
    name: str, columns: Sequence[_Column], y: Sequence[float | None], axis: str
) -> Trace:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [column.at_s for column in columns],
        "y": list(y),
        "yaxis": axis,
        "cliponaxis": False,
        "hovertemplate": f"%{{x:.4~g}} s: {name} %{{y:,d}} ns" + HOVER_END,
        **numbers(f"tagged frames, {name}", _SENT_AT, "delay, ns"),
    }


def runs_chart(trial: TrialRecord) -> Chart | None:
    """How many frames were lost in a row; None if none was lost."""
    found = [
        (direction.name, index, stream, run_classes(stream.loss_runs))
        for direction in trial.result.directions
        for index, stream in enumerate(direction.streams)
        if stream.loss_runs.count
    ]
    if not found:
        return None
    longest = max((classes for *_, classes in found), key=len)
    most = max(one.runs for *_, classes in found for one in classes)
    labels = [whole(one.lowest) for one in longest]
    several = any(len(d.streams) > 1 for d in trial.result.directions)
    data = [
        _run_bars(name, index, stream, classes, labels, several=several)
        for name, index, stream, classes in found
    ]
    figure: Figure = {
        "height": 240,
        "showlegend": len(data) > 1,
        "barmode": "group",
        "bargap": 0.35,
        "uniformtext": {"minsize": 9, "mode": "hide"},
        "xaxis": {
            "title": {
                "text": "frames lost in a row (2: 2 to 3, 4: 4 to 7, \u2026)",
                "standoff": 6,
            },
            "type": "category",
            "tickangle": 0,
            "categoryarray": labels,
            "range": [-0.6, len(labels) - 0.4],
            "ticks": "",
        },
        # Room for the number above the highest bar, and for the heading.
        "yaxis": {"nticks": 4, "range": [0, 1.35 * most], "tickformat": ",d"},
        "annotations": [heading("how often", 1, "top")],
    }
    return Chart(
        f"runs-{trial.number}",
        f"How many frames trial {trial.number} lost in a row",
        data,
        figure,
    )


def _run_bars(
    direction: str,
    index: int,
    stream: StreamResult,
    classes: Sequence[RunClass],
    labels: Sequence[str],
    *,
    several: bool,
) -> Trace:
    look = look_of(direction, index)
    runs = [one.runs for one in classes] + [0] * (len(labels) - len(classes))
    return {
        "type": "bar",
        "name": f"{direction}, {stream.name}" if several else direction,
        "x": list(labels),
        "y": runs,
        "text": [whole(count) if count else "" for count in runs],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {
            "color": look.colour if index == 0 else look.soft,
            "line": {"width": 1, "color": look.colour},
        },
        **numbers(
            f"{direction}, {stream.name}" if several else direction,
            "frames lost in a row, from",
            "times",
        ),
        "hovertext": [
            f"{whole(one.lowest)} to {whole(one.highest)} in a row: {one.runs:,} times"
            for one in classes
        ],
        "hoverinfo": "text",
    }


def marked(
    chart: Chart, name: str, around: tuple[float, float], marks: list[Figure]
) -> Chart:
    """A chart over time in another place: a part of it, with marks."""
    figure = dict(chart.layout)
    figure["xaxis"] = {**figure["xaxis"], "range": list(around)}
    figure["shapes"] = [*figure["shapes"], *marks]
    return replace(chart, id=chart.id.replace("time", name, 1), layout=figure)


def upright(at_s: float) -> Figure:
    """A dotted line over the whole height."""
    return {
        "type": "line",
        "x0": at_s,
        "x1": at_s,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"width": 1.5, "dash": "dot", "color": "var(--ink)"},
    }
