"""What stands beside every result, and what one cell takes from another.

The media, the sum of directions, the load that another cell found, and what a gateway's
hooks printed of its table.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from dutperf.evidence import accounting
from oracle import formulas, records
from oracle.management import management
from oracle.searches import Limit

Json = dict[str, Any]


class Source(NamedTuple):
    """What a cell is derived from.

    cell: as it is stored; its settings are read, and no figure.
    trials: its own, of the journal, in order.
    ports: of the tester, as the environment has them.
    done: what was derived of the cells before it, by id.
    passport: of the tester, as the environment has it; None: nobody knew.
    """

    cell: Json
    trials: Sequence[Json]
    ports: Sequence[Json]
    done: Mapping[str, Json]
    passport: Json | None = None

    @property
    def settings(self) -> Json:
        """How it was measured."""
        return dict(self.cell["parameters"])


def limit_of(source: Source) -> Limit:
    """The most that was asked for, and whether a device that passes may do more."""
    told = source.settings
    fps, kind = told.get("max_load_fps"), told.get("max_load_is")
    physical = [m["rate_fps"] for m in _media_of(source) if not m["nominal"]]
    full = bool(physical) and fps is not None and fps >= min(physical)
    causes = {"media": "nominal", "set": "set", "tester": "tester"}
    at_media = kind == "media" and not source.ports
    return Limit(fps or 0, None if full or at_media else causes.get(str(kind)))


def share_of(asked: str, found: Json) -> int | None:
    """What "50% of throughput p5" is of the repeats of a cell that was derived."""
    share, _, name = asked.rpartition("% of ")
    quantile = name.partition(" p")[2]
    values = [r["value"] for r in found["repeats"] if r["value"] is not None]
    rate = formulas.median(values)
    if quantile:
        rate = formulas.percentile(values, Fraction(int(quantile), 100))
    return int(Fraction(rate) * Fraction(share or 100) / 100)


def beside(source: Source, told: Json) -> Json:
    """The media, the sum of directions, and the load that came from another cell."""
    found: Json = {}
    media = _media(source)
    median, passed = told.get("median"), told.get("verdict") == "pass"
    is_rate = source.cell["procedure"] in ("throughput", "multicast-throughput")
    rate = median if is_rate else None
    if media:
        share = None
        if rate is not None and passed:
            share = rate * 100 / media["rate_fps"]
        found["media"] = media | {"share_percent": share}
    elif source.ports and source.trials:
        found["media"] = None
    found |= {"sum_fps": None, "wire": []}
    if rate is not None:
        ways = _ways(source)
        found["sum_fps"] = rate * len(ways)
        found["wire"] = [
            {"direction": way, "mbps": _mbps(source, way, rate)} for way in ways
        ]
    found["beside"] = _beside_stream(source)
    found["management"] = management(source.trials)
    found |= _load(source) | _of_hooks(source)
    return found


def _beside_stream(source: Source) -> list[Json]:
    """Frames that need not be forwarded: sent, and come, where trials passed."""
    own = records.of_role(source.trials)
    passed = [trial for trial in own if accounting.verdict(trial) == "pass"]
    counted: dict[str, Json] = {}
    for trial in passed or [t for t in own if accounting.verdict(t) == "fail"]:
        for direction in accounting.directions(trial):
            if told := direction.get("beside"):
                way = direction["name"]
                each = {"direction": way, "sent": 0, "received": 0}
                each = counted.setdefault(way, each)
                each["sent"] += told["sent"]
                each["received"] += told["received"]
    return list(counted.values())


def _ways(source: Source) -> list[str]:
    way = source.settings["direction"]
    return ["forward", "reverse"] if way == "both" else [way]


def _mbps(source: Source, way: str, rate_fps: float) -> float | None:
    """What one direction takes of its medium, preambles and gaps included."""
    side = "left" if way == "forward" else "right"
    size = _wire_size(source, side, ("srh",))
    if size is None:
        return None
    return float(Fraction(rate_fps) * 8 * (size + 20) / 10**6)


def _size(source: Source, side: str) -> Fraction | None:
    own = records.of_role(source.trials) or source.trials
    return records.mean_size(own[0], side) if own else None


def _wire_size(source: Source, side: str, headers: tuple[str, ...]) -> Fraction | None:
    """With what the port has before IP (IEEE 802.3ac, RFC 5695 4.1.5, RFC 8219 4.2).

    ``headers``: whose segments count, of frames that it sends or of those that come.
    """
    size = _size(source, side)
    ports = [port for port in source.ports if port["name"] == side]
    tagged = ports[:1]  # as all ports of a side are
    before = sum(len(port.get(key, [])) for port in tagged for key in ("vlan", "mpls"))
    outer = sum(_outer_bytes(port.get("encapsulation"), headers) for port in tagged)
    return size and size + 4 * before + outer


def _outer_bytes(tunnel: Json | None, headers: tuple[str, ...]) -> int:
    """An IP header, and behind it of GRE 4, of UDP, VXLAN and Ethernet 8, 8 and 14.

    Of a routing header 8, and 16 of each segment in it (RFC 8754 2).
    """
    if not tunnel:
        return 0
    ip = 40 if ":" in tunnel["remote"] else 20
    if tunnel["kind"] == "srv6":
        paths = [tunnel[each] for each in headers]
        listed = [p["segments"][1:] if p["reduced"] else p["segments"] for p in paths]
        return ip + max(8 * bool(each) + 16 * len(each) for each in listed)
    return ip + {"ip": 0, "gre": 4, "vxlan": 30}[tunnel["kind"]]


def _media_of(source: Source) -> list[Json]:
    """What each medium carries of the cell's frames (RFC 5180 A.1).

    Frames go round the ports of a side, so all of them carry that often as much.
    """
    found = []
    pairs = sum(port["name"] == "left" for port in source.ports)
    for port in sorted(source.ports, key=lambda port: str(port["name"])):
        side = port["name"]
        ways = {"forward": ("left", "right"), "reverse": ("right", "left")}
        used = [ways[way].index(side) for way in _ways(source)]
        size = _wire_size(source, side, tuple(("srh", "received_srh")[n] for n in used))
        size = size and size + _of_pieces(source, port, size)
        if port.get("link_speed_mbps") and size is not None:
            mbps = port["link_speed_mbps"]
            found.append(
                {
                    "rate_fps": pairs * formulas.line_rate_fps(mbps, size),
                    "link_speed_mbps": mbps,
                    **({"ports": pairs} if pairs > 1 else {}),
                    "nominal": _is_virtual(port),
                }
            )
    return found


def _of_pieces(source: Source, port: Json, size: Fraction) -> int:
    """What a device adds that sends frames on in pieces (RFC 791 3.2, RFC 8200 4.5).

    Of each but the first: an IP header, Ethernet's, FCS, preamble and gap; and, of
    IPv6, eight bytes of each. What comes is cut if it was sent as IPv4.
    """
    settings = source.settings
    side, other = ("left", "right") if port["name"] == "left" else ("right", "left")
    comes = {"left": "reverse", "right": "forward"}[side] in _ways(source)
    mtu = port.get("mtu") or 1 << 16
    ip, more = (20, 0) if settings[f"ip_{side}"] == 4 else (40, 8)
    if more:
        mtu = min(mtu, settings.get("lowest_ipv6_mtu", 1280))
    cut = settings.get("fragmented") and settings[f"ip_{other}"] == 4
    if not comes or not cut or size - 18 <= mtu:
        return 0
    longest = (mtu - ip - more) // 8 * 8
    pieces = math.ceil((size - 18 - ip) / longest)
    return (pieces - 1) * (ip + more + 18 + 20) + more


_VIRTUAL = {"bridge", "dummy", "ipvlan", "macvlan", "tun", "veth", "vxlan"}
_NO_MEDIUM = {"memif", "null", "ring", "vdev"}


def _is_virtual(port: Json) -> bool:
    return port.get("kernel_driver") in _VIRTUAL or port["driver"] in _NO_MEDIUM


def _media(source: Source) -> Json | None:
    found = _media_of(source)
    if not found or len(found) < len(source.ports):
        return None
    return min(found, key=lambda media: int(media["rate_fps"]))


def _load(source: Source) -> Json:
    """At which it was measured, and whether that is what was asked for."""
    stored = source.cell.get("load")
    trials = records.of_role(source.trials)
    if not stored or not trials:
        return {} if stored else {"load": None}
    before = source.done.get(stored.get("cell") or "")
    asked = share_of(stored["asked"], before) if before else None
    sent = trials[0]["load_fps"]
    if source.cell["procedure"] == "power":  # the loads rise to it
        sent = trials[-1]["load_fps"]
    if source.cell["procedure"] == "system-recovery" and stored["asked"].isdecimal():
        asked = int(stored["asked"])
    if source.cell["procedure"] in ("frame-loss", "system-recovery"):
        sent = asked
    told = sent if sent != asked and sent is not None and before else asked or sent
    return {"load": {} if told is None else {"rate_fps": told}}


_TABLE = {
    "table_size": "nf_conntrack_max|table_size",
    "hash_size": "nf_conntrack_buckets|hash_size|hashsize",
}


def _of_hooks(source: Source) -> Json:
    """What a gateway's hooks printed of its table, and what it knew before."""
    found: Json = dict.fromkeys(_TABLE)
    for trial in source.trials if "connections" in source.settings else []:
        for run in trial.get("hooks", []):
            for key, names in _TABLE.items():
                for line in re.findall(
                    rf"(?:{names})\s*[:=]\s*([0-9]+)", run["output"]
                ):
                    found[key] = int(line)
    known = [t["earlier"] for t in source.trials if t.get("earlier")]
    earlier = None
    if known:
        earlier = {
            "connections": max(each["connections"] for each in known),
            "waited_s": round(sum(each["waited_s"] for each in known), 3),
        }
    shown = any(value is not None for value in found.values())
    return {"limits": found if shown else None, "earlier": earlier}
