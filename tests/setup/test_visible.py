"""Nothing that is shown may be obeyed by a terminal or turn the order of a line."""

from __future__ import annotations

import json
import sys
import unicodedata

import pytest

from dutperf.visible import visible, visible_json

EVERY = [chr(code) for code in range(sys.maxunicode + 1)]
OBEYED = [
    character
    for character in EVERY
    if unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"}
    and character not in "\n\t"
]


def test_every_control_and_format_character_is_shown_as_an_escape() -> None:
    for character in OBEYED:
        shown = visible(f"a{character}b")[1:-1]
        assert shown.isascii()
        assert shown.isprintable()
        assert shown.encode().decode("unicode_escape") == character


def test_every_other_character_stays() -> None:
    obeyed = set(OBEYED)
    others = "".join(
        character
        for character in EVERY
        if character not in obeyed and unicodedata.category(character) != "Cn"
    )
    assert visible(others) == others


def test_the_ends_of_lines_stay_whoever_wrote_them() -> None:
    assert visible("first\r\nsecond\n\tthird\n") == "first\r\nsecond\n\tthird\n"
    assert visible("overwritten\rline") == r"overwritten\x0dline"


@pytest.mark.parametrize("text", ["".join(OBEYED), "\U000e0041\u202e\x7f\x9b"])
def test_json_says_the_same_without_them(text: str) -> None:
    told = text.encode("utf-8", "ignore").decode()
    stored = visible_json(json.dumps(told, ensure_ascii=False))
    assert json.loads(stored) == told
    assert visible(stored) == stored
