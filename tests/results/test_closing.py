"""The end of a run in five sentences at most: what they say, and in which order."""

from __future__ import annotations

from typing import Any

import pytest
from told_cells import cell_of

from dutperf.protocol.result_messages import Reason, ReasonCode
from dutperf.results import (
    CellResult,
    Finding,
    LoadPoint,
    Media,
    NotMeasured,
    RepeatResult,
    Settlement,
    Words,
    closing,
    spread_of,
)
from dutperf.results.closing_words import MOST
from dutperf.results.words import named
from dutperf.standards import Conformance, Deviation, Status

UNSTABLE = Reason(
    code="unstable",
    message="trials stayed invalid when they were repeated",
    hint="keep other work off the tester's CPUs",
)
OVERFLOW = Reason(code="receiver_overflow", message="the tester dropped 9 frames")
SHORT = Deviation(rfc="RFC 2544 24", requirement="60 s", actual="1 s", level="SHOULD")
SETTLE = Deviation(rfc="RFC 2544 23", requirement="2 s", actual="0 s", level="text")

LOOK = "short trials (1 s), 1 repeat: exploratory, not RFC results"


def cell(name: str, *values: float, **keys: object) -> CellResult:
    values = values or (100_000,)
    repeats = [RepeatResult(value=v, verdict="pass", trials=9) for v in values]
    spread = spread_of(values)
    assert spread is not None
    given: dict[str, object] = {
        "id": name,
        "procedure": "throughput",
        "quantity": "throughput per direction (RFC 2544 26.1)",
        "parameters": {"trial_duration_s": 1.0},
        "median": spread.median,
        "unit": "fps",
        "repeats": repeats,
        "verdict": "pass",
        "spread": spread,
    }
    told: dict[str, Any] = given | keys
    cell = cell_of(told["procedure"], told["parameters"])
    return CellResult.model_validate(told | {"cell": cell})


def invalid(name: str, *reasons: Reason) -> CellResult:
    return cell(name, verdict="invalid", median=None, reasons=list(reasons))


IP4, IP6 = "throughput-ip4-64-both", "throughput-ip6-84-both"
BOTH = "throughput-ip4-64-both and -ip6-84-both"
TESTER = {"bound": "lower", "bound_cause": "tester"}


def test_one_cell_is_told_with_how_sure_it_is_and_its_deviations() -> None:
    assert closing([cell(IP4, deviations=[SHORT, SETTLE])]) == [
        f"{IP4}: 100,000 fps per direction",
        "one repeat: another run may differ",
        f"{LOOK}, 2 deviations in the report",
    ]


def test_cells_that_say_the_same_are_told_together() -> None:
    assert closing([cell(IP4), cell(IP6)])[0] == f"{BOTH}: 100,000 fps per direction"
    assert closing([cell(IP4), cell(IP6, 9)])[0] == (
        f"{IP4}: 100,000 fps per direction; -ip6-84-both: 9 fps per direction"
    )


def test_many_cells_are_told_by_the_lowest_and_the_highest() -> None:
    cells = [cell(f"throughput-ip4-{n}-both", 1000 * n) for n in (64, 256, 128, 1518)]
    assert closing(cells)[0] == (
        "4 test cases of throughput: from 64,000 fps (throughput-ip4-64-both) to "
        "1,518,000 fps (throughput-ip4-1518-both)"
    )


def test_lower_bounds_are_such_in_figure_and_in_words() -> None:
    media = Media(
        rate_fps=1_000_000, link_speed_mbps=1000, nominal=False, share_percent=10
    )
    told = closing([cell(IP4, media=media, **TESTER), cell(IP6, **TESTER)])
    assert told[0].startswith(
        f"{IP4}: >= 100,000 fps per direction, >= 10 % of what the media carry; "
    )
    assert f"{BOTH}: lower bounds: the tester could not offer more" in told
    [first, *_] = closing([cell(IP4, **TESTER)], words=Words(at_least="≥ "))
    assert first == f"{IP4}: ≥ 100,000 fps per direction"


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("tester", "the tester could not offer more"),
        ("set", "the maximum rate that was set was reached"),
        ("nominal", "a virtual link's nominal rate was reached"),
        (None, "more was not proven"),
    ],
)
def test_each_cause_of_a_bound_has_its_words(cause: str | None, words: str) -> None:
    told = closing([cell(IP4, bound="lower", bound_cause=cause)])
    assert f"{IP4}: a lower bound: {words}" in told


def test_the_line_rate_is_no_bound() -> None:
    reason = Reason(code="max_rate", message="limited by the media")
    told = closing([cell(IP4, reasons=[reason])])
    assert told[1] == f"{IP4}: as fast as the media: nothing faster can be tested"
    assert not any("bound" in sentence for sentence in told)


