"""Rows as texts: the same on a terminal and in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dutperf.calibration.model import Calibration, FlowControl, Path, Row

HEADS = (
    "setting",
    "path",
    "figure",
    "set",
    "account",
    "found",
    "error",
    "worst",
    "spread",
    "allowed",
    "verdict",
)
WORDS = {"setting", "path", "figure", "allowed", "verdict"}
"""Columns that are no figures."""


_UNITS = {"ns": "us"}
"""What is shown for what is stored."""
_WHOLE = {"frames", "connections"}
"""Whose errors are told as they are, not as a share."""
_PATHS: dict[Path, str] = {
    "memory": "memif",
    "af_packet": "AF_PACKET",
    "af_xdp": "AF_XDP",
}


def texts(row: Row) -> tuple[str, ...]:
    """One for each of ``HEADS``."""
    return (
        row.setting,
        _PATHS[row.path],
        f"{row.figure}, {_UNITS.get(row.unit, row.unit)}",
        _figure(row.expected, row.unit),
        _figure(row.account, row.unit),
        _at_least(row.bound) + _figure(row.found, row.unit),
        _error(row.error, row.error_percent, row.unit),
        _error(row.worst, row.worst_percent, row.unit),
        "-" if row.spread_percent is None else f"{row.spread_percent:.2f} %",
        _target(row),
        row.verdict,
    )


def _at_least(bound: str | None) -> str:
    return ">= " if bound else ""


def sections(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Rows of one part of the grid; the same setting on other paths stands beside."""
    for quantity in dict.fromkeys(row.quantity for row in rows):
        own = [row for row in rows if row.quantity == quantity]
        places = {row.setting: n for n, row in reversed(list(enumerate(own)))}
        yield quantity, sorted(own, key=lambda row: (places[row.setting], row.figure))


FLOW_HEADS = (
    "device",
    "dropping: account",
    "found",
    "error",
    "flow control: at most",
    "found",
    "held back",
    "a classic tester",
    "really offered",
    "verdict",
)


def flow_texts(row: FlowControl) -> tuple[str, ...]:
    """One for each of ``FLOW_HEADS``; frames per second."""
    found = _figure(row.found_fps, "fps")
    return (
        f"{row.service_fps:,}, {_PATHS[row.path]}",
        _figure(row.dropping.account, "fps"),
        _figure(row.dropping.found, "fps"),
        _error(row.dropping.error, row.dropping.error_percent, "fps"),
        _figure(row.most_fps, "fps"),
        "invalid" if row.found_fps is None else f"{_at_least(row.bound)}{found}",
        f"{row.held_back} of {row.trials} trials",
        _figure(row.classic_fps, "fps"),
        _figure(row.classic_offered_fps, "fps"),
        row.verdict,
    )


def markdown(calibrations: Sequence[Calibration]) -> str:
    """The tables of several runs, one after the other, and what disturbed them."""
    parts = []
    for number, each in enumerate(calibrations, 1):
        parts.append(f"## Run {number}: {each.created_at}\n")
        parts.append(_about(each))
        parts += [
            f"### {quantity}\n\n{_table(rows)}\n{_misses(rows)}"
            for quantity, rows in sections(each.rows)
        ]
        if each.flow_control:
            parts.append(f"### flow control, fps\n\n{_flow_table(each.flow_control)}")
    return "\n".join(parts)


def _about(each: Calibration) -> str:
    lines = [f"* {key}: {value}" for key, value in each.machine.items()]
    lines += [
        f"* {check.name.replace('_', ' ')}: {check.verdict}: {check.found}"
        for check in each.checks
        if check.is_finding
    ]
    lines += [f"* hand-over between CPUs: {each.handover_ns} ns at most"]
    lines += [_limit(each, name) for name in each.limits_fps]
    lines.append(f"* {each.duration_s:,.0f} s, dutperf {each.dutperf_version}")
    if not each.complete:
        lines.append("* **ended before its last point**")
    return "\n".join(lines) + "\n"


def _limit(each: Calibration, name: str) -> str:
    text = f"* limit, {name}: {each.limits_fps[name]:,} fps"
    safe_fps = each.safe_rates_fps.get(name)
    return text + (f"; safe by the passport: {safe_fps:,}" if safe_fps else "")


def _table(rows: Sequence[Row]) -> str:
    rule = tuple("---" if head in WORDS else "---:" for head in HEADS)
    return _lines([HEADS, rule, *map(texts, rows)])


def _flow_table(rows: Sequence[FlowControl]) -> str:
    rule = ("---:",) * len(FLOW_HEADS)
    reasons = "".join(
        f"\n* {row.service_fps:,} fps: {reason}"
        for row in rows
        for reason in row.reasons
    )
    return _lines([FLOW_HEADS, rule, *map(flow_texts, rows)]) + reasons


def _lines(lines: Sequence[Sequence[str]]) -> str:
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _misses(rows: Sequence[Row]) -> str:
    return "".join(
        f"\n* {row.setting}, {row.figure}: {reason}"
        for row in rows
        for reason in row.reasons
    ) + ("\n" if any(row.reasons for row in rows) else "")


def _figure(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "ns":
        return f"{value / 1000:,.2f}"
    return f"{value:,.1f}" if value % 1 else f"{value:,.0f}"


def _target(row: Row) -> str:
    """A stated error differs from trial to trial: the one that allowed least."""
    if row.unit != "ns" or not row.pairs:
        return row.target
    least, most = min((p.allowed for p in row.pairs), key=lambda a: a[1] - a[0])
    return f"{least / 1000:+,.1f} to {most / 1000:+,.1f}"


def _error(value: float | None, percent: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "ns":
        return f"{value / 1000:+,.2f}"
    if percent is None or unit in _WHOLE:
        return f"{value:+,.0f}" if value else "0"
    return f"{percent:+.2f} %"
