"""The tester's own share, single trials, the medium, the machine, and numbers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_sample import (
    BEHIND,
    port_report,
    sample_environment,
    sample_results,
    trial,
)

from dutperf.charts import text, trial_views
from dutperf.charts.trial_views import (
    lag_of,
    loss,
    offered,
    reasons,
    search_paths,
    totals,
    verdict_on,
)
from dutperf.protocol.port_messages import DriverCounter, PortCounters
from dutperf.protocol.result_messages import (
    Histogram,
    IcmpMessages,
    LossRun,
    ShareReport,
    Stall,
    VerdictKind,
)
from dutperf.report.trust import environment_rows
from dutperf.results import TrialRecord
from dutperf.results.trial_record import DeviceDrops

NAME = "throughput-ip4-64-both"


def dropping(number: int, missed: int, verdict: VerdictKind = "pass") -> TrialRecord:
    record = trial(number, NAME, 1_000, verdict)
    ports = [port_report("left", missed), port_report("right")]
    result = record.result.model_copy(update={"ports": ports})
    return record.model_copy(update={"result": result})


def test_a_result_rests_on_all_valid_trials_a_search_on_those_that_failed_too() -> None:
    kinds: tuple[VerdictKind, ...] = ("pass", "fail", "invalid", "pass")
    trials = [trial(n, NAME, 1_000, kind) for n, kind in enumerate(kinds, 1)]
    assert trial_views.tester_record(trials).trials == 3


def test_what_the_device_answered_is_added_up_by_what_it_says() -> None:
    def answered(number: int, verdict: VerdictKind, frames: int) -> TrialRecord:
        record = trial(number, NAME, 1_000, verdict)
        said = IcmpMessages(ip_version=4, type=11, code=0, frames=frames)
        ports = [
            port_report(side).model_copy(update={"foreign": 9, "icmp": [said]})
            for side in ("left", "right")
        ]
        result = record.result.model_copy(update={"ports": ports})
        return record.model_copy(update={"result": result})

    trials = [
        answered(1, "fail", 5),
        answered(2, "invalid", 50),
        answered(3, "pass", 1),
    ]
    assert trial_views.tester_record(trials).icmp == {
        "ICMP TTL exceeded in transit": 12
    }


def test_stalls_are_counted_and_the_longest_told() -> None:
    def stalled(number: int, *lags_ms: int) -> TrialRecord:
        record = trial(number, NAME, 1_000, "fail")
        (first, *others) = record.result.directions
        stalls = [
            Stall(
                begin_ns=0,
                caught_up_ns=lag * 1_000_000,
                max_lag_ns=lag * 1_000_000,
                away_ns=0,
                frames=1,
            )
            for lag in lags_ms
        ]
        directions = [first.model_copy(update={"stalls": stalls}), *others]
        result = record.result.model_copy(update={"directions": directions})
        return record.model_copy(update={"result": result})

    found = trial_views.tester_record([stalled(1, 2, 9), stalled(2, 3)])
    assert (found.stalls, found.longest_stall_ns) == (3, 9_000_000)
    assert trial_views.tester_record([stalled(1)]).longest_stall_ns is None


def test_shares_are_told_by_direction_over_all_trials() -> None:
    def split(number: int, lag_ns: int) -> TrialRecord:
        record = trial(number, NAME, 1_000, "fail")
        halves = [
            ShareReport(
                intended=500,
                sent=500,
                sending_ns=10**9,
                max_lag_ns=lag_ns * place,
                port_full_ns=5,
                received=400 + place,
                longest_gap_ns=lag_ns,
            )
            for place in (0, 1)
        ]
        (first, *others) = record.result.directions
        directions = [first.model_copy(update={"by_share": halves}), *others]
        right = port_report("right").model_copy(
            update={"handed_over": 450, "not_taken_over": 2}
        )
        update = {"directions": directions, "ports": [port_report("left"), right]}
        result = record.result.model_copy(update=update)
        return record.model_copy(update={"result": result})

    found = trial_views.tester_record([split(1, 30), split(2, 20)])
    assert found.shares == (
        trial_views.ShareView("forward, share 1 of 2", 1000, 0, 10, 800, 30),
        trial_views.ShareView("forward, share 2 of 2", 1000, 30, 10, 802, 30),
    )
    assert (found.handed_over, found.drops["not_taken_over"]) == (900, 4)
    assert found.dropped == 4


def test_own_drops_are_the_rise_of_the_counters() -> None:
    """The ports start at 7 missed frames, which belong to no trial."""
    record = trial_views.tester_record([dropping(1, 0), dropping(2, 5)])
    assert record.drops == {
        "rx_missed": 5,
        "rx_nombuf": 0,
        "tx_errors": 0,
        "not_taken_over": 0,
        "interface_drops": 0,
        "send_drops": 0,
        "input_queue_drops": 0,
    }
    assert record.dropped == 5


def below(
    number: int, verdict: VerdictKind, *, damaged: int = 0, **drops: int
) -> TrialRecord:
    """A trial whose right port has such drops below it."""
    record = trial(number, NAME, 1_000, verdict)
    right = port_report("right").model_copy(
        update={**drops, "damaged_on_wire": damaged}
    )
    ports = [port_report("left"), right]
    result = record.result.model_copy(update={"ports": ports, "input_queue_drops": 1})
    return record.model_copy(update={"result": result})


def test_drops_below_a_port_count_where_frames_were_lost() -> None:
    """In a lossless trial they were frames of others."""
    trials = [
        below(1, "pass", interface_drops=10, send_drops=20),
        below(2, "fail", interface_drops=3, send_drops=4, damaged=5),
    ]
    record = trial_views.tester_record(trials)
    assert record.drops["interface_drops"] == 3
    assert record.drops["send_drops"] == 4
    assert record.drops["input_queue_drops"] == 1
    assert record.dropped == 8
    assert record.damaged == 5


def test_damaged_frames_are_nobodys_drops() -> None:
    record = trial_views.tester_record([below(1, "fail", damaged=5)])
    assert record.damaged == 5
    assert record.dropped == 1


def test_the_devices_drops_are_told_by_place_over_all_valid_trials() -> None:
    drops = DeviceDrops(input_queue=7, interfaces={"right": {"tx_dropped": 2}})
    told = {"device_drops": drops}
    trials = [
        trial(1, NAME, 1_000, "pass"),
        trial(2, NAME, 1_000, "fail").model_copy(update=told),
        trial(3, NAME, 1_000, "fail").model_copy(update=told),
        trial(4, NAME, 1_000, "invalid").model_copy(update=told),
    ]
    record = trial_views.tester_record(trials)
    assert record.device_drops == {"input queue": 14, "right tx_dropped": 4}


def paused(number: int, before: int, after: int) -> TrialRecord:
    """An invalid trial whose left port counts pause frames."""
    record = trial(number, NAME, 1_000, "invalid")
    left, right = port_report("left"), port_report("right")

    def at(port: PortCounters, count: int) -> PortCounters:
        pauses = [
            DriverCounter(name="rx_xoff_packets", count=count),
            DriverCounter(name="tx_xoff_packets", count=4),
        ]
        return port.model_copy(update={"pauses": pauses})

    told = {"before": at(left.before, before), "after": at(left.after, after)}
    ports = [left.model_copy(update=told), right]
    result = record.result.model_copy(update={"ports": ports})
    return record.model_copy(update={"result": result})


def test_pause_frames_are_told_by_port_and_counter_also_of_invalid_trials() -> None:
    trials = [paused(1, 7, 10), paused(2, 10, 14), paused(3, 14, 0)]
    assert trial_views.tester_record(trials).pauses == {"left rx_xoff_packets": 7}
    assert trial_views.tester_record([trial(1, NAME, 1_000, "pass")]).pauses == {}


def test_drops_in_trials_that_do_not_count_are_not_held_against_a_result() -> None:
    trials = [dropping(1, 0), dropping(2, 5, "invalid")]
    assert trial_views.tester_record(trials).dropped == 0


def test_a_reason_counts_once_for_each_invalid_trial() -> None:
    record = trial(1, NAME, 1_000, "invalid")
    twice = record.result.verdict.model_copy(update={"reasons": [BEHIND, BEHIND]})
    result = record.result.model_copy(update={"verdict": twice})
    both_ways = record.model_copy(update={"result": result})
    found = trial_views.tester_record([both_ways, trial(2, NAME, 1_000, "invalid")])
    assert found.invalid == 2
    assert found.invalid_reasons == {"sender_behind": 2}


def test_the_verdict_on_the_tester_names_drops_and_the_largest_lag() -> None:
    clean = trial_views.tester_record([dropping(1, 0)])
    spoilt = trial_views.tester_record([dropping(1, 3)])
    assert "In the 1 trial" in verdict_on([clean])
    assert "dropped no frame" in verdict_on([clean])
    assert "dropped 3 frames" in verdict_on([clean, spoilt])
    assert "may be the tester's" in verdict_on([clean, spoilt])
    assert "640\N{NO-BREAK SPACE}µs" in verdict_on([clean])


def test_nothing_is_claimed_of_the_tester_without_valid_trials() -> None:
    record = trial_views.tester_record([trial(1, NAME, 1_000, "invalid")])
    assert "nothing is known" in verdict_on([record])
    assert "nothing is known" in verdict_on([])


ENDS = [(0, 9), (10, 99), (100, 999), (1_000, 9_999)]


@given(
    st.lists(
        st.lists(st.integers(0, 20), min_size=4, max_size=4), min_size=1, max_size=4
    )
)
def test_lag_percentiles_are_those_of_all_frames_written_out(
    counts: list[list[int]],
) -> None:
    """The slow way: a list with one entry, its bucket's end, for each frame."""
    histograms, frames = [], []
    for row in counts:
        buckets = [(*e, n) for e, n in zip(ENDS, row, strict=True) if n]
        ends = [high for _, high, n in buckets for _ in range(n)]
        largest = max(ends) - 1 if ends else None
        histograms.append(
            Histogram(
                count=len(ends),
                min=buckets[0][0] if buckets else None,
                max=largest,
                buckets=buckets,
            )
        )
        frames += ends
    lag = lag_of(histograms)
    if not frames:
        assert lag is None
        return
    assert lag is not None
    largest = max(frames) - 1
    frames.sort()
    for found, share in ((lag.p50_ns, 50), (lag.p99_ns, 99)):
        needed = next(
            value
            for rank, value in enumerate(frames, 1)
            if 100 * rank >= share * len(frames)
        )
        assert found == min(needed, largest)
    assert lag.max_ns == largest


