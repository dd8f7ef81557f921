"""Differences in the words of the file's own keys."""

from __future__ import annotations

import pytest

from dutperf.results.environment import differences, listed


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": 1}, {"a": 2}, ["a: was 1, is 2"]),
        ({"a": 1}, {}, ["a: was 1, is absent"]),
        ({}, {"a": {"name": "x"}}, ["a: was absent, is a block of keys (x)"]),
        ({"a": [1, 2]}, {"a": [1, 3]}, ["a: was [1, 2], is [1, 3]"]),
        (
            {"a": [{"b": 1}, {"b": 2}]},
            {"a": [{"b": 1}]},
            ["a[1]: was a block of keys, is absent"],
        ),
        ({"a": [{"b": {"c": 1}}]}, {"a": [{"b": {"c": 2}}]}, ["a[0].b.c: was 1, is 2"]),
        ({"a": {"b": 1}}, {"a": 1}, ["a: was a block of keys, is 1"]),
    ],
)
def test_each_change_is_named_by_its_key(
    old: dict[str, object], new: dict[str, object], told: list[str]
) -> None:
    assert differences(old, new) == told


def test_a_long_list_says_how_many_more() -> None:
    assert listed(["a", "b", "c"], 2) == "a\nb\n... and 1 more"
