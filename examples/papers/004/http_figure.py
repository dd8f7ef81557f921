"""The figure of http_download.py: what RFC 2544 finds beside what a user gets."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from dutperf.report.page import plotly_script

RFC_2544, USER, PAPER, LINK = "#0067b1", "#c25e00", "#c25e00", "#d5dae1"
INK, MUTED, GRID = "#17202b", "#566273", "#e8ebef"
FONT = "ui-sans-serif, system-ui, 'Noto Sans', sans-serif"
LINK_WIDTH = 5
ROW_HEIGHT = 46


def write_figure(result: dict[str, Any], path: Path) -> None:
    """Writes one page with one figure, which needs no network, to ``path``.

    Both findings are shares of the undisturbed device's, so that they stand on one
    axis: far apart is where RFC 2544 and a user disagree.
    """
    cases = [case for case in result["cases"] if case["times_as_long"] is not None]
    slow = [case["name"] for case in result["cases"] if case not in cases]
    drawn = {
        "data": _traces(cases),
        "layout": _layout(cases),
        "config": {"displayModeBar": False, "responsive": True},
    }
    told = json.dumps(drawn).replace("<", "\\u003c")
    figure = (
        f'<div id="figure"></div><script>{plotly_script()}</script>'
        f'<script>Plotly.newPlot("figure", {told})</script>'
    )
    path.write_text(_page(result, slow, figure), "utf-8")


def _traces(cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = [case["name"] for case in cases]
    rfc2544 = [case["rfc2544_percent"] for case in cases]
    here = [100 / case["times_as_long"] for case in cases]
    paper = [100 / case["paper_times_as_long"] for case in cases]
    links: dict[str, list[Any]] = {"x": [], "y": []}
    for name, one, other in zip(names, rfc2544, here, strict=True):
        links["x"] += [one, other, None]
        links["y"] += [name, name, None]
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "line": {"color": LINK, "width": LINK_WIDTH},
            "hoverinfo": "skip",
            "showlegend": False,
            **links,
        },
        _dots(
            "RFC 2544: throughput",
            names,
            rfc2544,
            {"symbol": "square", "color": RFC_2544, "size": 12},
            "%{x:.3~g} % of the maximum rate",
        ),
        _dots(
            "a user here: download speed",
            names,
            here,
            {"symbol": "circle", "color": USER, "size": 12},
            "%{x:.3~g} % of the undisturbed speed",
        ),
        _dots(
            "a user in the paper",
            names,
            paper,
            {
                "symbol": "circle-open",
                "color": PAPER,
                "size": 17,
                "line": {"width": 2},
            },
            "%{x:.3~g} % of the undisturbed speed",
        ),
    ]


def _dots(
    name: str, y: list[str], x: list[float], marker: dict[str, Any], hover: str
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": x,
        "y": y,
        "marker": marker,
        "hovertemplate": "%{y}: " + hover + f"<extra>{name}</extra>",
        "cliponaxis": False,
    }


def _layout(cases: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "height": 130 + ROW_HEIGHT * len(cases),
        "margin": {"l": 8, "r": 150, "t": 8, "b": 8},
        "font": {"family": FONT, "size": 14, "color": INK},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "xaxis": {
            "title": {"text": "of what the undisturbed device gives (%)"},
            "range": [-2, 104],
            "gridcolor": GRID,
            "zeroline": False,
            "automargin": True,
        },
        "yaxis": {"autorange": "reversed", "automargin": True, "showgrid": False},
        "annotations": [
            {
                "x": 1.02,
                "xref": "paper",
                "xanchor": "left",
                "y": case["name"],
                "text": f"{case['times_as_long']:.2f} times as long",
                "showarrow": False,
                "font": {"color": MUTED, "size": 13},
            }
            for case in cases
        ],
    }


def _page(result: dict[str, Any], slow: list[str], figure: str) -> str:
    machine = result["machine"]
    measured = (
        f"A file of {result['size_mb']} MB by HTTP through the known-answer device, "
        f"lines of {result['line_mbps']} Mbit/s, TCP {result['congestion_control']}, "
        f"Linux {machine['kernel']} with {machine['cpus']} CPUs; medians. RFC 2544: by "
        "reasoning, a trial of 60 s and frames of 1518 bytes. The paper: 10,000 MiB."
    )
    if slow:
        measured += f" Longer than {result['limit_s']:g} s: {', '.join(slow)}."
    title = "Where RFC 2544 and a user disagree"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{title}</title><style>body {{ font: 16px/1.5 {FONT}; color: {INK}; "
        "max-width: 1000px; margin: 24px auto; padding: 0 16px }"
        f" h1 {{ font-size: 24px }} p {{ color: {MUTED} }}</style></head><body>"
        f"<h1>{title}</h1>{figure}<p>{html.escape(measured)}</p></body></html>\n"
    )