def test_bounds_move_with_pass_and_fail_and_stay_with_invalid() -> None:
    kinds: tuple[tuple[int, VerdictKind], ...] = (
        (1_000, "fail"),
        (500, "pass"),
        (750, "invalid"),
        (750, "fail"),
    )
    trials = [trial(n, NAME, load, kind) for n, (load, kind) in enumerate(kinds, 1)]
    (path,) = search_paths(trials)
    assert [(s.lower, s.upper) for s in path.steps] == [
        (0, 1_000),
        (0, 1_000),
        (500, 1_000),
        (500, 1_000),
    ]
    assert (path.lower, path.upper) == (500, 750)


def test_each_repeat_starts_with_fresh_bounds_and_goes_on_counting() -> None:
    trials = [
        trial(n, NAME, load, "pass", repeat=repeat)
        for n, (repeat, load) in enumerate(((1, 900), (1, 950), (2, 800)), 1)
    ]
    first, second = search_paths(trials)
    assert [step.position for step in (*first.steps, *second.steps)] == [1, 2, 3]
    assert (second.steps[0].lower, second.steps[0].upper) == (0, 800)


def test_frames_of_a_trial_are_summed_over_directions() -> None:
    record = trial(1, NAME, 1_000, "fail", lost=10)
    frames = totals(record)
    assert (frames.sent, frames.received, frames.lost) == (2_000, 1_990, 10)
    assert loss(record) == "10 frames (0.5\N{NO-BREAK SPACE}%)"
    assert loss(trial(1, NAME, 1_000, "pass")) == "none"


