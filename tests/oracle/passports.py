"""Once more how a result stands to what the tester can do without a device.

The passport is in ``environment.json``. Which of its entries a result is held to
follows from the frames; what it says of them is taken as it stands.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from typing import Any

from oracle import records
from oracle.beside import Source

Json = dict[str, Any]

_OF_RATES = (
    "throughput",
    "multicast-throughput",
    "tcp-connection-rate",
    "dns64",
    "dns",
    "connection-rate",
)
_VERSIONS: Mapping[str, tuple[int, int]] = {
    "4": (4, 4),
    "6": (6, 6),
    "6-4": (6, 4),
    "4-6": (4, 6),
}
"""IP versions on the left and on the right."""


def beside_passport(source: Source, told: Json) -> Json:
    """The share of the safe rate, and delays that are below the tester's own."""
    stored = source.cell.get("passport")
    if not stored:
        return {"passport": None}
    entries = list(_entries(source, stored["features"]))
    if not entries:
        return {}
    slower = min(entries, key=lambda entry: entry["safe_rate_fps"] or 0)
    safe, rate = slower["safe_rate_fps"], _rate(source, told)
    floor = min(slower["delays"], key=lambda d: int(d["typical_ns"]), default=None)
    each_ns, share = slower["device_ns_per_frame"], None
    if each_ns is not None and rate:
        ways = 2 if source.settings["direction"] == "both" else 1
        share = min(100.0, each_ns * rate * ways / 1e7)
    found: Json = {
        "passport": {
            "passport": stored["passport"],
            "features": stored["features"],
            "safe_rate_fps": safe,
            "trials": slower["trials"],
            "rate_fps": rate,
            "share_percent": rate * 100 / safe if rate and safe else None,
            "floor": floor,
            "device_share_percent": share,
        }
    }
    if floor and told.get("measures"):
        found["measures"] = [_told_above(floor, m) for m in told["measures"]]
    return found


def _entries(source: Source, features: str) -> Iterator[Json]:
    """Those of the cell's frames on either side."""
    told = source.settings
    own = records.of_role(source.trials) or source.trials
    left, right = _VERSIONS[str(told["ip"])]
    for entry in (source.passport or {}).get("entries", []):
        sent = entry["sent"]
        if sent["features"] != features or not own:
            continue
        if not sent["opens"] and sent["direction"] != told["direction"]:
            continue
        sizes = sent["frame_sizes"]
        mean = Fraction(sum(sizes), len(sizes))
        for side, version in (("left", left), ("right", right)):
            there = records.mean_size(own[0], side)
            alike = there is None or there == mean or " mix " in f" {features}"
            if sent["ip"] == version and alike:
                yield entry
                break


def _rate(source: Source, told: Json) -> float | None:
    valid = [
        trial
        for trial in source.trials
        if trial.get("role", "trial") in {"trial", "phase1"}
        and trial["result"]["verdict"]["kind"] != "invalid"
    ]
    if "burst_frames" in source.settings:
        sent = [d["rate_fps"] for t in valid for d in t["request"]["directions"]]
        return max(sent, default=None)
    if source.cell["procedure"] in _OF_RATES:
        return told.get("median")
    return max((trial["load_fps"] for trial in valid), default=None)


def _told_above(floor: Json, measure: Json) -> Json:
    typical, worst = floor["typical_ns"], floor["worst_ns"]
    least = {
        "TL": typical,
        "latency": typical,
        "WCL": worst,
        "PDV": worst - floor["minimum_ns"],
    }.get(measure["name"])

    def told(figure: Json) -> Json:
        value = figure["value"]
        below = least is not None and value is not None and value < least
        return figure | {"below_ns": least if below else None}

    return measure | {
        "repeats": [told(figure) for figure in measure["repeats"]],
        "result": told(measure["result"]),
        "percentile_1": told(measure["percentile_1"]),
        "percentile_99": told(measure["percentile_99"]),
    }
