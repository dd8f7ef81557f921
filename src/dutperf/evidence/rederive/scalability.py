"""Overload scalability (RFC 8219 10.2.1): each value beside that of one flow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from dutperf.evidence.rederive import records

Json = dict[str, Any]
_MORE_IS_BETTER = ("throughput", "back-to-back")


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
    rows: dict[tuple[str, str, str], list[tuple[Json, float | None]]] = {}
    of_flows = [cell for cell in cells if cell.get("series") is not None]
    nameless = []
    for cell in of_flows:
        values = list(_values(cell, derived[cell["id"]]))
        for name, value in values:
            rows.setdefault((*_series(cell), name), []).append((cell, value))
        if not values:
            nameless.append(cell)
    for cell in nameless:
        for key, row in rows.items():
            if key[:2] == _series(cell):
                row.append((cell, None))
    return [_row(size, row, derived, trials) for (_, size, _name), row in rows.items()]


def _series(cell: Json) -> tuple[str, str]:
    return cell["series"], str(cell["parameters"]["frame_sizes"])


def _values(cell: Json, told: Json) -> Iterator[tuple[str, float | None]]:
    """A delay has one for each measure and direction; none was measured: no names."""
    valid = told["verdict"] != "invalid"
    if cell["procedure"] not in ("latency", "pdv", "ipdv"):
        yield "", told["median"] if valid else None
        return
    for measure in told["measures"]:
        name = "{name} {direction} {stream}".format_map(measure)
        yield name, measure["result"]["value"] if valid else None


def _row(
    size: str,
    row: Sequence[tuple[Json, float | None]],
    derived: Mapping[str, Json],
    trials: Mapping[str, Sequence[Json]],
) -> Json:
    by_flows = sorted(row, key=lambda each: int(each[0]["parameters"]["flows"]))
    procedure = row[0][0]["procedure"]
    better = 1 if procedure in _MORE_IS_BETTER else -1

    def known(place: int) -> float | None:
        cell, value = by_flows[place]
        return value if derived[cell["id"]].get("bound") is None else None

    flows = [int(cell["parameters"]["flows"]) for cell, _ in by_flows]
    one = known(flows.index(1)) if 1 in flows else None
    points = []
    for place, (cell, value) in enumerate(by_flows):
        several = known(place)
        worse = None
        if flows[place] != 1 and one and several is not None:
            worse = float(Fraction(one - several) * better * 100 / Fraction(one))
        points.append(
            {
                "flows": flows[place],
                "value": value,
                "at_least": derived[cell["id"]].get("bound") is not None,
                "degradation_percent": worse,
            }
            | _rate(cell, derived[cell["id"]], trials.get(cell["id"], ()))
        )
    told = {"better": "higher" if better > 0 else "lower", "frame_size": size}
    return told | {"points": points}


def _rate(cell: Json, told: Json, trials: Sequence[Json]) -> Json:
    """Of a throughput itself; of a loss that of the highest load; else as sent."""
    match cell["procedure"]:
        case "throughput":
            return {"rate_fps": told["median"]}
        case "frame-loss":
            loads = [point.get("load_fps") for point in told["points"]]
            return {"rate_fps": loads[0]} if loads and loads[0] is not None else {}
        case _:
            sent = records.of_role(trials)
            return {"rate_fps": sent[-1]["load_fps"]} if sent else {}