@pytest.mark.parametrize(
    ("frames", "end_ns", "told"),
    [
        (2, 9_000_000, ""),
        (7, 9_000_000, ", 7 of them in a row for 7\N{NO-BREAK SPACE}ms"),
        (7, None, ", the last 7 in a row"),
    ],
)
def test_the_longest_interruption_is_told(
    frames: int, end_ns: int | None, told: str
) -> None:
    record = trial(1, NAME, 1_000, "fail", lost=10)
    (first, *others) = record.result.directions
    run = LossRun(
        first=1, frames=frames, begin_ns=2_000_000, last_ns=8_000_000, end_ns=end_ns
    )
    stream = first.streams[0].model_copy(update={"longest_loss": run})
    changed = [first.model_copy(update={"streams": [stream]}), *others]
    result = record.result.model_copy(update={"directions": changed})
    said = loss(record.model_copy(update={"result": result}))
    assert said == f"10 frames (0.5\N{NO-BREAK SPACE}%){told}"


def test_a_failed_trial_says_whether_it_lost_frames_in_the_light() -> None:
    def lost(in_shadow: int, verdict: VerdictKind = "fail") -> str:
        record = trial(1, NAME, 1_000, verdict, lost=10)
        (first, *others) = record.result.directions
        (stream,) = first.streams
        shaded = stream.model_copy(update={"lost_in_shadow": in_shadow})
        told = {"streams": [shaded], "shadows": []}
        directions = [
            first.model_copy(update=told),
            *(other.model_copy(update={"shadows": []}) for other in others),
        ]
        result = record.result.model_copy(update={"directions": directions})
        return loss(record.model_copy(update={"result": result}))

    plain = "10 frames (0.5\N{NO-BREAK SPACE}%)"
    assert lost(0) == f"{plain}, all outside recovery windows"
    assert lost(4) == f"{plain}, 6 of them outside recovery windows"
    assert lost(4, "invalid") == plain


def test_offered_rates_that_read_the_same_are_said_once() -> None:
    assert offered(trial(1, NAME, 1_000, "pass")) == "1,000 / 999"
    record = trial(1, NAME, 1_000, "pass")
    way = record.result.directions[0]
    result = record.result.model_copy(update={"directions": [way, way]})
    assert offered(record.model_copy(update={"result": result})) == "1,000"