def test_bounds_that_the_median_does_not_rest_on_are_told() -> None:
    repeats = [RepeatResult(value=v, verdict="pass", trials=1) for v in (1, 1, 2)]
    repeats[2] = repeats[2].model_copy(update=TESTER)
    told = closing([cell(IP4, repeats=repeats)])
    assert f"{IP4}: some repeats are lower bounds, the median is not" in told


def test_reasons_of_invalid_cells_come_first_and_in_full() -> None:
    cells = [
        cell(IP4, deviations=[SHORT]),
        invalid(IP6, UNSTABLE, OVERFLOW),
    ]
    told = closing(cells)
    assert told[0] == (
        f"{IP6}: invalid: trials stayed invalid when they were repeated; the tester "
        "dropped 9 frames (keep other work off the tester's CPUs)"
    )
    assert told[1] == f"{IP4}: 100,000 fps per direction"


def test_the_same_trouble_with_other_figures_is_told_once() -> None:
    other = OVERFLOW.model_copy(update={"message": "the tester dropped 8 frames"})
    told = closing([invalid(IP4, OVERFLOW), invalid(IP6, other)])
    assert told == [f"{BOTH}: invalid: for example, the tester dropped 9 frames"]


def test_a_device_that_forwards_nothing_is_told_as_failed() -> None:
    reason = Reason(code="nothing_passed", message="all was lost", hint="look at it")
    told = closing([cell(IP4, 0, verdict="fail", reasons=[reason])])
    assert told == [f"{IP4}: failed: all was lost (look at it)"]


def test_testbeds_and_an_early_end_are_told() -> None:
    missing = [
        NotMeasured(id=f"{name}@b", place="b", message="no such port", hint="plug it")
        for name in (IP4, IP6)
    ]
    told = closing([cell(IP4)], not_measured=missing, complete=False)
    assert told[0] == (
        "not measured at b: throughput-ip4-64-both@b and -ip6-84-both@b: no such port "
        "(plug it)"
    )
    assert not any("incomplete" in sentence for sentence in told)
    ended = closing([cell(IP4)], complete=False)
    assert ended[0] == "incomplete: the run ended before its last cell"


def test_more_reasons_than_fit_are_counted_and_said_where_to_find() -> None:
    codes: tuple[ReasonCode, ...] = (
        "link_down",
        "flow_control",
        "sender_behind",
        "nothing_sent",
        "hook_failed",
        "unstable",
    )
    cells = [
        invalid(f"cell-{n}", Reason(code=code, message=code))
        for n, code in enumerate(codes)
    ]
    told = closing([*cells, cell(IP4)])
    assert len(told) == MOST
    assert told[-1] == "2 more such reasons are in the report"


def finding(kind: str, message: str) -> Finding:
    return Finding.model_validate(
        {"kind": kind, "of": "throughput", "message": message, "unit": "fps"}
    )


def test_without_one_value_there_is_no_figure_but_the_finding() -> None:
    told = closing([cell(IP4, findings=[finding("unstable", "too unstable: ...")])])
    assert told[0] == f"{IP4}: too unstable: ..."
    assert not any("100,000" in sentence for sentence in told)
    found = [finding("unstable", "too unstable: ...")]
    told = closing([cell(IP4, findings=found), cell(IP6, findings=found)])
    assert told[0] == f"{BOTH}: repeats are too far apart to have one value"


def test_outliers_leave_the_figure() -> None:
    told = closing([cell(IP4, findings=[finding("outliers", "1 of 20 far away")])])
    assert told[:2] == [
        f"{IP4}: 100,000 fps per direction",
        f"{IP4}: 1 of 20 far away",
    ]


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (1, "one repeat: another run may differ"),
        (3, "3 repeats: too few for an interval of the median"),
        (20, "20 repeats: the interval of a median is 0.009 % wide"),
    ],
)
def test_repeats_say_how_sure_it_is(count: int, words: str) -> None:
    told = closing([cell(IP4, *range(100_000, 100_000 + count))])
    assert told[1] == words


def test_a_very_wide_interval_is_told_in_plain_digits() -> None:
    told = closing([cell(IP4, *[1.0, 2.0, 3.0, 50.0, 60.0, 70.0] * 3)])
    assert "e+" not in told[1]


def test_an_interval_that_may_be_wider_is_not_known() -> None:
    values = [100_000.0] * 8
    spread = spread_of(values, at_least=[True] * 4 + [False] * 4)
    told = closing([cell(IP4, *values, spread=spread)])
    assert "8 repeats; the interval of the median has no upper end" in told


