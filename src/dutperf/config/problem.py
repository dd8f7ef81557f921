"""What is wrong with a key, as data: the sentence is made where it is told."""

from __future__ import annotations

from dataclasses import dataclass

from dutperf.errors import InputError

Keys = tuple[str | int, ...]
"""Where a value stands: keys of blocks and indices of lists, from the top."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a document: where, what (a sentence), what to do."""

    keys: Keys
    what: str
    hint: str = ""


class KeyedError(InputError, ValueError):
    """A value that cannot be used; ``keys`` lead to it from the block that was checked.

    A ValueError as well, so that a model may raise it while it is being made.
    """

    def __init__(self, keys: Keys, what: str, hint: str = "") -> None:
        super().__init__(f"{dotted(keys)}: {what}", hint)
        self.keys = keys
        self.what = what


class CampaignError(InputError):
    """A campaign that can be read, but not measured where it says.

    It names the campaign and the key; with ``located`` around also file and line.
    """

    def __init__(self, campaign: str, problem: Problem) -> None:
        key = dotted(problem.keys)
        super().__init__(f"campaign {campaign}: {key}: {problem.what}", problem.hint)
        self.problem = problem


def dotted(keys: Keys) -> str:
    """``left.ipv4.address``, ``procedures[0].frame_size``."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{printable(key)}"
    return text.removeprefix(".")


def printable(key: str) -> str:
    """``key`` as a message names it: short, on one line."""
    return shortened(key if key.isprintable() and key else repr(key))


def shortened(text: str) -> str:
    """``text``, of at most 60 characters."""
    return text if len(text) <= 60 else f"{text[:57]}..."
