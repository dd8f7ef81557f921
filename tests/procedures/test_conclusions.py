"""What a search that ended somehow is stored as: value, verdict, bound and reasons."""

from __future__ import annotations

import pytest
from planning import cell

from dutperf.procedures.conclusions import bound_deviations, repeat_result
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.searching import Evidence
from dutperf.protocol.result_messages import Reason, ReasonCode
from dutperf.results import BoundCause, RepeatResult
from dutperf.results.bounds import Overall
from dutperf.results.rate_results import Bound
from dutperf.search import Conclusion, SearchResult

MEDIA, SET = MaxRate(1000, "media", line_rate=True), MaxRate(1000, "set")


def told(
    conclusion: Conclusion,
    rate_fps: int | None,
    *codes: ReasonCode,
    limit: MaxRate = MEDIA,
    held_back: bool = False,
    timeout_ms: float | None = None,
) -> RepeatResult:
    """Of a search that ended so, and of what spoilt its trials."""
    return repeat_result(
        SearchResult(rate_fps, None, conclusion, []),
        cell(frame_timeout_ms=timeout_ms),
        limit,
        Evidence([Reason(code=code, message="it was") for code in codes], held_back),
        trials=7,
    )


Told = tuple[str, float | None, Bound, BoundCause, list[str]]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (told("found", 500), ("pass", 500, None, None, [])),
        (
            told("max_rate_passed", 1000),
            ("pass", 1000, None, None, ["max_rate"]),
        ),
        (
            told("max_rate_passed", 1000, limit=SET),
            ("pass", 1000, "lower", "set", ["max_rate"]),
        ),
        (told("nothing_passed", None), ("fail", 0, None, None, ["nothing_passed"])),
        (
            told("tester_limited", 500),
            ("pass", 500, "lower", "tester", ["sender_behind"]),
        ),
        (
            told("tester_limited", 500, held_back=True),
            ("pass", 500, "lower", "held_back", ["held_back"]),
        ),
        (
            told("tester_limited", None),
            ("invalid", None, None, None, ["sender_behind"]),
        ),
        (
            told("tester_limited", None, held_back=True),
            ("invalid", None, None, None, ["held_back"]),
        ),
        (
            told("unstable", 500, "sender_lag"),
            ("pass", 500, "lower", "disturbed", ["unstable"]),
        ),
        (
            told("unstable", None, "sender_lag"),
            ("invalid", None, None, None, ["unstable", "sender_lag"]),
        ),
        (
            told("unstable", 500, "link_changed"),
            ("invalid", 500, "lower", None, ["unstable", "link_changed"]),
        ),
        (
            told("unstable", 500, "not_translated"),
            ("invalid", 500, "lower", None, ["not_translated"]),
        ),
        (told("unstable", 500), ("invalid", 500, "lower", None, ["unstable"])),
    ],
)
def test_a_search_is_stored_by_how_it_ended(
    found: RepeatResult, expected: Told
) -> None:
    codes = [str(reason.code) for reason in found.reasons]
    assert expected == (
        (found.verdict, found.value, found.bound, found.bound_cause, codes)
    )
    assert found.trials == 7


@pytest.mark.parametrize(
    ("timeout_ms", "message"),
    [
        (None, "limited by the line rate, 1,000 fps: no frame was lost"),
        (
            10,
            "limited by the line rate, 1,000 fps: it passed, frames within 10 ms",
        ),
    ],
)
def test_what_passed_at_the_maximum_says_what_that_is(
    timeout_ms: float | None, message: str
) -> None:
    (reason,) = told("max_rate_passed", 1000, timeout_ms=timeout_ms).reasons
    assert reason.message == message.replace("the line rate", MEDIA.words)


@pytest.mark.parametrize(
    ("timeout_ms", "message"),
    [
        (None, "frames were lost at every rate that was tried"),
        (
            10,
            "frames were lost or late at every rate that was tried",
        ),
    ],
)
def test_where_nothing_passed_the_user_is_told_where_to_look(
    timeout_ms: float | None, message: str
) -> None:
    (reason,) = told("nothing_passed", None, timeout_ms=timeout_ms).reasons
    assert reason.message == message
    assert "does the device forward at all?" in reason.hint


@pytest.mark.parametrize(
    ("cause", "actual"),
    [
        ("tester", "the tester could not offer more"),
        ("disturbed", "other processes disturbed every faster trial"),
        ("held_back", "something behind a port stopped the tester"),
        ("set", "the maximum rate that was set was reached"),
        ("nominal", "a virtual link's nominal rate was reached"),
    ],
)
def test_a_lower_bound_is_a_deviation_that_names_its_cause(
    cause: BoundCause, actual: str
) -> None:
    (deviation,) = bound_deviations(cell(), Overall(500, "lower", cause, None))
    assert deviation.actual == f"a lower bound: {actual}"
    assert deviation.rfc == "RFC 2544 26.1"


def test_what_is_no_lower_bound_of_a_cause_is_no_deviation() -> None:
    assert bound_deviations(cell(), Overall(500, "lower", None, None)) == []