def test_an_interval_around_nothing_is_not_called_unknown() -> None:
    values = [-1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    told = closing([cell(IP4, *values, spread=spread_of(values))])
    assert "8 repeats; the interval of the median is around 0" in told


def test_what_did_not_settle_is_told() -> None:
    settled = Settlement(width="1%", max_repeats=8, looks=1, reached=False)
    told = closing([cell(IP4, *[1.0] * 8, settled=settled)])
    assert told[1].startswith(f"{IP4}: not settled after 8 repeats")


def curve(name: str, *losses: float, lost_once: float = 0) -> CellResult:
    """``lost_once``: in one of three repeats, where the median is 0."""
    points = [
        LoadPoint(
            load_percent=100 - 10 * n,
            load_fps=1000 * (10 - n),
            loss_percent=loss,
            repeats=[
                RepeatResult(value=value, verdict="pass", trials=1)
                for value in (loss, loss, loss or lost_once)
            ],
        )
        for n, loss in enumerate(losses)
    ]
    keys = {"procedure": "frame-loss", "unit": "percent", "points": points}
    return cell(name, losses[0], **keys)


@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ((38.6, 20, 0, 0), "38.6 % lost at 10,000 fps, none up to 8,000 fps"),
        ((38.6, 20), "38.6 % lost at 10,000 fps, loss at every load"),
        ((0, 0), "no loss up to 10,000 fps, the highest load"),
    ],
)
def test_of_a_curve_its_knee_is_told(losses: tuple[float, ...], words: str) -> None:
    assert closing([curve("frame-loss-ip4", *losses)])[0] == f"frame-loss-ip4: {words}"


def test_no_loss_means_that_no_repeat_lost_a_frame() -> None:
    told = closing([curve("frame-loss-ip4", 0, 0, lost_once=1e-6)])[0]
    words = "0 % lost at 10,000 fps, but frames in 1 of 3 repeats"
    assert told == f"frame-loss-ip4: {words}"
    told = closing([curve("frame-loss-ip4", 5, 0, lost_once=1e-6)])[0]
    words = "5 % lost at 10,000 fps, some in 1 of 3 repeats even at 9,000 fps"
    assert told == f"frame-loss-ip4: {words}, the lowest"
    told = closing([curve("frame-loss-ip4", 5, 0, 1)])[0]
    words = "5 % lost at 10,000 fps, some even at 8,000 fps, the lowest"
    assert told == f"frame-loss-ip4: {words}"


def test_a_full_campaign_has_five_sentences_and_its_deviations_are_among_them() -> None:
    lost = Reason(code="frames_lost", message="1 of 9 frames were lost")
    cells = [
        cell(IP4, deviations=[SHORT], **TESTER),
        cell(IP6, findings=[finding("drift", "it falls")]),
        curve("frame-loss-ip4", 1, 0),
        cell("connection-rate", procedure="connection-rate", reasons=[lost]),
    ]
    told = closing(cells)
    assert len(told) == MOST
    assert told[-1] == f"{LOOK}, 1 deviation in the report"
    assert "it falls" in " ".join(told)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("conditional", "conditionally compliant with the RFCs: 1 deviation below"),
        ("none", "not RFC results: 1 deviation below"),
        ("other_measure", "not RFC results: 1 deviation below"),
        ("unconditional", "1 deviation below"),
    ],
)
def test_what_they_may_be_called_is_told(status: Status, words: str) -> None:
    said = Conformance("RFC 2544", "26.1", status, "")
    told = closing(
        [cell(IP4, deviations=[SETTLE], conformance=said)], words=Words(where="below")
    )
    assert told[-1] == words


def test_another_measure_is_called_what_it_is() -> None:
    said = Conformance(
        rfc="RFC 2544", section="26.1", status="other_measure", statement=""
    )
    quantity = "throughput per direction, losing up to 1 %"
    told = closing([cell(IP4, quantity=quantity, conformance=said)])
    assert told[0] == f"{IP4}: 100,000 fps: {quantity}"


def test_where_figures_stand_beside_it_only_the_rest_is_told_by_titles() -> None:
    titles = {IP4: "Throughput, IPv4, 64 bytes", IP6: "Throughput, IPv6, 84 bytes"}
    words = Words(titles=titles, figures=False)
    first, *others = closing([cell(IP4, **TESTER), cell(IP6, **TESTER)], words=words)
    assert first == (
        "Throughput, IPv4, 64 bytes and IPv6, 84 bytes: lower bounds: the tester could "
        "not offer more"
    )
    assert others == ["one repeat each: another run may differ"]


def test_nothing_measured_has_nothing_to_say() -> None:
    assert closing([]) == []


@pytest.mark.parametrize(
    ("ids", "words"),
    [
        (["a"], "a"),
        (["a", "b"], "a and b"),
        (["t-ip4-64", "t-ip4-84"], "t-ip4-64 and -84"),
        (["t-ip4", "t-ip4-ports"], "t-ip4 and -ports"),
        (["t-1", "t-2", "t-3"], "t-1, -2 and -3"),
        (["t-1", "t-2", "t-3", "t-4"], "t-1, -2 and 2 more"),
    ],
)
def test_ids_are_told_in_short(ids: list[str], words: str) -> None:
    assert named(ids) == words
