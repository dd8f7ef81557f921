"""Deleting the connections of simulated gateways, at once and one by one."""

from __future__ import annotations

import pytest
from gateways import SimulatedHooks, nat44
from planning import Recording, cell, doubling, spec_with, spoilt

from dutperf.config import Campaign, expand
from dutperf.errors import InputError
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.stateful.teardown_rate import measure_teardown_rate
from dutperf.protocol.result_messages import ReasonCode
from dutperf.results import CellResult
from dutperf.simulation.fake_engine import FakeEngine, SimulatedNat, perfect

N = 1000
RATE = MaxRate(10_000, "load")
LATENCY_NS = 20_000_000


class Wavering(SimulatedNat):
    """Its command takes a millisecond more every other time."""

    def clear(self) -> int:
        self._command_ns = LATENCY_NS + (1_000_000 if self._command_ns % 2 else 1)
        return super().clear()


def measured(
    nat: SimulatedNat,
    *hooks: str,
    repeats: int = 1,
    troubles: dict[int, ReasonCode] | None = None,
    engine: FakeEngine | None = None,
    **stateful: object,
) -> tuple[CellResult, Recording]:
    testbed = nat44(*(hooks or ("bulk_delete", "table_count")))
    recording = Recording(
        engine or FakeEngine(perfect(), nat=nat, troubles=troubles or {}),
        testbed=testbed,
        hooks=SimulatedHooks(nat),
        sleep=lambda seconds: nat.wait(int(seconds * 1e9)),
        clock=lambda: nat.now_ns / 1e9,
    )
    asked = cell(
        testbed,
        procedure="teardown-rate",
        rate_fps=RATE.rate_fps,
        repeats=repeats,
        stateful={"connections": N, **stateful},
    )
    return measure_teardown_rate(recording.runner, asked, RATE), recording


@pytest.mark.parametrize("rate", [500, 20_000, 1_000_000])
def test_the_rate_is_that_of_deleting_without_the_command(rate: int) -> None:
    nat = SimulatedNat(delete_rate_fps=rate, command_ns=LATENCY_NS)
    result, _ = measured(nat)
    assert (result.verdict, result.unit) == ("pass", "connections/s")
    assert result.median == pytest.approx(rate, rel=0.05)
    (told,) = result.teardown
    assert told.command_s == pytest.approx(LATENCY_NS / 1e9)
    assert (told.counted_before, told.counted_after) == (N, 0)
    assert len(told.empty_s) == 5


def test_the_timed_deletion_is_not_the_one_that_comes_before_each_trial() -> None:
    nat = SimulatedNat(delete_rate_fps=20_000)
    _, recording = measured(nat, repeats=2)
    for record in recording.records:
        moments = [run.moment for run in record.hooks]
        assert moments == [
            "bulk_delete",
            "table_count",
            "teardown",
            "table_count",
            *["teardown"] * 5,
        ]


def test_repeats_give_a_median_and_their_spread() -> None:
    result, recording = measured(SimulatedNat(delete_rate_fps=20_000), repeats=3)
    assert len(result.repeats) == len(recording.records) == 3
    assert result.spread is not None


def test_too_few_connections_to_tell_it_from_the_command_are_no_result() -> None:
    result, _ = measured(Wavering(delete_rate_fps=1_000_000))
    assert (result.verdict, result.median) == ("invalid", None)
    assert result.reasons[0].code == "too_short"
    assert "--connections" in result.reasons[0].hint
    result, _ = measured(Wavering(delete_rate_fps=10_000))
    assert result.verdict == "pass"


def test_a_device_without_a_count_is_measured_all_the_same() -> None:
    result, _ = measured(SimulatedNat(delete_rate_fps=20_000), "bulk_delete")
    assert result.verdict == "pass"
    assert result.teardown[0].counted_before is None


def test_connections_that_were_opened_twice_are_not_said_to_be_lost() -> None:
    nat = SimulatedNat()
    result, recording = measured(nat, engine=doubling(FakeEngine(perfect(), nat=nat)))
    assert (result.verdict, result.median) == ("invalid", None)
    assert [reason.code for reason in result.reasons] == ["duplicates"]
    assert len(recording.records) == 1


