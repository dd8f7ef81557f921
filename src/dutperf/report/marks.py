"""What the charts of delays have in common: looks, outlines, and marks like stairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup

from dutperf.report.chart import Figure, Trace
from dutperf.report.delay_views import Mark

BINS = 141
"""Odd: on an axis around zero, zero has a bin of its own."""
_ROW_PX = 18
_FOOT_PX = 34
_LEFT_OF = 0.55
"""Up to here on the axis a label has room to the right, on a narrow screen, too.

There 99.99999 % beside the other axis leaves this one some 230 pixels.
"""
_GAP = 0.24
"""Length of a label on a common screen, as a share of the axis."""
_TEXT = {"tester": "var(--muted)", "delay": "var(--ink)", "limit": "var(--fail)"}
_LINE = {"tester": "var(--muted)", "delay": "var(--mark)", "limit": "var(--fail)"}


class Look(NamedTuple):
    """How the lines of one stream are drawn."""

    colour: str
    soft: str
    dash: str


_LOOKS = {
    "forward": Look("var(--series-1)", "var(--series-1-soft)", "solid"),
    "reverse": Look("var(--series-2)", "var(--series-2-soft)", "solid"),
}


def look_of(direction: str, stream: int) -> Look:
    """Directions differ by colour, streams by their dashes."""
    look = _LOOKS[direction]
    return look if stream == 0 else Look(look.colour, "rgba(0,0,0,0)", "dot")


def outline(found: Sequence[float], edges: Sequence[float], look: Look) -> Trace:
    """A histogram in percent, from the first bin that holds a frame to the last."""
    held = [index for index, share in enumerate(found) if share > 0] or [0]
    first, last = held[0], held[-1]
    y = [float(f"{100 * share:.4g}") for share in found[first : last + 1]]
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [edges[first], *edges[first : last + 2]],
        "y": [0, *y, 0],
        "line": {"shape": "hv", "width": 1.5, "color": look.colour, "dash": look.dash},
        "fill": "tozeroy",
        "fillcolor": look.soft,
    }


def end_with_room(places: Sequence[float], low: float, high: float) -> float:
    """The upper end of an axis on which the labels of all marks find room.

    A label stands to the right of its line, or, further on, to the left, if the mark
    before is far enough away.
    """
    for place, before in zip(places, [low, *places], strict=False):
        is_late = place - low > _LEFT_OF * (high - low)
        if is_late and place - before < _GAP * (high - low):
            high = low + (place - low) / _LEFT_OF
    return high


def stairs_end(marks: int, height: int) -> float:
    """What is left of a figure below the labels of so many marks."""
    return round(1 - marks * _ROW_PX / (height - _FOOT_PX) - 0.01, 4)


def stairs(
    marks: Sequence[Mark],
    places: Sequence[float],
    ends: tuple[float, float],
    height: int,
) -> tuple[list[Figure], list[Figure]]:
    """Shapes and annotations: a line for each mark, their labels descending.

    A label stands above the lines of all later marks, so no label is ever crossed.

    Args:
        marks: by rising value.
        places: where they stand on the axis; of a logarithmic one the logarithms.
        ends: of the axis, as ``places``.
        height: of the figure in pixels.
    """
    step = _ROW_PX / (height - _FOOT_PX)
    late = ends[0] + (_LEFT_OF + 0.01) * (ends[1] - ends[0])
    shapes: list[Figure] = []
    annotations: list[Figure] = []
    for index, (mark, place) in enumerate(zip(marks, places, strict=True)):
        top = round(1 - step * index, 4)
        shapes.append(
            {
                "type": "line",
                "yref": "paper",
                "y0": 0,
                "y1": top,
                "layer": "below",
                "line": {
                    "width": 1,
                    "dash": "dash" if mark.kind == "limit" else "solid",
                    "color": _LINE[mark.kind],
                },
            }
        )
        annotations.append(
            {
                "x": round(place, 4),
                "xanchor": "right" if place > late else "left",
                "xshift": -3 if place > late else 3,
                "yref": "paper",
                "y": top,
                "yanchor": "top",
                "text": Markup("{} <b>{}</b>").format(mark.label, mark.text),
                "font": {"color": _TEXT[mark.kind]},
            }
        )
    return shapes, annotations


def at(shapes: Sequence[Figure], x: Sequence[float]) -> list[Figure]:
    """The shapes in their places, which are values also on a logarithmic axis."""
    return [
        shape | {"x0": value, "x1": value}
        for shape, value in zip(shapes, x, strict=True)
    ]
