"""A trial's segments of TCP hold together, or what is wrong with them is told."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
from protocol_files import body, golden

from dutperf.evidence.accounting import check_trials

Json = dict[str, Any]
_NAMES = ("syn", "syn_ack", "ack", "request", "response", "fin", "fin_ack", "last_ack")
_END = dict.fromkeys(
    (
        "resets",
        "unknown",
        "wrong",
        "damaged",
        "renumbered",
        "proxied",
        "untranslated",
        "without_stamp",
        "not_sent",
    ),
    0,
)


def trial(
    until: str = "closed", count: int = 1000, *, begin: str = "syn", pieces: int = 1
) -> Json:
    """One that passed, of ``count`` connections; ``pieces``: segments of a response."""
    request = body(golden("trial.run-tcp.params"))
    result = copy.deepcopy(body(golden("trial.run.result")))
    (direction, *_) = result["directions"]
    (stream, *_) = direction["streams"]
    histogram = {"count": count, "min": 64, "max": 64, "buckets": [[64, 64, count]]}
    none: Json = {"count": 0, "min": None, "max": None, "buckets": []}
    stream |= {
        "intended": count,
        "sent": count,
        "received": count,
        "lost": 0,
        "late": 0,
        "duplicate": 0,
        "corrupt": 0,
        "damaged": dict.fromkeys(stream["damaged"], 0),
        "lost_in_shadow": 0,
        "late_in_shadow": 0,
        "negative_delays": 0,
        "delay_ns": histogram,
        "loss_runs": none,
        "longest_loss": None,
        "last_loss": None,
        "slower": [],
        "tags": None,
        "survival": None,
        "series": {"interval_ns": 1_000_000_000, "sent": [count], "received": [count]},
    }
    direction |= {
        "name": "forward",
        "streams": [stream],
        "intended_rate_fps": 1000,
        "beside": None,
    }
    whose = {"opened_by": None if begin == "syn" else 41, "asked": 0}
    request["tcp"] |= {"begin": begin, "until": until, **whose}
    request["tcp"]["object_bytes"] = 1388 * pieces - 100
    first = {"syn": 0, "ack": 2, "request": 3, "fin": 5}[begin]
    end = {"half_open": 2, "opened": 3, "answered": 5, "closed": 8}[until]
    answered = none if begin == "ack" else histogram
    segments: list[Json] = [
        {
            "name": name,
            "sent": count if first <= place < end else 0,
            "received": count if first <= place < end else 0,
            "duplicate": 0,
            "retransmitted": 0,
        }
        for place, name in enumerate(_NAMES)
    ]
    for key in ("sent", "received"):
        segments[4][key] *= pieces
    result |= {
        "trial_id": request["trial_id"],
        "directions": [direction],
        "ended_early": False,
        "verdict": {"kind": "pass", "reasons": []},
        "tcp": {
            "segments": segments,
            "initiator": dict(_END),
            "responder": dict(_END),
            "first_answer_ns": answered,
        },
    }
    return {
        "number": 1,
        "cell": "x",
        "place": "simulated",
        "load_fps": 1000,
        "role": "trial",
        "hooks": [],
        "request": request,
        "result": result,
    }


def told(of: Json) -> list[str]:
    """But for the trial's id, which the golden message chose."""
    return [line for line in check_trials([of]) if "its ids" not in line]


@pytest.mark.parametrize(
    ("begin", "until"),
    [
        ("syn", "half_open"),
        ("syn", "opened"),
        ("syn", "answered"),
        ("syn", "closed"),
        ("ack", "opened"),
        ("request", "answered"),
        ("request", "closed"),
        ("fin", "closed"),
    ],
)
@pytest.mark.parametrize("pieces", [1, 2, 40])
def test_connections_that_all_came_to_their_end_hold_together(
    begin: str, until: str, pieces: int
) -> None:
    assert told(trial(until, begin=begin, pieces=pieces)) == []


