"""Whether a journal holds together: every frame accounted for, every verdict earned.

By the plain JSON of its trials, not by the models that wrote it. The rules are those of
the engine's verdict (docs/adr/0001, RFC 2544 26.1), written once more; and what a trial
says in two places, or says though something else rules it out.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

Json = dict[str, Any]
LOSSES = {"frames_lost", "frames_late"}
_TRIAL_IDS = 65535


def check_trials(trials: Sequence[Json]) -> Iterator[str]:
    """What is wrong with them, trial by trial; nothing: each can be believed."""
    yield from _numbering(trials)
    for trial, ids in zip(trials, _expected_ids(trials), strict=True):
        where = f"trial {trial['number']}"
        whole = (
            *(_frames(trial), _segments(trial), _queries(trial)),
            _verdict(trial),
        )
        for told in (*itertools.chain(*whole), *_request(trial, ids)):
            yield f"{where}: {told}"


def _numbering(trials: Sequence[Json]) -> Iterator[str]:
    """Each trial is there once, in the order in which it was made."""
    seen: dict[tuple[str | None, int], int] = {}
    for place, trial in enumerate(trials, 1):
        if trial["number"] != place:
            yield f"trial {trial['number']} stands where trial {place} should"
        begin = trial["result"].get("begin_unix_ns")
        at = (trial.get("place"), begin or -place)
        if at in seen:
            yield (
                f"trials {seen[at]} and {trial['number']} began in the same "
                "nanosecond: one of them is a copy"
            )
        seen[at] = trial["number"]


def _expected_ids(trials: Sequence[Json]) -> Iterator[set[int]]:
    """Of each trial: its place among those of its testbed, or of an old run of all.

    A cell that an equal testbed took over is counted from its begin there.
    """
    at: dict[str | None, list[Json]] = {}
    for trial in trials:
        before = at.setdefault(trial.get("place"), [])
        if before and is_taken_over(before[-1], trial):
            before[:] = [t for t in before if t["cell"] != trial["cell"]]
        before.append(trial)
        yield {(n - 1) % _TRIAL_IDS + 1 for n in (len(before), trial["number"])}


# --- frames


def _frames(trial: Json) -> Iterator[str]:
    recorded = "role" in trial
    for direction in directions(trial):
        for name in ("lag_ns", "burst_frames", "send_call_ns", "receive_gap_ns"):
            yield from _histogram(direction.get(name), f"{direction['name']}: {name}")
        for stream in direction["streams"]:
            where = f"{direction['name']} {stream['name']}"
            for told in _stream(stream, recorded=recorded):
                yield f"{where}: {told}"
        beside = direction.get("beside")
        if beside and not beside["received"] <= beside["sent"] <= beside["intended"]:
            yield f"{direction['name']}: more beside it were sent or came than can be"


def _stream(stream: Json, *, recorded: bool) -> Iterator[str]:
    sent, received, lost = (stream[key] for key in ("sent", "received", "lost"))
    if sent - received != lost:
        yield f"{sent} sent less {received} received are not {lost} lost"
    if sent > stream["intended"]:
        yield f"{sent} sent are more than {stream['intended']} intended"
    if stream.get("late", 0) > received:
        yield f"{stream['late']} late are more than {received} received"
    for key, of in (("lost_in_shadow", "lost"), ("late_in_shadow", "late")):
        if stream.get(key, 0) > stream.get(of, 0):
            yield f"{key} is more than {of}"
    damaged = stream.get("damaged")
    if damaged is not None and sum(damaged.values()) != stream["corrupt"]:
        yield f"its kinds of damage are not {stream['corrupt']} in sum"
    inspected = stream.get("inspected")
    if inspected is not None:
        most = max(inspected.get(kind, 0) for kind in ("ttl", "dscp", "payload"))
        if most > inspected["frames"]:
            yield f"{most} altered are more than {inspected['frames']} inspected"
    if recorded:
        yield from _recorded(stream)


def _recorded(stream: Json) -> Iterator[str]:
    """What is recorded beside the counts is of as many frames."""
    received, lost = stream["received"], stream["lost"]
    with_delay = stream["delay_ns"]["count"] + stream["negative_delays"]
    if with_delay != received:
        yield f"{with_delay} delays are not those of {received} received frames"
    for name in ("delay_ns", "shaded_delay_ns", "ipdv_ns", "shaded_ipdv_ns"):
        yield from _histogram(stream.get(name), name)
    yield from _histogram(stream["loss_runs"], "loss_runs")
    series = stream["series"]
    for key in ("sent", "received"):
        if sum(series[key]) != stream[key]:
            yield f"{sum(series[key])} {key} by time are not {stream[key]}"
    runs = stream["loss_runs"]["buckets"]
    least, most = (sum(each[end] * each[2] for each in runs) for end in (0, 1))
    if not least <= lost <= most:
        yield f"runs of {least} to {most} lost frames are not {lost} lost"
    longest = stream.get("longest_loss")
    if longest is not None and longest["frames"] != stream["loss_runs"]["max"]:
        yield f"the longest run, of {longest['frames']} frames, is not that of its runs"
    tags = stream.get("tags")
    if tags is not None:
        without = tags["delays_ns"].count(None)
        if without != tags["lost"]:
            yield f"{without} tags have no delay, and {tags['lost']} are lost"
    survival = stream.get("survival")
    if survival is not None:
        yield from _survival(survival, stream)
    connections = stream.get("connections")
    if connections is not None:
        yield from _connections(connections)
    for each in stream["slower"]:
        yield from _slower(each, stream)


def _slower(told: Json, stream: Json) -> Iterator[str]:
    """Frames slower than a timeout are those of the buckets above it."""
    timeout, frames = told["timeout_ns"], told["frames"]
    buckets = stream["delay_ns"]["buckets"]
    least = sum(count for low, _, count in buckets if low > timeout)
    most = sum(count for _, high, count in buckets if high > timeout)
    if not least <= frames <= most:
        yield f"{frames} slower than {timeout} ns, by their delays {least} to {most}"


def _survival(survival: Json, stream: Json) -> Iterator[str]:
    if sum(survival["received"]) != stream["received"]:
        yield f"{sum(survival['received'])} survivors are not those received"
    lost = sum(count for _, count in survival["lost_ranges"])
    if not survival["more_ranges"] and lost != stream["lost"]:
        yield f"ranges of {lost} lost frames are not {stream['lost']} lost"


def _connections(told: Json) -> Iterator[str]:
    """Those back and those open are counted twice, by age and by what they lost."""
    for place, key in enumerate(("back_lost", "open_lost"), 1):
        yield from _histogram(told[key], key)
        by_age = sum(tenth[place] for tenth in told["tenths"])
        if by_age != told[key]["count"]:
            yield f"{by_age} connections by age are not {told[key]['count']} of {key}"
    if len(told["named"]) > told["open_lost"]["count"]:
        yield "more connections are named than are open"


def _histogram(told: Json | None, name: str) -> Iterator[str]:
    """Its buckets rise, and hold what it says it holds."""
    if told is None:
        return
    buckets = told["buckets"]
    if sum(each[2] for each in buckets) != told["count"]:
        yield f"{name}: its buckets do not hold {told['count']} samples"
    ends = [end for low, high, _ in buckets for end in (low, high)]
    if ends != sorted(ends):
        yield f"{name}: its buckets do not rise"
    if ends and [told["min"], told["max"]] != [ends[0], ends[-1]]:
        yield f"{name}: its ends are not those of its buckets"


# --- TCP connections: each segment answers the one before it (docs/tcp.md)


_ANSWERS = {
    "syn": ("syn_ack",),
    "syn_ack": ("ack", "request"),
    "request": ("response",),
    "response": ("fin",),
    "fin": ("fin_ack",),
    "fin_ack": ("last_ack",),
}
_BEGIN = {"syn": 0, "ack": 2, "request": 3, "fin": 5}
_UNTIL = {"half_open": 2, "opened": 3, "answered": 5, "closed": 8}


def _segments(trial: Json) -> Iterator[str]:
    asked, told = trial["request"].get("tcp"), trial["result"].get("tcp")
    translated = (trial["request"].get("tcp_data") or {}).get("translated")
    if not translated and any(p.get("untranslated") for p in trial["result"]["ports"]):
        yield "frames passed untranslated where nothing is translated"
    if told is None:
        if asked is not None and trial["result"]["directions"]:
            yield "connections were asked for, and nothing is told of them"
        return
    if asked is None:
        yield "connections are told of, and none was asked for"
        return
    kinds = {each["name"]: each for each in told["segments"]}
    here = [*kinds][_BEGIN[asked["begin"]] : _UNTIL[asked["until"]]]
    first = kinds[here[0]]
    ends = told["initiator"], told["responder"]
    unsent = sum(end["not_sent"] for end in ends)
    for name, each in kinds.items():
        proxied = told["initiator"]["proxied"] if name == "syn_ack" else 0
        if each["received"] > each["sent"] + proxied:
            yield f"{name}: more were received than sent"
        if name not in here and (each["sent"] or each["received"]):
            yield f"{name}: connections of the trial have none"
        if each.get("retransmitted", 0) > _most_again(
            asked, kinds, name, first["sent"]
        ):
            yield f"{name}: more were sent again than asked for"
    pieces = _pieces_of_response(asked)
    responses = kinds["response"]
    broken = responses["sent"] - responses["received"]
    for name, answers in _ANSWERS.items():
        most = least = kinds[name]["received"]
        if name == "request":
            most = least = most * pieces
        elif name == "response" and pieces > 1:  # which are whole nobody tells
            most, least = most // pieces, kinds["request"]["received"] - broken
        for answer in (kinds[other] for other in answers if other in here[1:]):
            if not least - unsent <= answer["sent"] <= most:
                yield f"{most} {name} were answered by {answer['sent']}"
    yield from _histogram(told["first_answer_ns"], "first_answer_ns")
    timed = told["first_answer_ns"]["count"] + told["initiator"]["without_stamp"]
    answers_came = kinds[here[1]]["received"] if here[1:] else 0
    is_one = here[1:2] != ["response"] or pieces == 1
    if timed != answers_came if is_one else timed > answers_came // pieces:
        yield f"{timed} first answers were timed, and not as many came"
    for frames in streams(trial):
        if frames["sent"] != first["sent"]:
            yield f"its {here[0]} are not the frames that were sent"
        known = frames["received"] + told["responder"]["renumbered"]
        if known < first["received"]:
            yield f"more {here[0]} came than frames"
    spoilt = sum(end["resets"] + end["unknown"] + end["wrong"] for end in ends)
    lost = sum(each["sent"] - each["received"] for each in kinds.values())
    if verdict(trial) == "pass" and (lost or spoilt or unsent):
        yield "it passed, and not all of its connections came to their end"


_RESPONDERS = {"syn_ack": "syn", "response": "request", "fin_ack": "fin"}


def _most_again(asked: Json, kinds: Json, name: str, connections: int) -> int:
    """How many of a kind can have been sent again; by a responder: what came again."""
    times = int(asked.get("retransmit", 0))
    if name in _RESPONDERS:
        pieces = _pieces_of_response(asked) if name == "response" else 1
        again = int(kinds[_RESPONDERS[name]]["duplicate"]) * pieces
        return again if times else 0
    return times * connections


_OPTIONS_BYTES = 12


def _pieces_of_response(tcp: Json) -> int:
    """How many segments it is, of header and object."""
    object_bytes, mss = int(tcp["object_bytes"]), int(tcp["mss"])
    header = f"HTTP/1.1 200 OK\r\nContent-Length: {object_bytes}\r\n\r\n"
    return -(-(len(header) + object_bytes) // (mss - _OPTIONS_BYTES))


# --- DNS64 servers (docs/dns64.md)


def _queries(trial: Json) -> Iterator[str]:
    asked, told = trial["request"].get("dns"), trial["result"].get("dns")
    if (asked is None) != (told is None):
        if told is not None or trial["result"]["directions"]:
            yield "queries were asked for and not told of, or the other way"
        return
    if asked is None:
        return
    (frames,) = streams(trial)
    replies = told["replies"]
    if replies["valid"] != frames["received"] + frames["duplicate"]:
        yield f"{replies['valid']} valid answers are not those that were received"
    kinds = told["asked_aaaa"], told["asked_a"]
    unsent = sum(
        kind["names"] + kind["again"] + kind["cached"] - kind["answered"]
        for kind in kinds
    )
    if unsent != told["not_sent"]:
        yield f"{unsent} questions have no answer, and {told['not_sent']} were not sent"
    own, without, cached = names_of(asked, frames["sent"])
    if max(kind["names"] for kind in kinds) > own:
        yield "the authority was asked for more names than there are"
    if told["valid_cached"] > replies["valid"] or (told["valid_cached"] and not cached):
        yield "more answers were about cached names than there were"
    if verdict(trial) != "pass":
        return
    if replies["valid"] != sum(replies.values()) or told["not_sent"]:
        yield "it passed, and not all of its answers were valid"
    if any(kind["cached"] for kind in kinds):
        yield "it passed, and the authority was asked for cached names"
    if asked["fills"]:
        return
    aaaa, a = (kind["names"] for kind in kinds)
    of_each = a == own if asked["record"] == "a" else aaaa == own and a >= without
    if not of_each:
        yield "it passed, and the authority was not asked for each name"


_PERIOD = 10_000


def names_of(asked: Json, queries: int) -> tuple[int, int, int]:
    """Of so many queries those about names of their own, without an AAAA, and cached.

    Those without an AAAA are of the first. Both shares are exact in each 10,000.
    """
    percent = asked["aaaa_percent"]
    cached_percent = (asked["cached"] or {"percent": 0})["percent"]

    def counted(until: int) -> tuple[int, int, int]:
        own = [
            place % 100
            for place in range(until)
            if not _is_of(cached_percent, (place % 100 + place // 100) % 100)
        ]
        without = sum(not _is_of(percent, place) for place in own)
        return len(own), without, until - len(own)

    full, rest = divmod(queries, _PERIOD)
    each = zip(counted(_PERIOD if full else 0), counted(rest), strict=True)
    own, without, cached = (full * whole + part for whole, part in each)
    return own, without, cached


def _is_of(percent: int, place: int) -> bool:
    """Whether one of a hundred is of those."""
    return (place + 1) * percent // 100 > place * percent // 100


# --- verdicts


_NEEDS = {
    "frames_lost": "no frame was lost",
    "frames_late": "no frame was late",
}


def _verdict(trial: Json) -> Iterator[str]:
    """It follows from the counts, as far as they tell."""
    kind, told = verdict(trial), codes(trial)
    if (kind == "pass") == bool(told):
        yield f"it is {kind} with {len(told) or 'no'} reasons"
    if role(trial) == "probe":
        return  # its frames are lost on purpose
    ppb = trial["request"].get("loss_tolerance_ppb", 0)
    over = [d for d in directions(trial) if _is_over(d, ppb)]
    if kind == "pass" and over:
        yield f"it passed, and {over[0]['name']} lost more than is tolerated"
    if kind == "pass" and any(_has_copies(d, ppb) for d in directions(trial)):
        yield "it passed, and more frames than are tolerated arrived more than once"
    if kind == "fail" and told and told <= LOSSES and not over:
        yield "it failed for frames, and none was lost or late beyond the tolerance"
    every = streams(trial)
    counts = {
        "frames_lost": sum(s["lost"] for s in every),
        "frames_late": sum(s.get("late", 0) for s in every),
    }
    for code, words in _NEEDS.items():
        if code in told and not counts[code]:
            yield f"{code} is a reason, and {words}"


def _is_over(direction: Json, ppb: int) -> bool:
    """More lost or late than the request tolerates, of what was intended."""
    return bool(missing(direction) * 10**9 > ppb * _intended(direction))


def _has_copies(direction: Json, ppb: int) -> bool:
    """More that arrived once more than it tolerates of lost frames."""
    copies = sum(stream["duplicate"] for stream in direction["streams"])
    return bool(copies * 10**9 > ppb * _intended(direction))


def _intended(direction: Json) -> int:
    return sum(stream["intended"] for stream in direction["streams"])


# --- what was asked for


def _request(trial: Json, expected: set[int]) -> Iterator[str]:
    """The trial is the one that was asked for, whole unless it ended early."""
    request, result = trial["request"], trial["result"]
    ids = [request["trial_id"], result["trial_id"]]
    if ids[0] != ids[1] or ids[0] not in expected:
        wanted = " or ".join(map(str, sorted(expected)))
        yield f"its ids, {ids[0]} and {ids[1]}, are not {wanted}"
    asked = {each["name"]: each for each in request["directions"]}
    if list(asked) != [each["name"] for each in directions(trial)]:
        if result["directions"]:
            yield "its directions are not those that were asked for"
        return
    for direction in result["directions"]:
        yield from _direction(trial, asked[direction["name"]], direction)


def _direction(trial: Json, asked: Json, direction: Json) -> Iterator[str]:
    name, rate = direction["name"], asked["rate_fps"]
    load = trial["load_fps"]
    if not _is_load(load, asked) or rate != direction["intended_rate_fps"]:
        yield (
            f"{name}: {direction['intended_rate_fps']} fps, and {rate} asked for, "
            f"are not its load, {trial['load_fps']}"
        )
    duration_ns = trial["request"]["duration_ns"]
    frames = _frames_asked(asked, duration_ns)
    counted = [*direction["streams"], *filter(None, [direction.get("beside")])]
    intended = sum(each["intended"] for each in counted)
    if intended != frames:
        yield f"{name}: {intended} intended, and {frames} asked for"
    sent = sum(each["sent"] for each in counted)
    whole = sent == intended or trial["result"].get("ended_early", False)
    if not whole and verdict(trial) != "invalid":
        yield f"{name}: {sent} of {intended} frames were sent, and it is not invalid"


def _is_load(load: int, asked: Json) -> bool:
    """Of bursts, which have pauses, it is what they are on average; else the most."""
    steps = asked.get("steps") or []
    if load == asked["rate_fps"] or not any(s["rate_fps"] == 0 for s in steps):
        return bool(load == asked["rate_fps"])
    frames = sum((s["rate_fps"] * s["duration_ns"] + 5 * 10**8) // 10**9 for s in steps)
    average = Fraction(frames * 10**9, sum(s["duration_ns"] for s in steps))
    return abs(average - load) * 10**3 <= average


def _frames_asked(asked: Json, duration_ns: int) -> int:
    """Of the rate, or of the steps of a load over time, again and again."""
    whole = {"rate_fps": asked["rate_fps"], "duration_ns": duration_ns}
    frames, left = 0, duration_ns
    while left:
        for step in asked.get("steps") or [whole]:
            span = min(step["duration_ns"], left)
            frames += (step["rate_fps"] * span + 5 * 10**8) // 10**9
            left -= span
    return int(max(1, frames))


# --- what is said twice


def contradictions(trials: Iterable[Json]) -> Iterator[str]:
    """Of each trial, as plain JSON."""
    before: dict[str | None, Json] = {}
    for trial in trials:
        last = before.get(trial.get("place"))
        for told in (*_of_trial(trial), *_counters(trial, last)):
            yield f"trial {trial['number']}: {told}"
        if last or trial.get("environment"):  # else nobody knows of openings
            before[trial.get("place")] = trial


def of_their_cells(trials: Iterable[Json], cells: Iterable[Json]) -> Iterator[str]:
    """Procedure and testbed of each trial are those of its cell."""
    known = {cell["id"]: cell for cell in cells}
    for trial in trials:
        cell = known.get(trial["cell"], {})
        for key in ("procedure", "place"):
            one, other = trial.get(key), cell.get(key)
            if None not in (one, other) and one != other:
                yield f"trial {trial['number']}: {key} is {one}, of its test case "
                f"{other}"


def _of_trial(trial: Json) -> Iterator[str]:
    request, result = trial["request"], trial["result"]
    if result.get("ended_early") and result["verdict"]["kind"] == "pass":
        yield "it passed, and ended early for what was lost"
    asked = {each["name"]: each["streams"] for each in request["directions"]}
    for direction in result["directions"]:
        of = asked.get(direction["name"], [])
        for stream, wanted in zip(direction["streams"], of, strict=False):
            for told in _of_stream(stream, wanted, direction, request):
                yield f"{direction['name']} {stream['name']}: {told}"


def _counters(trial: Json, before: Json | None) -> Iterator[str]:
    """Those of a port rise from its opening on, which the first trial begins with.

    Where something was wrong with the ports, they may not.
    """
    ports = {} if before is None or trial.get("environment") else _ports_of(before)
    for name, port in _ports_of(trial).items():
        damaged = port.get("damaged")
        if damaged and sum(damaged.values()) != port["corrupt"]:
            yield f"{name}: its kinds of damage are not {port['corrupt']} in sum"
        counts = [_counts(port[key]) for key in ("before", "after")]
        if name in ports:
            counts.insert(0, _counts(ports[name]["after"]))
        for one, other in itertools.pairwise(counts):
            if wrong := [key for key in other if one.get(key, -1) > other[key]]:
                yield f"{name}: its counters ran backwards: {', '.join(wrong)}"
            if one.keys() != other.keys():
                yield f"{name}: it has other counters than before"


def _ports_of(trial: Json) -> dict[str, Json]:
    """By name and number; none of an invalid trial."""
    if trial["result"]["verdict"]["kind"] == "invalid":
        return {}
    ports = trial["result"].get("ports", [])
    return {f"{port['name']} {port.get('number', 0)}": port for port in ports}


def _counts(counters: Json) -> dict[str, int]:
    own = {key: count for key, count in counters.items() if isinstance(count, int)}
    pauses = {each["name"]: each["count"] for each in counters.get("pauses") or []}
    return own | pauses


def _of_stream(
    stream: Json, asked: Json, direction: Json, request: Json
) -> Iterator[str]:
    if (stream["id"], stream["name"]) != (asked["id"], asked["name"]):
        yield f"stream {stream['id']}, and {asked['name']} {asked['id']} asked for"
    interval = request.get("record", {}).get("series_interval_ns")
    if interval and stream["series"]["interval_ns"] != interval:
        yield f"its series is not of {interval} ns"
    if request.get("frame_timeout_ns") is None and stream.get("late"):
        yield "frames were late, and there was no timeout"
    if stream.get("unplaced") and stream.get("window_frames") is None:
        yield "frames came from beyond a window that it did not have"
    if stream.get("lost_in_shadow") and direction.get("shadows") == []:
        yield "frames were lost in the recovery window of a stall, and there was none"
    yield from _losses(stream)
    yield from _altered(stream.get("inspected") or {}, asked)


def _losses(stream: Json) -> Iterator[str]:
    longest, last = stream.get("longest_loss"), stream.get("last_loss")
    runs = stream.get("loss_runs", {}).get("count")
    if runs == 1 and longest != last:
        yield "the longest of its runs of lost frames is not the last, and it has one"
    if runs == 0 and (longest or last):
        yield "it has a run of lost frames, and lost none"


def _altered(inspected: Json, asked: Json) -> Iterator[str]:
    """Frames with another TTL or DSCP have one, and others have not."""
    ttl = asked.get("received_ttl")
    if ttl is not None and inspected.get("frames"):
        others = {inspected["least_ttl"], inspected["most_ttl"]} != {ttl}
        if others != bool(inspected["ttl"]):
            yield f"{inspected['ttl']} frames came with another TTL than {ttl}"
    if inspected and bool(inspected["dscp"]) != (inspected["other_dscp"] is not None):
        yield f"{inspected['dscp']} frames came with another DSCP"


# --- what a trial says


def is_taken_over(before: Json, trial: Json) -> bool:
    """Whether ``trial`` begins a cell again, at a testbed that is equal to another."""
    return bool(
        before["cell"] == trial["cell"]
        and before.get("stands_in") != trial.get("stands_in")
    )


def verdict(trial: Json) -> str:
    """Pass, fail or invalid."""
    return str(trial["result"]["verdict"]["kind"])


def codes(trial: Json) -> set[str]:
    """Of the reasons for its verdict."""
    return {reason["code"] for reason in trial["result"]["verdict"]["reasons"]}


def role(trial: Json) -> str:
    """What it was for."""
    return str(trial.get("role", "trial"))


def directions(trial: Json) -> list[Json]:
    """Their results."""
    return list(trial["result"]["directions"])


def streams(trial: Json) -> list[Json]:
    """Those of all directions."""
    return [stream for each in directions(trial) for stream in each["streams"]]


def missing(direction: Json) -> int:
    """Lost, or later than the frame timeout."""
    return int(sum(s["lost"] + s.get("late", 0) for s in direction["streams"]))
