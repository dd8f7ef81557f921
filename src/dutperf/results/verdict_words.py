"""Verdicts on results, in words; those on trials are pass, fail and invalid."""

from __future__ import annotations

from dutperf.protocol import VerdictKind

_WORDS: dict[VerdictKind, str] = {
    "pass": "measured",
    "fail": "failed",
    "invalid": "invalid",
}


def result_word(verdict: VerdictKind) -> str:
    """What the verdict on a cell is called, wherever it is shown."""
    return _WORDS[verdict]
