"""One thing of the tester's machine that may touch a result, as the doctor found it."""

from __future__ import annotations

from typing import Literal

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

CheckVerdict = Literal["good", "doubtful", "bad", "unknown"]
"""doubtful: it may be seen in results; bad: it will, or nothing can be measured."""

_OF_DELAYS_ALONE = ("idle_states", "counter_synchrony")
_OF_DELAYS = (
    *_OF_DELAYS_ALONE,
    "preemptions_cpu",
    "steal_time",
    "governor",
    "turbo",
    "smt_siblings",
    "isolated_cpus",
    "time_stamp_counter",
    "port_",
)


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class MachineCheck:
    """What was found, and unless that is good, why it matters and what to do.

    ``name`` is the same on each machine, so that records can be compared.
    """

    name: str
    verdict: CheckVerdict
    found: str
    why: str = ""
    cure: str = ""

    @property
    def touches_delays(self) -> bool:
        """Whether it may be seen in delays, too, and not in rates and losses alone."""
        return self.name.startswith(_OF_DELAYS)

    @property
    def touches_delays_alone(self) -> bool:
        """Whether rates and losses do not depend on it."""
        return self.name in _OF_DELAYS_ALONE

    @property
    def is_finding(self) -> bool:
        """Whether a reader of results should know it."""
        return self.verdict in ("doubtful", "bad")
