"""What all charts share: plain plotly.js figures, their axes and colours.

Colours are CSS variables, so that one palette serves page and charts: the page's
script replaces ``var(--name)`` by what the style sheet says, again whenever the reader
switches between light and dark, or prints.

Plotly takes tags in words for markup: words of ours that have some are a ``Markup``,
and all other text is shown as it is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from markupsafe import Markup, escape

from dutperf.charts.text import delay_ns, duration_ns
from dutperf.visible import visible

Figure = dict[str, Any]
Trace = dict[str, Any]

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
BOUND_SYMBOL = "triangle-up-open"
"""Of a lower bound: open-ended, upwards."""
_DASHES = ("solid", "dash", "dot", "dashdot")
_COLOURS = 6
HOVER_END = Markup("<extra></extra>")
"""Of a ``hovertemplate``: the name of the trace is not repeated beside it."""


@dataclass(frozen=True)
class Chart:
    """One figure, and the words that replace it for those who cannot see it."""

    id: str
    description: str
    data: list[Trace]
    layout: Figure

    @property
    def figure(self) -> Figure:
        """As plotly.js wants it."""
        return {"data": _plain(self.data), "layout": _plain(self.layout)}


def _plain(value: Any) -> Any:  # noqa: ANN401 - whatever plotly takes
    """Texts without markup but ours; what a terminal would obey is made visible."""
    if isinstance(value, str):
        return visible(str(escape(value)))
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    return (
        [_plain(each) for each in value] if isinstance(value, list | tuple) else value
    )


def line_trace(index: int, name: str, x: list[float], y: list[float | None]) -> Trace:
    """The ``index``-th line of a chart, told apart by colour, dash and symbol."""
    colour = f"var(--series-{index % _COLOURS + 1})"
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": x,
        "y": y,
        "line": {
            "width": 2.5,
            "color": colour,
            "dash": _DASHES[index % len(_DASHES)],
        },
        "marker": {
            "symbol": _SYMBOLS[index % len(_SYMBOLS)],
            "size": 9,
            "color": colour,
        },
    }


def numbers(
    name: str,
    x: str,
    y: str,
    *,
    xs: Sequence[float] | None = None,
    ys: Sequence[float | None] | None = None,
) -> Figure:
    """What the page's table of a trace says where its axes do not: its ``meta``.

    ``xs`` and ``ys`` are the figures themselves where what is drawn is not.
    """
    told: Figure = {"name": name, "x": x, "y": y}
    if xs is not None:
        told["xs"] = list(xs)
    if ys is not None:
        told["ys"] = list(ys)
    return {"meta": told}


def layout(x_title: str, y_title: str, x: Figure, y: Figure) -> Figure:
    """Axes with titles; ``x`` and ``y`` add to them."""
    return {
        "height": 380,
        "showlegend": True,
        "xaxis": {"title": {"text": x_title, "standoff": 10}, **x},
        "yaxis": {"title": {"text": y_title, "standoff": 10}, "showgrid": True, **y},
    }


def heading(text: str, y: float, at: Literal["above", "top", "foot"]) -> Figure:
    """What a part of a figure shows, in words that need not be turned to be read.

    ``y`` is an end of the part: it stands above it on the left, or, where curves leave
    room, inside it on the right.
    """
    inside = at != "above"
    return {
        "text": text,
        "xref": "paper",
        "x": 1 if inside else 0,
        "xanchor": "right" if inside else "left",
        "yref": "paper",
        "y": round(y, 4),
        "yanchor": "top" if at == "top" else "bottom",
        "yshift": {"above": 0, "top": -2, "foot": 3}[at],
        "font": {"color": "var(--muted)"},
        "bgcolor": "var(--paper)" if inside else "rgba(0,0,0,0)",
        "borderpad": 1,
    }


_AXIS: Figure = {
    "gridcolor": "var(--grid)",
    "linecolor": "var(--rule)",
    "tickcolor": "var(--rule)",
    "showgrid": False,
    "zeroline": False,
    "showline": True,
    "ticks": "outside",
    "tickangle": 0,
    "automargin": True,
    "title": {"font": {"size": 13}},
}

TEMPLATE: Figure = {
    "layout": {
        "margin": {"l": 8, "r": 16, "t": 8, "b": 8},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"family": "var(--font)", "size": 13, "color": "var(--ink)"},
        "hoverlabel": {
            "bgcolor": "var(--paper)",
            "bordercolor": "var(--rule)",
            "font": {"family": "var(--font)", "color": "var(--ink)"},
            "align": "left",
        },
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "separators": ".,",
        "xaxis": _AXIS,
        "yaxis": _AXIS,
        "annotationdefaults": {"showarrow": False, "font": {"size": 12}},
    }
}
"""The page's script gives it to every figure: stored once, not with each of them."""