def test_reasons_of_a_trial_are_its_verdicts() -> None:
    assert reasons(trial(1, NAME, 1, "invalid")) == BEHIND.message
    assert reasons(trial(1, NAME, 1, "pass")) == ""


def test_a_trial_that_ended_early_says_so() -> None:
    record = trial(1, NAME, 1, "pass")
    ways = [
        way.model_copy(update={"sending_ns": sending_ns})
        for way, sending_ns in zip(
            record.result.directions, (600_000_000, 599_000_000), strict=True
        )
    ]
    result = record.result.model_copy(update={"ended_early": True, "directions": ways})
    stopped = record.model_copy(update={"result": result})
    assert reasons(stopped) == "ended early, after 600\N{NO-BREAK SPACE}ms"


def test_the_environment_names_what_a_rerun_needs() -> None:
    rows = dict(environment_rows(sample_environment()))
    assert rows["Kernel"] == "6.1.0-30-amd64"
    assert rows["CPU"] == "Intel(R) Xeon(R) Processor, 2 CPUs, virtual machine"
    assert rows["Cores of the tester"] == "0; control on 1"
    assert rows["CPU governor"] == "unknown"
    assert rows["CPU frequency"] == "TSC 2,700 MHz, turbo unknown"
    assert rows["Memory"] == "7,950 MiB, 1 NUMA node"
    assert rows["DPDK"] == "22.11.11"
    assert rows["Seed"] == "42"
    assert "02:00:00:00:00:01" in rows["Port left"]


def test_what_differs_between_cores_is_told_for_each() -> None:
    changed = {
        "governor": {0: "performance", 1: "powersave"},
        "frequency_mhz": {0: 3_100.0},
        "turbo": True,
    }
    environment = sample_environment().model_copy(update=changed)
    rows = dict(environment_rows(environment))
    assert rows["CPU governor"] == "core 0: performance, core 1: powersave"
    assert rows["CPU frequency"] == "3,100 MHz, TSC 2,700 MHz, turbo on"


def test_a_missing_environment_has_no_rows() -> None:
    assert environment_rows(None) == []


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0, "0 %"),
        (0.0000123, "0.0000123 %"),
        (0.878, "0.878 %"),
        (14.0, "14 %"),
        (38.64, "38.6 %"),
        (99.97, "99.9 %"),
        (100.0, "100 %"),
        # One frame of a trial of 60 s at 10 Gbit/s in both directions.
        (100 / (2 * 60 * 14_880_952), "0.000000056 %"),
        (None, "\N{EN DASH}"),
    ],
)
def test_a_share_has_three_digits_and_a_small_loss_is_not_none(
    value: float | None, shown: str
) -> None:
    assert text.percent(value) == shown.replace(" ", text.NBSP)


@given(st.floats(1e-9, 100))
def test_no_loss_above_zero_ever_reads_as_zero(value: float) -> None:
    assert float(text.percent(value).split(text.NBSP)[0]) > 0


@given(st.floats(0, 100, exclude_max=True))
def test_a_share_below_everything_never_reads_as_everything(value: float) -> None:
    assert float(text.percent(value).split(text.NBSP)[0]) < 100


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0, "0 ns"),
        (511, "511 ns"),
        (1_023, "1.02 µs"),
        (640_000, "640 µs"),
        (8_220_000, "8.22 ms"),
        (999_999, "1 ms"),
        (2_500_000_000, "2.5 s"),
        (4_000_000_000_000, "4,000 s"),
        (None, "\N{EN DASH}"),
    ],
)
def test_a_time_has_the_unit_that_fits(value: float | None, shown: str) -> None:
    assert text.duration_ns(value) == shown.replace(" ", text.NBSP)


def test_a_missing_number_is_a_dash() -> None:
    assert text.whole(None) == text.decimal(None) == "\N{EN DASH}"
    assert text.whole(1_234_567.4) == "1,234,567"
    assert text.decimal(1_234.56) == "1,234.6"


def test_a_time_stamp_is_told_in_words_and_a_strange_one_as_it_is() -> None:
    assert text.moment("2026-03-04T09:30:00+00:00") == "4 March 2026, 09:30 UTC"
    assert text.moment("yesterday") == "yesterday"


def test_the_sample_covers_every_verdict() -> None:
    kinds = {record.result.verdict.kind for record in sample_results().trials}
    assert kinds == {"pass", "fail", "invalid"}


def test_a_sentence_that_begins_with_a_test_case_leaves_its_name_as_it_is() -> None:
    name = "frame-loss-ip4-64-both@linux-router"
    assert text.sentence(f"{name}: far apart") == f"{name}: far apart"
    assert text.sentence("repeats are far apart") == "Repeats are far apart"
