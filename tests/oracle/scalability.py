"""Over a number: flows (RFC 8219 10.2) beside one; of a sweep up to its knee."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from oracle import records, shifts

Json = dict[str, Any]
_MORE_IS_BETTER = (
    "throughput",
    "multicast-throughput",
    "tcp-connection-rate",
    "dns64",
    "dns",
    "back-to-back",
)
_AVERAGED = ("back-to-back", "system-recovery", "outage")
_TOGETHER = Fraction(5, 100)


class _Of(NamedTuple):
    """One value of a cell, and what its repeats say of it."""

    cell: Json
    value: float | None
    repeats: Sequence[shifts.Known] = ()
    averaged: bool = False

    def within(self, alpha: Fraction) -> shifts.Known | None:
        return shifts.within(self.repeats, self.averaged, alpha)

    @property
    def flows(self) -> int:
        return int(self.cell["parameters"]["flows"])


def derived_scalability(
    cells: Sequence[Json],
    derived: Mapping[str, Json],
    trials: Mapping[str, Sequence[Json]],
) -> list[Json]:
    """A row for each value of the cells that differ in their flows alone.

    Args:
        cells: as stored; of these the settings count.
        derived: what follows of each cell, by its id.
        trials: those of each cell, by its id.
    """
    rows: dict[tuple[str, str, str], list[_Of]] = {}
    of_flows = [cell for cell in cells if "flows" in cell["parameters"]]
    nameless = []
    for cell in of_flows:
        values = list(_values(cell, derived[cell["id"]]))
        for name, value in values:
            rows.setdefault((*_series(cell), name), []).append(value)
        if not values:
            nameless.append(cell)
    for cell in nameless:
        for key, row in rows.items():
            if key[:2] == _series(cell):
                row.append(_Of(cell, None))
    for row in rows.values():
        row.sort(key=lambda each: each.flows)
    pairs = [pair for row in rows.values() for pair in _compared(row, derived)]
    enough = [
        pair for pair in pairs if all(of.within(_TOGETHER) is not None for of in pair)
    ]
    alpha = _TOGETHER / max(1, len(enough))
    return [
        _row(size, row, derived, trials, alpha)
        for (_, size, _name), row in rows.items()
    ]


def _series(cell: Json) -> tuple[str, str]:
    return cell["series"], str(cell["parameters"]["frame_sizes"])


def _values(cell: Json, told: Json) -> Iterator[tuple[str, _Of]]:
    """A delay has one for each measure and direction; none was measured: no names."""
    valid = told["verdict"] != "invalid"
    if cell["procedure"] not in ("latency", "pdv", "ipdv"):
        known = shifts.rate_repeats(cell, told) if valid else ()
        averaged = cell["procedure"] in _AVERAGED
        yield "", _Of(cell, told["median"] if valid else None, known, averaged)
        return
    for measure in told["measures"]:
        name = "{name} {direction} {stream}".format_map(measure)
        known = shifts.delay_repeats(cell, told, measure) if valid else ()
        value = measure["result"]["value"] if valid else None
        yield name, _Of(cell, value, known, measure["summary"] == "mean")


def _compared(
    row: Sequence[_Of], derived: Mapping[str, Json]
) -> Iterator[tuple[_Of, _Of]]:
    """One flow and each other number of them, where both values are known."""

    def known(of: _Of) -> bool:
        return of.value is not None and derived[of.cell["id"]].get("bound") is None

    one = next((of for of in row if of.flows == 1), None)
    if one is not None and known(one) and one.value:
        yield from ((one, of) for of in row if of.flows != 1 and known(of))


def _row(
    size: str,
    row: Sequence[_Of],
    derived: Mapping[str, Json],
    trials: Mapping[str, Sequence[Json]],
    alpha: Fraction,
) -> Json:
    better = 1 if row[0].cell["procedure"] in _MORE_IS_BETTER else -1
    worse = {
        of.flows: _worse(one, of, better, alpha) for one, of in _compared(row, derived)
    }
    points = [
        {
            "flows": of.flows,
            "value": of.value,
            "at_least": derived[of.cell["id"]].get("bound") is not None,
        }
        | worse.get(of.flows, _worse(None, of, better, alpha))
        | _rate(of.cell, derived[of.cell["id"]], trials.get(of.cell["id"], ()))
        for of in row
    ]
    told = {"better": "higher" if better > 0 else "lower", "frame_size": size}
    per_flow = row[0].cell["parameters"].get("rate_per_flow_fps")
    return told | {"rate_per_flow_fps": per_flow, "points": points}


def _worse(one: _Of | None, of: _Of, better: int, alpha: Fraction) -> Json:
    """RFC 8219 10.2.1, in percent, and what it lies between."""
    keys = ("degradation_percent", "lower_percent", "upper_percent")
    if one is None or not one.value or of.value is None:
        return dict.fromkeys(keys)
    change = Fraction(one.value - of.value) * better * 100 / Fraction(one.value)
    before, after = one.within(alpha), of.within(alpha)
    told: list[float | None] = [None, None]
    if before and after:
        ratios = [_ratio(after.low, before.high), _ratio(after.high, before.low)]
        ends = [better * (1 - ratio) * 100 for ratio in ratios]
        told = [end if math.isfinite(end) else None for end in ends[::-better]]
    return dict(zip(keys, (float(change), *told), strict=True))


def _ratio(new: float, old: float) -> float:
    return new / old if old and not math.isinf(old) else math.inf


def _rate(cell: Json, told: Json, trials: Sequence[Json]) -> Json:
    """Of a throughput itself; of a loss that of the highest load; else as sent."""
    match cell["procedure"]:
        case (
            "throughput"
            | "multicast-throughput"
            | "dns64"
            | "dns"
            | "tcp-connection-rate"
        ):
            return {"rate_fps": told["median"]}
        case "frame-loss":
            loads = [point.get("load_fps") for point in told["points"]]
            return {"rate_fps": loads[0]} if loads and loads[0] is not None else {}
        case _:
            sent = records.of_role(trials)
            return {"rate_fps": sent[-1]["load_fps"]} if sent else {}


def derived_sweep(stored: Json, derived: Mapping[str, Json]) -> Json:
    """The values of one sweep, and its knee: each suffix of them is looked at.

    How far a value is known is taken as it is stored.
    """
    points = [
        {"number": each["number"], "value": _known_value(derived[each["cell"]])}
        for each in stored["points"]
    ]
    known = [each for each in stored["points"] if each["value"] is not None]
    told = {"points": points, "plateau": None, "knee": None}
    told |= {"knee_above": None, "knee_until": None}
    top = sorted(each["value"] for each in known[-3:])
    part = stored["within_percent"] / 100
    is_open = any(each["high"] is None for each in known[-3:])
    if len(known) < 4 or is_open or not top[1] > 0:
        return told
    least, most = top[1] - part * top[1], top[1] + part * top[1]
    if top[0] < least or top[2] > most:
        return told
    told["plateau"] = top[1]
    near = [least <= each["value"] <= most for each in known]
    begin = min(n for n in range(len(known)) if all(near[n:]))
    if begin == 0:
        return told
    rises = known[0]["value"] < top[1]
    end = len(known) - 3
    for n in range(end, begin - 1, -1):
        low, high = known[n]["low"], known[n]["high"]
        sure = low >= least if rises else high is not None and high <= most
        if n < len(known) - 3 and not sure:
            break
        end = n
    off = [
        each["number"]
        for each in known[:begin]
        if each["low"] > most or (each["high"] is not None and each["high"] < least)
    ]
    told["knee"], told["knee_until"] = known[begin]["number"], known[end]["number"]
    told["knee_above"] = off[-1] if off else None
    return told


def _known_value(told: Json) -> float | None:
    value: float | None = told["median"]
    return value if told["verdict"] == "pass" else None