# Axes of time: logarithmic for delays, signed for their variation.


_ROOM = 1.25
_MANY_DECADES = 2.5


def delay_range(values_ns: Sequence[float]) -> tuple[float, float]:
    """Ends of a logarithmic axis, as powers of ten."""
    low = math.log10(max(min(values_ns), 1) / _ROOM)
    return low, math.log10(max(*values_ns, 2) * _ROOM)


def log_axis(low: float, high: float, until: float = math.inf) -> Figure:
    """A logarithmic axis of nanoseconds whose ticks have the unit that fits.

    Args:
        low: end, as power of ten.
        high: end, as power of ten.
        until: no tick beyond this power of ten; what follows is room for labels.
    """
    steps = (1,) if high - low > _MANY_DECADES else (1, 2, 5)
    ticks = [
        step * 10**decade
        for decade in range(math.floor(low), math.ceil(high) + 1)
        for step in steps
    ]
    last = min(high, until)
    shown = [tick for tick in ticks if low <= math.log10(tick) <= last and tick >= 1]
    return {
        "type": "log",
        "range": [round(low, 4), round(high, 4)],
        "tickvals": shown,
        "ticktext": [duration_ns(tick) for tick in shown],
    }


class SignedScale:
    """Positive and negative values on one axis: linear near zero, logarithmic beyond.

    The inverse hyperbolic sine of value / unit: every value has a place, zero too.
    """

    def __init__(self, unit_ns: float, largest_ns: float) -> None:
        self._unit_ns = unit_ns
        self._largest_ns = max(largest_ns, unit_ns)

    @classmethod
    def around(cls, typical_ns: float, largest_ns: float) -> SignedScale:
        """The scale for values half of which are within ``typical_ns`` of zero.

        They are in its linear part: a single hump of values must not look like two.
        """
        unit_ns = 10.0 ** math.ceil(math.log10(max(2 * typical_ns, 1)))
        return cls(unit_ns, largest_ns)

    def __call__(self, value_ns: float) -> float:
        """Where ``value_ns`` stands."""
        return math.asinh(value_ns / self._unit_ns)

    def value_ns(self, place: float) -> float:
        """What stands at ``place``."""
        return math.sinh(place) * self._unit_ns

    @property
    def ends(self) -> tuple[float, float]:
        """Where the axis begins and ends."""
        end = self(self._largest_ns * _ROOM)
        return -end, end

    def ticks(self) -> Figure:
        """At zero and at powers of ten on both sides, far enough from each other."""
        decades = math.floor(math.log10(self._largest_ns / self._unit_ns)) + 1
        every = 1 + decades // 5
        sizes = [self._unit_ns * 10**d for d in range(decades - 1, -1, -every)]
        if len(sizes) > 1:
            sizes = [size for size in sizes if size > self._unit_ns]
        values = [*(-size for size in sizes), 0.0, *reversed(sizes)]
        return {
            "tickvals": [round(self(value), 4) for value in values],
            "ticktext": [delay_ns(value) for value in values],
        }