def _set(*path: str | int, value: object) -> Callable[[Json], None]:
    def change(of: Json) -> None:
        node = of["result"]["tcp"]
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        *(
            _set("segments", place, key, value=999)
            for place in range(8)
            for key in ("sent", "received")
        ),
        *(_set("segments", place, "sent", value=1001) for place in range(8)),
        _set("first_answer_ns", "count", value=999),
        _set("initiator", "without_stamp", value=1),
        _set("responder", "resets", value=1),
        _set("initiator", "wrong", value=1),
        _set("responder", "unknown", value=1),
        _set("initiator", "not_sent", value=1),
    ],
)
@pytest.mark.parametrize("pieces", [1, 3])
def test_a_count_that_is_changed_is_told(
    change: Callable[[Json], None], pieces: int
) -> None:
    changed = trial(pieces=pieces)
    change(changed)
    assert told(changed) != []


def test_of_responses_that_lack_segments_no_more_are_answered_than_can_be_whole() -> (
    None
):
    """300 of 3,000 segments are missing: 700 to 900 responses of three are whole."""
    for whole, holds in ((699, False), (700, True), (900, True), (901, False)):
        lossy = trial(pieces=3)
        segments = lossy["result"]["tcp"]["segments"]
        segments[4]["received"] = 2700
        for later in segments[5:]:
            later |= {"sent": whole, "received": whole}
        assert any("were answered by" in line for line in told(lossy)) is not holds


@pytest.mark.parametrize(
    ("begin", "until", "steps"),
    [
        ("ack", "opened", (2,)),
        ("request", "answered", (3, 4)),
        ("fin", "closed", (5, 6, 7)),
    ],
)
def test_so_is_one_of_a_trial_that_begins_later(
    begin: str, until: str, steps: tuple[int, ...]
) -> None:
    for place in range(8):
        for key in ("sent", "received"):
            for value in (999, 1001) if place in steps else (1,):
                changed = trial(until, begin=begin)
                changed["result"]["tcp"]["segments"][place][key] = value
                assert told(changed) != [], (place, key, value)


def _again(times: int = 2, **told_again: int) -> Json:
    """Sent again, and come again, of each of these segments so many."""
    changed = trial()
    changed["request"]["tcp"]["retransmit"] = times
    for each in changed["result"]["tcp"]["segments"]:
        number = told_again.get(each["name"], 0)
        each |= {"retransmitted": number, "duplicate": number}
    return changed


def test_no_more_is_sent_again_than_was_asked_for() -> None:
    every = {"syn": 2000, "request": 2000, "ack": 2000, "fin": 2000, "last_ack": 2000}
    answers = {"syn_ack": 2000, "response": 2000, "fin_ack": 2000}
    assert told(_again(**every, **answers)) == []
    for name, number in every.items():
        more = _again(**{name: number + 1})
        assert told(more) == [f"trial 1: {name}: more were sent again than asked for"]
    for name in answers:
        assert told(_again(**{name: 1})) != []
    for name in (*every, *answers):
        assert told(_again(0, **{name: 1})) != []


def test_a_proxy_may_open_more_than_the_responder() -> None:
    changed = trial()
    tcp = changed["result"]["tcp"]
    tcp["segments"][1]["sent"] = 0
    assert any("syn_ack: more were received" in line for line in told(changed))
    tcp["initiator"]["proxied"] = 1000
    assert not any("syn_ack: more were received" in line for line in told(changed))


def test_what_goes_farther_than_was_asked_for_is_told() -> None:
    changed = trial("opened")
    changed["result"]["tcp"]["segments"][3] |= {"sent": 1000, "received": 1000}
    assert told(changed) == ["trial 1: request: connections of the trial have none"]


def test_connections_that_are_told_of_were_asked_for() -> None:
    without = trial()
    without["request"]["tcp"] = None
    assert any("none was asked for" in line for line in told(without))
    silent = trial()
    silent["result"]["tcp"] = None
    assert any("nothing is told of them" in line for line in told(silent))
