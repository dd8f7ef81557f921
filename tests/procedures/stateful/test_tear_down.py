"""What hooks printed and took, and the rates, doubts and hints made of it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from gateways import nat44
from planning import Recording

from dutperf.config.testbed import Hook
from dutperf.model.stateful_keys import Stateful
from dutperf.procedures.stateful.teardown_rate import (
    Found,
    delete_all,
    deleted,
    expired,
    watch,
)
from dutperf.results import HookRun
from dutperf.results.details import Expiry, TeardownRate
from dutperf.results.trial_record import HookMoment
from dutperf.simulation.fake_engine import FakeEngine, perfect

N = 1000


def stateful(connections: int = N, dut_timeout_s: float = 5) -> Stateful:
    return Stateful(connections=connections, dut_timeout_s=dut_timeout_s)


def ran(
    moment: HookMoment,
    output: str = "",
    *,
    took_s: float = 0,
    after_s: float = 0,
    exit_code: int = 0,
) -> HookRun:
    return HookRun(
        moment=moment,
        command=[moment],
        host=None,
        attempts=1,
        exit_code=exit_code,
        ended=f"ended with exit code {exit_code}",
        output=output,
        duration_s=took_s,
        after_s=after_s,
    )


def deletion(
    full_s: float, empty_s: Sequence[float], before: int = N, after: int = 0
) -> Found:
    return deleted(
        [
            ran("table_count", f"{before}"),
            ran("teardown", took_s=full_s),
            ran("table_count", f"{after}"),
            *[ran("teardown", took_s=s) for s in empty_s],
        ],
        stateful(),
    )


def counted(*counts: tuple[float, int]) -> Found:
    runs = [ran("table_count", f"{left} left", after_s=s) for s, left in counts]
    return expired(runs, stateful())


def expiry(found: Found) -> Expiry:
    assert isinstance(found.part, Expiry)
    return found.part


def codes(found: Found) -> list[str]:
    return [reason.code for reason in found.reasons]


# --- deleted at once ---


def test_the_rate_of_the_rfc_has_the_command_included() -> None:
    part = deletion(0.5, [0.25] * 5).part
    assert isinstance(part, TeardownRate)
    assert (part.rate_per_s, part.rfc_rate_per_s) == (4000, 2000)


def test_a_deletion_that_took_no_time_has_neither_rate() -> None:
    part = deletion(0, [0] * 5).part
    assert isinstance(part, TeardownRate)
    assert (part.rate_per_s, part.rfc_rate_per_s) == (None, None)


@pytest.mark.parametrize(
    ("net", "found"), [(20, []), (19.75, ["too_short"]), (0, ["too_short"])]
)
def test_twenty_times_what_empty_deletions_differ_by_is_enough(
    net: float, found: list[str]
) -> None:
    noise_s = 1 / 64
    command_s = [0.5, 0.5, 0.5 + noise_s]
    assert codes(deletion(0.5 + net * noise_s, command_s)) == found


@pytest.mark.parametrize(("after", "found"), [(10, []), (11, ["table_disagrees"])])
def test_a_device_that_only_marks_connections_has_not_deleted_them(
    after: int, found: list[str]
) -> None:
    told = deletion(0.5, [0.25] * 5, after=after)
    assert codes(told) == found
    for reason in told.reasons:
        assert f"still counts {after} connections after it deleted" in reason.message
        assert "bulk_delete that ends when they are gone" in reason.hint


def test_another_count_before_asks_for_table_timeout_and_hook() -> None:
    (reason,) = deletion(0.5, [0.25] * 5, before=N // 2).reasons
    assert reason.code == "table_disagrees"
    assert reason.hint == (
        "is the table large enough, the timeout long enough, and does the hook "
        "table_count print that number first?"
    )


def test_too_short_says_how_many_connections_would_do() -> None:
    (reason,) = deletion(0.012345, [0.002, 0.002, 0.003]).reasons
    assert reason.message == (
        "deleting took 12.3 ms, the command alone 2 ms, give or take 1 ms: too close "
        "to tell"
    )
    # Twice as many as 20 ms would take: 10.345 ms are left of 1,000.
    assert reason.hint == "open more connections (--connections), about 3,867"


@pytest.mark.parametrize(("noise", "told"), [(49, ", about 1,960,000"), (50, "")])
def test_a_thousand_times_as_many_is_no_advice(noise: int, told: str) -> None:
    net_s = 1 / 1024
    found = deletion(0.5 + net_s, [0.5, 0.5, 0.5 + noise * net_s])
    (reason,) = found.reasons
    assert reason.hint == f"open more connections (--connections){told}"


def test_a_command_that_takes_longer_on_an_empty_table_gives_no_number() -> None:
    (reason,) = deletion(0.25, [0.5] * 5).reasons
    assert reason.hint == "open more connections (--connections)"


# --- one by one ---


def test_between_two_counts_connections_expire_in_proportion() -> None:
    found = counted((0, 1000), (1, 1000), (3, 800), (4, 300), (6, 50), (7, 0))
    part = expiry(found)
    assert part.begins_s == 2
    assert part.ends_s == pytest.approx(5.6)
    assert found.rate_per_s == pytest.approx(800 / 3.6)
    assert found.reasons == []


def test_the_first_count_is_made_at_once() -> None:
    """Not after a second."""
    part = expiry(counted((0, 1000), (2, 800), (4, 0)))
    assert part.counts[0].after_s == 0
    assert part.begins_s == 1


def test_counts_of_just_nine_tenths_and_one_tenth_are_the_borders() -> None:
    part = expiry(counted((0, 1000), (1, 900), (2, 500), (5, 100), (6, 0)))
    assert (part.begins_s, part.ends_s, part.rate_per_s) == (1, 5, 200)


def test_a_pause_at_nine_tenths_is_before_what_is_measured() -> None:
    """It begins when fewer are left."""
    found = counted((0, 1000), (1, 900), (3, 900), (4, 500), (5, 100), (6, 0))
    part = expiry(found)
    assert (part.begins_s, part.ends_s, part.rate_per_s) == (3, 5, 400)


def test_a_device_that_counts_nine_tenths_from_the_begin_lost_some() -> None:
    assert codes(counted((0, 900), (1, 900), (2, 500), (3, 0))) == ["table_disagrees"]


def test_connections_may_expire_right_after_the_first_count() -> None:
    assert counted((0, 1000), (1, 800), (2, 0)).reasons == []


@pytest.mark.parametrize(
    ("counts", "left"),
    [
        ([(0, 1000), (1, 999), (20.25, 998)], "998 are left after 20.2 s"),
        ([(0, 1000), (1, 500), (20.25, 200)], "200 are left after 20.2 s"),
    ],
)
def test_connections_that_stay_have_no_rate_and_are_told(
    counts: list[tuple[float, int]], left: str
) -> None:
    found = counted(*counts)
    assert (found.rate_per_s, codes(found)) == (None, ["too_short"])
    assert found.reasons[0].message == (
        f"connections were not seen to expire one by one: {left}"
    )


def test_without_any_number_there_is_nothing_to_tell_of_them() -> None:
    found = expired([ran("table_count", "none")], stateful())
    (reason,) = found.reasons
    assert reason.message == "connections were not seen to expire one by one"


# --- what is asked of the device ---


class Asked:
    """Hooks that take no time and print ``outputs``, the last one for ever."""

    def __init__(self, *outputs: str, failing: HookMoment | None = None) -> None:
        self.now_s = 1000.0
        self._outputs = list(outputs)
        self._failing = failing
        self.runner = Recording(
            FakeEngine(perfect()),
            testbed=nat44("bulk_delete", "table_count"),
            hooks=self,
            sleep=self._sleep,
            clock=lambda: self.now_s,
        ).runner

    def __call__(self, hooks: Sequence[Hook], moment: HookMoment) -> list[HookRun]:
        output = self._outputs.pop(0) if self._outputs[1:] else self._outputs[0]
        code = 1 if moment == self._failing else 0
        return [ran(moment, output, exit_code=code) for _ in hooks]

    def _sleep(self, seconds: float) -> None:
        self.now_s += seconds


def after_s(runs: Sequence[HookRun]) -> list[float]:
    return [run.after_s for run in runs if run.after_s is not None]


@pytest.mark.parametrize(
    ("timeout_s", "rate_per_s", "longest_s"),
    [
        (100, 10, 600),  # three times what they live, 200 s
        (8, 500, 160),  # 150 s more than 10 s
    ],
)
def test_connections_are_watched_until_the_device_must_have_looked_for_them(
    timeout_s: float, rate_per_s: int, longest_s: float
) -> None:
    runs = watch(Asked("1000").runner, stateful(N, timeout_s), rate_per_s)
    assert after_s(runs)[0] == 0
    assert after_s(runs)[-1] == pytest.approx(longest_s, abs=1)


def test_they_are_counted_two_hundred_times_and_then_four_times_a_second() -> None:
    times = after_s(watch(Asked("1000").runner, stateful(N, 8), 500))
    gaps = [b - a for a, b in pairwise(times)]
    often = [gap for at, gap in zip(times[:-1], gaps, strict=True) if at < 14.9]
    rarely = [gap for at, gap in zip(times[:-1], gaps, strict=True) if at > 15.1]
    assert often == pytest.approx([10 / 200] * len(often))
    assert rarely == pytest.approx([0.25] * len(rarely))


@pytest.mark.parametrize("last", ["0", "nothing any more"])
def test_the_watch_ends_with_the_last_connection(last: str) -> None:
    assert len(watch(Asked("1000", "500", last).runner, stateful(), 1000)) == 3


def test_a_hook_that_fails_is_not_asked_again() -> None:
    asked = Asked("1000", failing="table_count")
    assert len(watch(asked.runner, stateful(), 1000)) == 1
    assert len(delete_all(asked.runner, stateful(), 1000)) == 1
    asked = Asked("1000", failing="teardown")
    assert len(delete_all(asked.runner, stateful(), 1000)) == 2
