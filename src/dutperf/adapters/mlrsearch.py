"""dutperf as what the package MLRsearch measures with (RFC 9971 4.2).

    with dutperf.Tester(lab="linux-router") as tester:
        with tester.traffic(ip=4, frame_size=64) as traffic:
            found = MultipleLossRatioSearch(config).search(Measurer(traffic), debug)

Loads are of each direction, counts of all directions together, as the package has them.
"""

from __future__ import annotations

import time

from MLRsearch import AbstractMeasurer, MeasurementResult

from dutperf.api import SetupError, Traffic, Trial

_ATTEMPTS = 3
_NOT_OFFERED = "sender_behind"


class Measurer(AbstractMeasurer):  # type: ignore[misc] # the package has no types
    """Measures trials of open traffic.

    A trial that tells nothing of the device is run again. One in which the tester could
    not send all is told as it is: the package takes what was not sent for lost, so the
    load counts as out of reach, which does not make it the device's limit.

    Args:
        traffic: what is sent; of its trials MLRsearch chooses load and duration.
        attempts: how often one is run at most.
    """

    def __init__(self, traffic: Traffic, attempts: int = _ATTEMPTS) -> None:
        self._traffic = traffic
        self._attempts = attempts
        self.trials: list[Trial] = []
        """All of them, in their order."""

    def measure(
        self, intended_duration: float, intended_load: float
    ) -> MeasurementResult:
        """One trial at the whole rate next to ``intended_load``, frames a second.

        Raises:
            SetupError: it stayed invalid, for what is not the load.
            InputError: the load is more than may be offered.
        """
        begun_s = time.monotonic()
        trial = self._traffic.trial(
            max(1, round(intended_load)), intended_duration, attempts=self._attempts
        )
        self.trials.append(trial)
        codes = {reason.code for reason in trial.reasons}
        if trial.verdict == "invalid" and _NOT_OFFERED not in codes:
            raise SetupError(
                f"{self._attempts} trials at {trial.rate_fps:,} fps tell nothing: "
                + "; ".join(reason.message for reason in trial.reasons),
                "; ".join(dict.fromkeys(r.hint for r in trial.reasons if r.hint)),
            )
        elapsed_s = time.monotonic() - begun_s
        return MeasurementResult(
            intended_duration=intended_duration,
            intended_load=intended_load,
            offered_count=trial.sent,
            loss_count=trial.lost_by_device,
            # A simulated trial takes no time, and the package weighs trials by theirs.
            duration_with_overheads=max(elapsed_s, intended_duration),
            intended_count=trial.intended,
        )
