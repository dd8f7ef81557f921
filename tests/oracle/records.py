"""What one trial of a journal says, read from its plain JSON.

By the keys of the file, without the models that wrote it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from dutperf.evidence.accounting import (
    LOSSES,
    codes,
    directions,
    is_taken_over,
    missing,
    role,
    streams,
    verdict,
)

Json = dict[str, Any]

_OTHER_RATES_TOO = {
    "link_down",
    "flow_control",
    "neighbour_missing",
    "nothing_sent",
    "hook_failed",
    "phase1_failed",
    "unexpected_address",
    "not_translated",
    "renumbered",
    "connections_expired",
}
_BY_OTHERS = {
    "sender_lag",
    "sender_burst",
    "sender_behind",
    "receiver_lag",
    "device_cpu_taken",
}


def by_cell(trials: Sequence[Json]) -> dict[str, list[Json]]:
    """The trials of each cell that count: of one taken over those that came then."""
    found: dict[str, list[Json]] = {}
    for trial in trials:
        of_cell = found.setdefault(trial["cell"], [])
        if of_cell and is_taken_over(of_cell[-1], trial):
            of_cell.clear()
        of_cell.append(trial)
    return found


def seconds(trial: Json) -> Fraction:
    """How long it was to last."""
    return Fraction(trial["request"]["duration_ns"], 10**9)


# --- loss


def missing_whole(direction: Json) -> int:
    """The same, damaged frames taken as received."""
    damaged = sum(min(s.get("corrupt", 0), s["lost"]) for s in direction["streams"])
    return int(missing(direction) - damaged)


def own_drops(trial: Json, direction: Json) -> int:
    """What the tester may have dropped of a direction's frames itself."""
    receiver = "right" if direction["name"] == "forward" else "left"
    drops = int(trial["result"].get("input_queue_drops", 0))
    for port in trial["result"]["ports"]:
        if port["name"] != receiver:
            drops += port.get("send_drops", 0)
            continue
        before, after = port["before"], port["after"]
        drops += after["rx_missed"] - before["rx_missed"]
        drops += after["rx_nombuf"] - before["rx_nombuf"]
        drops += port.get("interface_drops", 0) + port.get("not_taken_over", 0)
    return drops


def loss_percent(trial: Json, name: str | None = None, *, whole: bool = False) -> float:
    """(input - output) * 100 / input (RFC 2544 26.3), of one direction or all."""
    chosen = [d for d in directions(trial) if name is None or d["name"] == name]
    of = missing_whole if whole else missing
    lost = sum(max(of(d) - own_drops(trial, d), 0) for d in chosen)
    return float(lost * 100 / sum(s["sent"] for d in chosen for s in d["streams"]))


def timeout_loss_percent(trial: Json, place: int) -> float:
    """What is lost if frames slower than timeout number ``place`` are."""
    every = streams(trial)
    lost = sum(s["lost"] + s["slower"][place]["frames"] for s in every)
    return float(lost * 100 / sum(s["sent"] for s in every))


def loss_ratio(trial: Json) -> float:
    """As a goal of MLRsearch sees it: what fails otherwise counts as all lost."""
    if verdict(trial) == "fail" and not codes(trial) <= LOSSES:
        return 1.0
    return loss_percent(trial) / 100


# --- why it is invalid


def could_not_offer(trial: Json) -> bool:
    """Whether the load was more than the tester's, and not for a dead link."""
    told = codes(trial)
    return bool(told & {"sender_behind", "held_back"}) and not told & _OTHER_RATES_TOO


def helped_by_rate(trial: Json) -> bool:
    """Whether an invalid trial could be another one at another rate."""
    return verdict(trial) != "invalid" or not codes(trial) & _OTHER_RATES_TOO


def disturbed(trial: Json) -> bool:
    """Whether others on the machine are all that spoilt it."""
    told = codes(trial) - LOSSES - {"duplicates"}
    return bool(told & _BY_OTHERS) and told <= _BY_OTHERS | {"receiver_overflow"}


def offered_fps(trial: Json) -> float:
    """By the slower direction."""
    return float(min(d["offered_rate_fps"] for d in directions(trial)))


# --- frames


def burst_frames(trial: Json) -> int:
    """How many each direction was to send."""
    first = directions(trial)[0]
    every = [*first["streams"], first.get("beside") or {"intended": 0}]
    return int(sum(each["intended"] for each in every))


def mean_size(trial: Json, side: str) -> Fraction | None:
    """Of the frames on one side of the device; None: a request that does not tell.

    Where the directions differ (a device that leaves headers out), of the larger ones.
    """
    found = [_mean_size(way, side) for way in trial["request"]["directions"]]
    known = [size for size in found if size is not None]
    return max(known) if known and len(known) == len(found) else None


def _mean_size(direction: Json, side: str) -> Fraction | None:
    sends = (direction["name"] == "forward") == (side == "left")
    key = "frame_sizes" if sends else "received_frame_sizes"
    sizes = [stream.get(key) for stream in direction["streams"]]
    if not all(sizes):
        return None
    means = [Fraction(sum(each), len(each)) for each in sizes]
    mix = direction.get("mix") or {"foreground": 1, "of": 1}
    share = Fraction(mix["foreground"], mix["of"])
    return share * means[0] + (1 - share) * means[-1]


# --- phases (RFC 9693)


def opens(trial: Json) -> bool:
    """Whether it is phase 1, which makes a new table."""
    learn, tcp = trial["request"].get("learn"), trial["request"].get("tcp")
    return tcp["begin"] == "syn" if tcp else bool(learn) and not learn["keep"]


def connections(trial: Json) -> int:
    """How many phase 1 opens."""
    if trial["request"].get("tcp"):
        return sum(stream["intended"] for stream in streams(trial))
    return int(trial["request"]["learn"]["entries"])


def foreign_addresses(trial: Json) -> bool:
    """Whether frames came from where none should."""
    table = trial["result"].get("table")
    return bool(table) and table["unexpected"] > 0


def is_not_translated(trial: Json) -> bool:
    """Whether the responder saw an address that the initiator sends from."""
    if tcp := trial["result"].get("tcp"):
        came = tcp["segments"][0]["received"]
        return tcp["responder"]["untranslated"] > 0 and not came
    seen = (trial["result"].get("table") or {}).get("source_example")
    streams = (d["streams"][0] for d in trial["request"]["directions"])
    return seen is not None and any(_is_of(stream, seen) for stream in streams)


def _is_of(stream: Json, address: str) -> bool:
    """By what stands before the bits that vary, and behind them."""
    own, seen = map(ipaddress.ip_address, (stream["src_ip"], address))
    if own.version != seen.version:
        return False
    told, saw = (f"{int(each):0{own.max_prefixlen}b}" for each in (own, seen))
    free = {
        place
        for varied in stream["vary"]
        if varied["field"] == "src_ip"
        for place in range(varied["offset"], varied["offset"] + varied["width"])
    }
    return all(
        one == other
        for place, (one, other) in enumerate(zip(told, saw, strict=True))
        if place not in free
    )


def hook_runs(trial: Json, moment: str) -> Iterator[Json]:
    """What hooks of that moment did, in order."""
    yield from (run for run in trial.get("hooks", []) if run["moment"] == moment)


def of_role(trials: Sequence[Json], name: str = "trial") -> list[Json]:
    """Those that were for that."""
    return [trial for trial in trials if role(trial) == name]
