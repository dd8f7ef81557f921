"""Keys of ``dutperf stream``: from bytes to keys, from keys to actions."""

from __future__ import annotations

import pytest

from dutperf.cli.stream_keys import (
    END_OF_FILE,
    Action,
    Say,
    Scale,
    SetRate,
    TypedKeys,
    keys_in,
    parse_rate,
)
from dutperf.errors import InputError


def after(keys: str | list[str]) -> Action:
    """What the last one of ``keys`` asks for."""
    pressed = TypedKeys()
    return [pressed.press(key) for key in keys][-1]


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"+-q", ["+", "-", "q"]),
        (b"\x1b[A\x1bOB", ["up", "down"]),
        (b"\x1b[1;5C]", ["\x1b[1;5C", "]"]),
        (b"\x1b", ["escape"]),
        (b"\x1b[", ["\x1b["]),
        (b"\x1bq", ["\x1bq"]),
        (b"5\r\n\x7f", ["5", "enter", "enter", "backspace"]),
        ("é\xff".encode() + b"\xff", ["é", "ÿ", "\N{REPLACEMENT CHARACTER}"]),
        (b"", []),
    ],
)
def test_a_sequence_of_bytes_is_one_key(data: bytes, keys: list[str]) -> None:
    assert keys_in(data) == keys


@pytest.mark.parametrize(
    ("key", "action"),
    [
        ("+", Scale(11, 10)),
        ("=", Scale(11, 10)),
        ("up", Scale(11, 10)),
        ("-", Scale(10, 11)),
        ("down", Scale(10, 11)),
        ("]", Scale(101, 100)),
        ("[", Scale(100, 101)),
        (" ", "pause"),
        ("0", "clear"),
        ("c", "clear"),
        ("?", "help"),
        ("q", "end"),
        (END_OF_FILE, "end"),
        ("escape", Say("")),
    ],
)
def test_what_a_key_asks_for(key: str, action: Action) -> None:
    assert after([key]) == action


@pytest.mark.parametrize("key", ["x", "\x1a", "\x1c", "\x13", "\x1b[1;5C", "é"])
def test_a_key_that_has_no_meaning_is_answered(key: str) -> None:
    told = after([key])
    assert isinstance(told, Say)
    assert told.text
    assert "\x1b" not in told.text


@pytest.mark.parametrize(
    ("keys", "action"),
    [
        ([*"25000", "enter"], SetRate(25000)),
        ([*"r0", "backspace", *"10k", "enter"], SetRate(10_000)),
        ([*"1.5M", "enter"], SetRate(1_500_000)),
        ([*"r+", *"7", "enter"], SetRate(7)),
        (["5", "escape"], Say("the rate stays")),
        (["r", "enter"], Say("the rate stays")),
        (["5", "q"], Say("the rate stays")),
        (["5", "escape", "q"], "end"),
        (["5", END_OF_FILE], "end"),
        (["5", "enter", "+"], Scale(11, 10)),
    ],
)
def test_a_rate_is_typed(keys: list[str], action: Action) -> None:
    assert after(keys) == action


def test_what_was_typed_and_is_no_rate_is_told_and_nothing_changes() -> None:
    told = after([*"1.2.3", "enter"])
    assert isinstance(told, Say)
    assert "'1.2.3' is no rate" in told.text


def test_what_is_typed_has_an_end() -> None:
    keys = TypedKeys()
    for _ in range(1000):
        keys.press("9")
    assert len(keys.typed or "") == 20


@pytest.mark.parametrize(
    ("text", "rate_fps"),
    [("25000", 25_000), (" 10k ", 10_000), ("1.5M", 1_500_000), ("1,000,000", 10**6)],
)
def test_a_rate(text: str, rate_fps: int) -> None:
    assert parse_rate(text) == rate_fps


@pytest.mark.parametrize(
    "text", ["", "0", "-5", "1e-5", "1.5", "1,5M", "10kk", "2T", "nan", "9" * 16, "²"]
)
def test_no_rate(text: str) -> None:
    with pytest.raises(InputError, match="is no rate"):
        parse_rate(text)
