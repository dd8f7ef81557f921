"""How figures are written."""

from __future__ import annotations

import pytest

from dutperf.results.units import about, in_unit, whole


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.034, "0.034"),
        (4.26, "4.3"),
        (37.4, "37"),
        (99.4, "99"),
        (99.6, "100"),
        (100, "100"),
        (632.1, "632"),
        (12_345.6, "12,346"),
        (0.00001234, "0.000012"),
        (0.0, "0"),
        (-3.14, "-3.1"),
    ],
)
def test_two_digits_are_no_power_of_ten(value: float, text: str) -> None:
    assert about(value) == text


def test_three_digits_are_no_power_of_ten_either() -> None:
    told = [about(value, 3) for value in (1.2345, 123.4, 999.6, 1234.5)]
    assert told == ["1.23", "123", "1,000", "1,234"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.5, "0.5"), (3, "3"), (3.21, "3.2"), (9.6, "10"), (1234.5, "1,234")],
)
def test_a_small_rate_is_not_rounded_to_nothing(value: float, text: str) -> None:
    assert whole(value) == text
    assert in_unit(value, "connections/s") == f"{text} connections/s"
