"""One procedure of a campaign at one place, and how to say what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dutperf.config.campaign import Campaign
from dutperf.config.document import CampaignError, Keys, Problem
from dutperf.config.specs import ProcedureSpec
from dutperf.config.testbed import Testbed
from dutperf.config.traffic import Traffic
from dutperf.errors import InputError


@dataclass(frozen=True)
class Entry:
    """``place`` is empty if the campaign has no other."""

    campaign: Campaign
    index: int
    testbed: Testbed
    place: str

    @property
    def spec(self) -> ProcedureSpec:
        """The procedure."""
        return self.campaign.procedures[self.index]

    @property
    def ending(self) -> str:
        """Of the ids of its cells."""
        return f"@{self.place}" if self.place else ""

    @contextmanager
    def blamed(self, profile: Traffic | None = None) -> Iterator[None]:
        """Tell of what is refused inside at which key and place that was.

        Args:
            profile: the one that it is about.

        Raises:
            CampaignError: instead of an InputError, which may begin with the key.
        """
        try:
            yield
        except CampaignError:
            raise
        except InputError as error:
            keys, what = _split(error.message, type(self.spec).model_fields)
            if profile and keys[:1] == ("traffic",) and len(self.spec.traffic) > 1:
                each = len(self.spec.profiles) // len(self.spec.traffic)
                number = self.spec.profiles.index(profile) // each
                keys = ("traffic", number, *keys[1:])
            at = f"at {self.place}: " if self.place else ""
            problem = Problem(
                ("procedures", self.index, *keys), f"{at}{what}", error.hint
            )
            raise CampaignError(self.campaign.name, problem) from None


def _split(message: str, known: Container[str]) -> tuple[Keys, str]:
    """The keys that a message begins with, if it does; and the rest."""
    found = re.match(r"([a-z_]+)(\.\w+)*: ", message)
    if found and found[1] in known:
        return tuple(found[0][:-2].split(".")), message[found.end() :]
    return (), message
