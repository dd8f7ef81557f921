"""When a trial has lost too much: what RFC 2544's "no frame is lost" is made to mean.

One value for all who judge, tell or compare by it; what is left at its default is the
RFC's own criterion.
"""

from __future__ import annotations

from dataclasses import dataclass

from dutperf.config.search_keys import GoalSpec


@dataclass(frozen=True)
class LossCriterion:
    """By what a trial, or a rate, counts as lossless.

    frame_timeout_ms: frames slower than this count as lost; None: no frame is too late.
    tolerance_percent: how much of a direction's frames may be lost.
    verify_trials: so many trials must lose frames until their rate fails.
    verified_percent: a trial that lost more fails at once; None: none does.
    goals: of MLRsearch (RFC 9971), the first of which gives the result.
    """

    frame_timeout_ms: float | None = None
    tolerance_percent: float = 0
    verify_trials: int | None = None
    verified_percent: float | None = None
    goals: tuple[GoalSpec, ...] = ()

    @property
    def by_the_book(self) -> bool:
        """Whether it is RFC 2544's, that of the first goal if there are any."""
        lossy = any(g.loss_percent or g.exceed_percent for g in self.goals[:1])
        late = self.frame_timeout_ms is not None
        return not (lossy or late or self.tolerance_percent or self.verify_trials)
