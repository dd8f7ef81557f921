"""One procedure of a campaign at one testbed, and how to say what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dutperf.config.campaign import Campaign
from dutperf.config.problem import CampaignError, KeyedError, Keys, Problem
from dutperf.config.specs import ProcedureSpec
from dutperf.config.testbed import Testbed
from dutperf.config.traffic import Traffic
from dutperf.errors import InputError


@dataclass(frozen=True)
class Entry:
    """``at``, the testbed's name, is empty if the campaign has no other."""

    campaign: Campaign
    index: int
    testbed: Testbed
    at: str

    @property
    def spec(self) -> ProcedureSpec:
        """The procedure."""
        return self.campaign.procedures[self.index]

    @property
    def ending(self) -> str:
        """Of the ids of its cells."""
        return f"@{self.at}" if self.at else ""

    @contextmanager
    def blamed(self, profile: Traffic | None = None) -> Iterator[None]:
        """Tell of what is refused inside at which key and testbed that was.

        Args:
            profile: the one that it is about.

        Raises:
            CampaignError: instead of an InputError.
        """
        try:
            yield
        except CampaignError:
            raise
        except KeyedError as error:
            keys = self._of_profile(error.keys, profile)
            raise self._refusal(keys, error.what, error.hint) from None
        except InputError as error:
            raise self._refusal((), error.message, error.hint) from None

    def _of_profile(self, keys: Keys, profile: Traffic | None) -> Keys:
        """With the number of the profile, if there are several."""
        if profile is None or keys[0] != "traffic" or len(self.spec.traffic) == 1:
            return keys
        each = len(self.spec.profiles) // len(self.spec.traffic)
        number = self.spec.profiles.index(profile) // each
        return ("traffic", number, *keys[1:])

    def _refusal(self, keys: Keys, what: str, hint: str) -> CampaignError:
        at = f"at {self.at}: " if self.at else ""
        problem = Problem(("procedures", self.index, *keys), f"{at}{what}", hint)
        return CampaignError(self.campaign.name, problem)
