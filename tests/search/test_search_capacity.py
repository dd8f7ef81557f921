"""Table capacity: the bounds of simulated gateways, and how many tests it takes."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from functools import partial
from typing import Any

import pytest

from dutperf.search import Outcome, Resolution, binary
from dutperf.search.binary import (
    CapacityResult,
    CapacityStep,
    CollapsedError,
    Establish,
    capacity_search,
)

RESOLUTION = Resolution.parse("5%")
PASS, FAIL = Outcome("pass"), Outcome("fail")


class Gateway:
    """Holds ``size`` connections, makes ``rate_per_s`` of them; may slow down."""

    def __init__(
        self, size: int, rate_per_s: int = 20_000, *, slower_per_million: float = 0
    ) -> None:
        self.size = size
        self.rate_per_s = rate_per_s
        self.slower_per_million = slower_per_million
        self.tests: list[tuple[int, int]] = []

    def establish(self, connections: int, rate_per_s: int) -> Outcome:
        self.tests.append((connections, rate_per_s))
        slower = 1 + self.slower_per_million * connections / 1e6
        in_time = min(1, self.rate_per_s / slower / rate_per_s)
        held = min(self.size, int(connections * in_time))
        if held == connections:
            return PASS
        return Outcome("fail", loss_ratio=1 - held / connections)


class Uneven(Gateway):
    """One of its CPUs is slow and has a queue; some connections are lost by accident.

    The same test loses the same ones, so two searches can be compared.
    """

    def __init__(self, seed: int, accidents: float) -> None:
        of = random.Random(seed)  # noqa: S311
        super().__init__(of.randrange(2000, 200_000), int(10 ** of.uniform(3, 5)))
        self.share = of.choice([1, 0.3, 0.05])
        self.queue = of.choice([0, 256, 5000])
        self.always = of.choice([0, 0, 1e-3, 0.05])  # lost at any rate
        self.accidents = accidents

    def establish(self, connections: int, rate_per_s: int) -> Outcome:
        self.tests.append((connections, rate_per_s))
        slow = connections * self.share
        in_time = min(1, self.rate_per_s / (rate_per_s * self.share))
        held = connections - slow + min(slow, slow * in_time + self.queue)
        if connections > self.size // 2:
            held -= self.always * connections
        of = random.Random(connections * 1_000_003 + rate_per_s)  # noqa: S311
        held -= sum(of.random() < 0.1 for _ in range(round(self.accidents * 10)))
        held = max(0, min(self.size, int(held)))
        if held == connections:
            return PASS
        return Outcome("fail", loss_ratio=1 - held / connections)


def search(
    gateway: Gateway,
    *,
    first: int = 1000,
    most: int = 10**9,
    error: int = 1,
    establish: Establish | None = None,
) -> tuple[int | None, int | None, str]:
    found = capacity_search(
        establish or gateway.establish,
        first=first,
        most=most,
        error=error,
        max_rate_per_s=100_000,
        rate_resolution=RESOLUTION,
    )
    return found.connections, found.beyond, found.ending


@pytest.mark.parametrize("size", [1000, 1001, 1999, 2000, 10_000, 123_457])
def test_the_size_is_found_exactly(size: int) -> None:
    assert search(Gateway(size)) == (size, size + 1, "found")


@pytest.mark.parametrize("error", [1, 10, 1000])
def test_the_bounds_come_as_close_as_the_error_and_hold_the_size(error: int) -> None:
    low, high, ending = search(Gateway(77_777), error=error)
    assert ending == "found"
    assert low is not None
    assert high is not None
    assert low <= 77_777 < high <= low + error


def test_unless_told_otherwise_the_size_is_exact() -> None:
    found = capacity_search(
        Gateway(77_777).establish,
        first=1000,
        most=10**6,
        max_rate_per_s=10,
        rate_resolution=RESOLUTION,
    )
    assert (found.connections, found.beyond) == (77_777, 77_778)


def test_a_gateway_that_only_slows_down_is_not_taken_for_full() -> None:
    slow = Gateway(50_000, slower_per_million=20)  # half the rate at 50,000
    assert search(slow) == (50_000, 50_001, "found")


def test_not_even_the_first_number_is_held() -> None:
    assert search(Gateway(999)) == (None, 1000, "nothing_held")


def test_the_largest_number_that_may_be_tried_is_held() -> None:
    assert search(Gateway(10**6), most=3000) == (3000, None, "most_held")


def test_a_full_table_costs_one_test_below_the_least_rate_and_not_all_the_way() -> None:
    gateway = Gateway(1500, 20_000)
    search(gateway)
    at_2000 = [rate for connections, rate in gateway.tests if connections == 2000]
    # From 20,000 halving down to below a tenth, and no further.
    assert len(at_2000) <= 5
    assert min(at_2000) >= 20_000 * 0.95 / 10 / 2


def test_each_number_tells_its_rate_and_what_it_had_to_reach() -> None:
    found = capacity_search(
        Gateway(3000, 1000).establish,
        first=1000,
        most=10**6,
        max_rate_per_s=1000,
        rate_resolution=RESOLUTION,
        error=500,
    )
    assert found.steps == [
        CapacityStep("first", 1000, 1000, 1, "held", 1),
        CapacityStep("doubling", 2000, 1000, 100, "held", 1),
        CapacityStep("doubling", 4000, None, 100, "full", 2),
        CapacityStep("bisection", 3000, 1000, 500, "held", 1),
        CapacityStep("bisection", 3500, None, 500, "full", 2),
    ]
    assert (found.connections, found.beyond, found.rate_per_s) == (3000, 3500, 1000)


def of_a_thousand(at_2000: Establish, resolution: str = "1") -> CapacityResult:
    """1000 connections at 1000 a second; from 2000 on what ``at_2000`` says."""

    def establish(connections: int, rate_per_s: int) -> Outcome:
        return PASS if connections < 2000 else at_2000(connections, rate_per_s)

    return capacity_search(
        establish,
        first=1000,
        most=2000,
        max_rate_per_s=1000,
        rate_resolution=Resolution.parse(resolution),
        error=1000,
    )


@pytest.mark.parametrize(("rate_per_s", "ending"), [(100, "most_held"), (99, "found")])
def test_a_tenth_of_the_rate_before_is_still_held(rate_per_s: int, ending: str) -> None:
    assert of_a_thousand(Gateway(2000, rate_per_s).establish).ending == ending


@pytest.mark.parametrize(
    ("shares", "held"),
    [
        ([0.5, 0.5], "full"),
        ([0.5, 0.4], "too_slow"),
        ([None, None], "too_slow"),
    ],
)
def test_what_is_missing_alike_at_any_rate_has_no_room(
    shares: list[float | None], held: str
) -> None:
    left = iter(shares)

    def establish(number: int, _rate_per_s: int) -> Outcome:
        if number <= 1000:
            return PASS
        return Outcome("fail", loss_ratio=next(left))

    result = capacity_search(
        establish,
        first=1000,
        most=2000,
        max_rate_per_s=1000,
        rate_resolution=Resolution.parse("5%"),
        error=1000,
        beta=Fraction(1, 2),
        gamma=Fraction(1, 2),
    )
    assert [step.held for step in result.steps] == ["held", held]


@pytest.mark.parametrize("accidents", [0, 0.3, 3, 300])
def test_a_number_given_up_early_would_not_have_been_held(
    accidents: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bounds as without that end, and never more tests."""
    for seed in range(60):
        early, all_the_way = Uneven(seed, accidents), Uneven(seed, accidents)
        monkeypatch.undo()
        found = search(early, error=early.size // 100)
        monkeypatch.setattr(binary, "_NO_ACCIDENT", math.inf)
        assert found == search(all_the_way, error=early.size // 100), seed
        assert len(early.tests) <= len(all_the_way.tests)


def test_a_rate_that_passed_below_the_least_one_is_too_slow() -> None:
    found = of_a_thousand(Gateway(2000, 98).establish, "10")
    assert (found.connections, found.beyond, found.ending) == (1000, 2000, "found")
    last = found.steps[-1]
    assert (last.held, last.rate_per_s, last.least_per_s) == ("too_slow", 93, 100)


def test_what_the_tester_cannot_establish_is_not_the_tables_size() -> None:
    def limited(_connections: int, rate_per_s: int) -> Outcome:
        return PASS if rate_per_s <= 98 else Outcome("invalid", offered_fps=98)

    found = of_a_thousand(limited, "10")
    assert (found.connections, found.beyond, found.ending) == (1000, None, "unstable")
    assert found.steps[-1].rate_per_s == 93


def test_one_connection_a_second_is_a_rate() -> None:
    found = capacity_search(
        Gateway(5, 1).establish,
        first=5,
        most=5,
        max_rate_per_s=1,
        rate_resolution=RESOLUTION,
        attempts=1,
    )
    assert (found.connections, found.rate_per_s, found.ending) == (5, 1, "most_held")


@pytest.mark.parametrize(
    ("gone_from", "low", "beyond"),
    [(1000, None, 1000), (1500, 1000, 2000), (2500, 2000, 3000)],
)
def test_a_device_that_stays_away_ends_it_at_once(
    gone_from: int, low: int | None, beyond: int
) -> None:
    gateway = Gateway(3700)

    def establish(connections: int, rate_per_s: int) -> Outcome:
        if gone_from <= connections < 4000:
            raise CollapsedError(for_good=True)
        return gateway.establish(connections, rate_per_s)

    assert search(gateway, establish=establish) == (low, beyond, "collapsed")


def test_a_bisection_that_turns_invalid_keeps_both_bounds() -> None:
    gateway = Gateway(3700)

    def establish(connections: int, rate_per_s: int) -> Outcome:
        if 3000 < connections < 4000:
            return Outcome("invalid")
        return gateway.establish(connections, rate_per_s)

    assert search(gateway, establish=establish) == (3000, 4000, "unstable")


@pytest.mark.parametrize("attempts", [None, 1, 5])
def test_an_invalid_test_is_repeated_so_often(attempts: int | None) -> None:
    """Three times unless told otherwise."""
    tests = []

    def establish(connections: int, _rate_per_s: int) -> Outcome:
        tests.append(connections)
        return Outcome("invalid")

    search_once = partial(
        capacity_search,
        establish,
        first=10,
        most=100,
        max_rate_per_s=1,
        rate_resolution=RESOLUTION,
    )
    found = search_once() if attempts is None else search_once(attempts=attempts)
    assert len(tests) == (attempts or 3)
    assert (found.connections, found.beyond, found.ending) == (None, None, "unstable")
    assert [step.held for step in found.steps] == ["unstable"]


def test_a_collapse_bounds_the_search_and_keeps_what_was_held() -> None:
    gateway = Gateway(10**9)
    collapsed = []

    def establish(connections: int, rate_per_s: int) -> Outcome:
        if connections > 5000:
            collapsed.append(connections)
            raise CollapsedError
        return gateway.establish(connections, rate_per_s)

    steps: list[CapacityStep] = []
    found = capacity_search(
        establish,
        first=1000,
        most=10**6,
        max_rate_per_s=100_000,
        rate_resolution=RESOLUTION,
        error=100,
        on_step=steps.append,
    )
    assert found.connections is not None
    assert 4900 <= found.connections <= 5000
    assert steps == found.steps
    assert [s.connections for s in steps if s.held == "collapsed"] == collapsed


def test_tests_that_stay_invalid_end_it_with_what_was_proven() -> None:
    """Where they did, nothing is known, not even that it is too much."""
    gateway = Gateway(10**9)

    def establish(connections: int, rate_per_s: int) -> Outcome:
        if connections > 3000:
            return Outcome("invalid")
        return gateway.establish(connections, rate_per_s)

    found = capacity_search(
        establish,
        first=1000,
        most=10**6,
        max_rate_per_s=100_000,
        rate_resolution=RESOLUTION,
    )
    assert (found.connections, found.beyond, found.ending) == (2000, None, "unstable")


def test_the_same_outcomes_ask_for_the_same_tests() -> None:
    first, second = Gateway(123_456), Gateway(123_456)
    search(first)
    search(second)
    assert first.tests == second.tests


@pytest.mark.parametrize(
    "changes",
    [
        {"first": 0},
        {"first": 11},
        {"error": 0},
        {"attempts": 0},
        {"max_rate_per_s": 0},
    ],
)
def test_limits_that_make_no_sense_are_refused(changes: dict[str, int]) -> None:
    given: dict[str, Any] = {"first": 1, "most": 10, "max_rate_per_s": 10, **changes}
    with pytest.raises(ValueError, match="positive"):
        capacity_search(Gateway(10).establish, rate_resolution=RESOLUTION, **given)


@pytest.mark.parametrize("name", ["beta", "gamma"])
@pytest.mark.parametrize("share", [Fraction(0), Fraction(1)])
def test_shares_are_between_0_and_1(name: str, share: Fraction) -> None:
    shares: dict[str, Any] = {name: share}
    with pytest.raises(ValueError, match="beta"):
        capacity_search(
            Gateway(10).establish,
            first=1,
            most=10,
            max_rate_per_s=10,
            rate_resolution=RESOLUTION,
            **shares,
        )
