"""Frames beside the stream in words."""

from __future__ import annotations

from dutperf.results.model import CellResult


def beside_sentence(*cells: CellResult) -> str:
    """How many were sent and came; empty: nothing was beside the stream.

    ``cells`` have the same ones.
    """
    counts = [each for cell in cells for each in cell.beside]
    if not counts:
        return ""
    sent, came = (sum(getattr(c, key) for c in counts) for key in ("sent", "received"))
    told = "all" if came == sent else f"{came:,}" if came else "none"
    what = cells[0].parameters.get("beside")
    return f"{what} beside the stream: {sent:,} sent, {told} came"