def test_connections_that_were_not_opened_are_not_deleted() -> None:
    result, recording = measured(SimulatedNat(table_size=N // 2))
    assert (result.verdict, result.median) == ("invalid", None)
    assert "--rate" in result.reasons[0].hint
    assert "teardown" not in [run.moment for run in recording.records[0].hooks]


def test_a_table_that_silently_lost_some_is_noticed_by_its_count() -> None:
    nat = SimulatedNat(table_size=N // 2, eviction="oldest", delete_rate_fps=20_000)
    result, _ = measured(nat)
    assert result.verdict == "invalid"
    assert result.reasons[0].code == "table_disagrees"
    assert "the device counts 500" in result.reasons[0].message
    assert result.teardown[0].rate_per_s is not None  # but not of as many
    assert (result.median, result.repeats[0].value) == (None, None)


def test_an_invalid_trial_is_measured_again() -> None:
    nat = SimulatedNat(delete_rate_fps=20_000)
    result, recording = measured(nat, troubles=spoilt("receiver_overflow", 1))
    assert result.verdict == "pass"
    assert len(recording.records) == 2


def test_what_another_trial_would_not_mend_ends_the_repeats() -> None:
    """Three attempts of the second one; there is no third."""
    nat = SimulatedNat(delete_rate_fps=20_000)
    troubles = spoilt("link_down", *range(2, 100))
    result, _ = measured(nat, repeats=3, troubles=troubles)
    told = [(repeat.verdict, repeat.trials) for repeat in result.repeats]
    assert told == [("pass", 1), ("invalid", 3)]
    assert [reason.code for reason in result.reasons] == ["link_down"]
    assert result.median == result.repeats[0].value


def test_what_the_rfc_asks_for_and_was_not_done_is_told() -> None:
    result, _ = measured(SimulatedNat(delete_rate_fps=20_000))
    asked = [(deviation.rfc, deviation.actual) for deviation in result.deviations]
    assert ("RFC 9693 4.8", "of one number") in asked


def test_connections_expire_as_fast_as_they_were_opened() -> None:
    nat = SimulatedNat(timeout_ns=5 * 10**9)
    result, _ = measured(nat, expiry=True, dut_timeout_s=5, connections=10_000)
    assert result.verdict == "pass"
    assert result.median == pytest.approx(RATE.rate_fps, rel=0.05)
    (told,) = result.expiry
    assert told.counts[0].connections == 10_000
    assert told.counts[-1].connections == 0
    assert told.begins_s is not None
    assert told.begins_s < 5


def test_connections_that_all_go_between_two_counts_have_no_rate() -> None:
    """All were opened in 0.1 s, and the device is asked every 0.25 s."""
    nat = SimulatedNat(timeout_ns=50 * 10**9)
    result, _ = measured(nat, expiry=True, dut_timeout_s=50)
    (told,) = result.expiry
    assert {count.connections for count in told.counts} == {N, 0}
    assert (result.verdict, result.median, told.rate_per_s) == ("invalid", None, None)
    assert "all go between two counts" in result.reasons[0].hint


def test_connections_that_do_not_expire_are_not_watched_for_ever() -> None:
    result, recording = measured(SimulatedNat(), expiry=True, dut_timeout_s=5)
    assert result.verdict == "invalid"
    assert "--dut-timeout" in result.reasons[0].hint
    assert len(recording.records[0].hooks) < 1000


@pytest.mark.parametrize(
    ("hooks", "keys", "told"),
    [
        ((), {}, "no hook bulk_delete"),
        (("bulk_delete",), {"expiry": True, "dut_timeout_s": 5}, "no hook table_count"),
        (("table_count",), {"expiry": True}, "dut_timeout_s: is missing"),
        (
            ("bulk_delete",),
            {"alpha": 1},
            "alpha: unknown key: it is of tcp-capacity, .* and table-capacity",
        ),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_first_frame(
    hooks: tuple[str, ...], keys: dict[str, object], told: str
) -> None:
    asked = {
        "procedure": "teardown-rate",
        "rate_fps": 1000,
        "stateful": {"connections": 5, **keys},
    }
    with pytest.raises((InputError, ValueError), match=told):
        expand(
            Campaign(
                name="x",
                testbed=[nat44(*hooks)],
                procedures=[spec_with(asked)],
            ),
            nat44(*hooks),
        )


def test_a_rate_is_needed_and_must_be_a_number() -> None:
    for keys, told in (({}, "is missing"), ({"rate_fps": "all"}, "must be a whole")):
        with pytest.raises(InputError, match=f"rate_fps: {told}"):
            cell(procedure="teardown-rate", stateful={"connections": 5}, **keys)
