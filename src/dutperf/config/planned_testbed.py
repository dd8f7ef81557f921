"""Where cells are to be measured: a testbed that stands, or a lab to be made."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from pydantic import Field

from dutperf.config.campaign import Campaign
from dutperf.config.fields import Strict, repeated
from dutperf.config.hooks import CORES
from dutperf.config.labs import LabKeys
from dutperf.config.problem import CampaignError, Problem
from dutperf.config.testbed import Testbed
from dutperf.errors import InputError


class PlannedTestbed(Strict):
    """A testbed as it will be: of a lab the one that it would have on this machine."""

    lab: LabKeys | None = Field(
        default=None, description="the lab that is brought up; none: it stands already"
    )
    testbed: Testbed
    cores: int | None = Field(
        default=None, description="how many of the device's are active; none: as it is"
    )

    @property
    def name(self) -> str:
        """The name of the lab or testbed, by which testbeds are told apart."""
        base = self.lab.testbed_name if self.lab else self.testbed.name
        return base if self.cores is None else f"{base}-{self.cores}cores"

    def with_cores(self, number: int) -> PlannedTestbed:
        """The same with so many active cores: of a testbed that stands, another one.

        Raises:
            InputError: nothing sets them.
        """
        chosen = self.model_copy(update={"cores": number})
        asked = chosen.as_asked(self.testbed)
        return PlannedTestbed(
            lab=self.lab, testbed=asked, cores=number if self.lab else None
        )

    def as_asked(self, testbed: Testbed) -> Testbed:
        """``testbed``, which stands, with as many active cores as are asked for.

        Raises:
            InputError: nothing sets them.
        """
        if self.cores is None:
            return testbed
        command = testbed.hooks.set_cores
        if command is None:
            raise InputError(
                f"{testbed.name} has no hook set_cores, which sets the active cores",
                "add it to the testbed's hooks, or take the key cores out",
            )
        number = str(self.cores)
        words = [
            word.replace(CORES, number) if isinstance(word, str) else word
            for word in command.command
        ]
        set_now = command.model_copy(update={"command": words})
        hooks = testbed.hooks.model_copy(
            update={
                "before_campaign": [set_now, *testbed.hooks.before_campaign],
                "set_cores": None,
            }
        )
        device = testbed.device.model_copy(update={"cores": number})
        cores = "1 active core" if self.cores == 1 else f"{number} active cores"
        told = f"set to {cores} before the first trial"
        return testbed.model_copy(
            update={
                "name": self.name,
                "description": ", ".join(filter(None, [testbed.description, told])),
                "hooks": hooks,
                "device": device,
            }
        )


def check_testbeds(campaign: Campaign, names: Sequence[str]) -> None:
    """Each testbed is there once, procedures name no others, and all have work.

    Raises:
        CampaignError: they do not.
    """
    for problem in _problems(campaign, names):
        raise CampaignError(campaign.name, problem)


def _problems(campaign: Campaign, names: Sequence[str]) -> Iterator[Problem]:
    key = "lab" if campaign.testbed is None else "testbed"
    twice = repeated(names)
    if twice is not None:
        yield Problem(
            (key, twice),
            f"{names[twice]} is listed twice: testbeds are told apart by their names",
            "take one out; of a testbed, or change its key name",
        )
    for index, spec in enumerate(campaign.procedures):
        for number, name in enumerate(spec.testbeds):
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                listed = ", ".join(names)
                known = f"did you mean {near[0]}?" if near else f"it has {listed}"
                yield Problem(
                    ("procedures", index, "testbeds", number),
                    f"{name} is no testbed of this campaign; {known}",
                    f"correct it, or add it to the campaign's {key}",
                )
    for number, name in enumerate(names):
        if not any(spec.is_for(name) for spec in campaign.procedures):
            yield Problem(
                (key, number),
                f"{name} is in the testbeds of no procedure",
                "take it out, or add it to the testbeds of a procedure",
            )
