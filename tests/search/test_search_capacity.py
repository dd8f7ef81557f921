"""Table capacity: the bounds of simulated gateways, and how many tests it takes."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dutperf.search.capacity import (
    CapacityStep,
    CollapsedError,
    capacity_search,
)
from dutperf.search.model import Outcome, Resolution

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
        can = connections <= self.size and rate_per_s <= self.rate_per_s / slower
        return PASS if can else FAIL


def search(
    gateway: Gateway, *, first: int = 1000, most: int = 10**9, error: int = 1
) -> tuple[int | None, int | None, str]:
    found = capacity_search(
        gateway.establish,
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
    assert (found.connections, found.beyond, found.ending) == (2000, 4000, "unstable")


def test_the_same_outcomes_ask_for_the_same_tests() -> None:
    first, second = Gateway(123_456), Gateway(123_456)
    search(first)
    search(second)
    assert first.tests == second.tests


@pytest.mark.parametrize(
    "changes", [{"first": 0}, {"first": 11, "most": 10}, {"error": 0}]
)
def test_limits_that_make_no_sense_are_refused(changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="positive"):
        search(Gateway(10), **changes)


@pytest.mark.parametrize("beta", [Fraction(0), Fraction(1)])
def test_shares_are_between_0_and_1(beta: Fraction) -> None:
    with pytest.raises(ValueError, match="beta"):
        capacity_search(
            Gateway(10).establish,
            first=1,
            most=10,
            max_rate_per_s=10,
            rate_resolution=RESOLUTION,
            beta=beta,
        )
