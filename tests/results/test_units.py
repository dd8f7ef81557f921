"""How figures are written."""

from __future__ import annotations

import pytest

from dutperf.results.units import about


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
    ],
)
def test_two_digits_are_no_power_of_ten(value: float, text: str) -> None:
    assert about(value) == text
