"""Open traffic: trials of it at once, one after the other, and searches made of them.

Testbed, engine, ports and next hops are ready while it is open, so that a trial takes
its own time and little more. Nothing is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.rate_specs import RateSearchKeys
from dutperf.procedures.loss_criterion import missing, own_drops
from dutperf.procedures.searching import (
    NoUseError,
    SearchTrials,
    check_range,
    strategy_of,
)
from dutperf.procedures.trials import Ask, fails_beside_loss
from dutperf.protocol.result_messages import Reason, VerdictKind
from dutperf.results.trial_record import TrialRecord
from dutperf.run.stream_counts import DirectionCounts
from dutperf.run.streaming import OpenStream, check_rate, name_of
from dutperf.search import Conclusion, attempted
from dutperf.search.mlr import GoalBounds

OF_FRAMES = ("ip", "frame_size", "direction", "traffic", "stateful")
"""Keys of what is in the frames: open traffic has its own, and keeps them."""
_LEAST_S, _MOST_S = 0.01, 86_400


@dataclass(frozen=True)
class Trial:
    """One trial, judged.

    Attributes:
        rate_fps: intended load, frames a second and direction.
        duration_s: for which it was to send.
        verdict: pass; fail: the device lost frames; invalid: it tells nothing.
        reasons: for the verdict, each with ``code``, ``message`` and ``hint``.
        directions: what became of the frames of each, by its name: see
            ``DirectionCounts``.
        lost_by_device: frames of all directions, late ones as well, without what the
            tester's own ports dropped; all that were sent where the trial failed by
            more than loss (duplicates): no tolerance is for that.
        loss_percent: that of what was sent.
        record: all that is known, as a line of ``journal.jsonl`` has it.
    """

    rate_fps: int
    duration_s: float
    verdict: VerdictKind
    reasons: Sequence[Reason]
    directions: dict[str, DirectionCounts]
    loss_percent: float
    lost_by_device: int
    record: TrialRecord = field(repr=False)

    @classmethod
    def of(cls, record: TrialRecord) -> Trial:
        """The trial of a line of a journal."""
        result = record.result
        sent = sum(s.sent for d in result.directions for s in d.streams)
        lost = sum(max(missing(d) - own_drops(result, d), 0) for d in result.directions)
        if fails_beside_loss(result.verdict):
            lost = sent
        return cls(
            rate_fps=record.load_fps,
            duration_s=record.request.duration_ns / 1e9,
            verdict=result.verdict.kind,
            reasons=tuple(result.verdict.reasons),
            directions={
                each.name: DirectionCounts.of(result, each)
                for each in result.directions
            },
            loss_percent=lost * 100 / sent if sent else 0.0,
            lost_by_device=lost,
            record=record,
        )

    @property
    def intended(self) -> int:
        """Frames that were to be sent, all directions."""
        streams = [s for d in self.record.result.directions for s in d.streams]
        return sum(stream.intended for stream in streams)

    @property
    def sent(self) -> int:
        """Frames of all directions; so for the others."""
        return sum(each.sent for each in self.directions.values())

    @property
    def received(self) -> int:  # noqa: D102
        return sum(each.received for each in self.directions.values())

    @property
    def lost(self) -> int:  # noqa: D102
        return sum(each.lost for each in self.directions.values())


@dataclass(frozen=True)
class Found:
    """What a search found.

    Attributes:
        rate_fps: the highest rate that passed; None: none did.
        upper_fps: the lowest above it that is out of reach; None: the highest passed.
        conclusion: found; max_rate_passed: the device may do more; tester_limited: so
            it may, the tester does not; nothing_passed; unstable: trials at
            ``upper_fps`` stayed invalid. Only of ``found`` the rate is the device's.
        reasons: why the last trials were invalid, if they were.
        goals: with ``search="mlrsearch"`` the bounds of each goal (RFC 9971).
        trials: all, in their order.
    """

    rate_fps: int | None
    upper_fps: int | None
    conclusion: Conclusion
    reasons: Sequence[Reason]
    goals: Sequence[GoalBounds]
    trials: Sequence[Trial]


class Traffic:
    """Frames that are ready to be sent; ``Tester.traffic`` opens it.

    Args:
        stream: the open testbed.
        cell_with: the cell of these frames with further keys of a campaign.
    """

    def __init__(
        self, stream: OpenStream, cell_with: Callable[[dict[str, Any]], Cell]
    ) -> None:
        self._stream = stream
        self._cell_with = cell_with

    @property
    def name(self) -> str:
        """What its frames are, such as ``ip4-64-both``."""
        return name_of(self._stream.cell)

    @property
    def max_rate_fps(self) -> int:
        """The highest rate of a direction: what was set, else the media's."""
        return self._stream.limit.rate_fps

    def trial(
        self, rate_fps: int, duration_s: float = 1.0, *, attempts: int = 1
    ) -> Trial:
        """Send at one rate, wait for late frames, judge.

        Args:
            rate_fps: whole frames a second, each direction.
            duration_s: 0.01 to 86,400.
            attempts: how often it is run at most while it is invalid.

        Raises:
            InputError: nothing can be sent so; nothing was.
            SetupError: device or engine are not as needed.
        """
        check_whole("rate_fps", rate_fps)
        check_whole("attempts", attempts)
        check_rate(rate_fps, self._stream.limit, "rate_fps")
        check_duration(duration_s)
        ask = Ask(self._stream.cell, rate_fps, duration_s=duration_s, attempts=attempts)
        records = (self._stream.trials.run(ask) for _ in range(attempts))
        return Trial.of(attempted(records, _was_invalid)[-1])

    def find(self, **keys: object) -> Found:
        """Search the highest rate that passes: one repeat of a throughput search.

        Args:
            keys: those of a campaign that say how: ``search``, ``goals``,
                ``resolution``, ``trial_duration_s``, ``loss_tolerance_percent``, ...

        Raises:
            InputError: a key is wrong, or is one of the frames'; nothing was sent.
            SetupError: device or engine are not as needed.
        """
        for key in OF_FRAMES:
            if key in keys:
                raise InputError(
                    f"{key}: open traffic keeps its frames",
                    "open other traffic with it",
                    key,
                )
        cell, limit = self._cell_with(keys), self._stream.limit
        highest_fps = cell.spec_of(RateSearchKeys).max_rate_fps or limit.rate_fps
        check_rate(highest_fps, limit, "max_rate_fps")
        check_range(cell, replace(limit, rate_fps=highest_fps))
        trials = SearchTrials(self._stream.trials, cell, repeat=1)
        search = strategy_of(cell, highest_fps)
        try:
            found = search(trials.measure, trials.on_step)
        except NoUseError:
            return _found(trials, trials.passed_fps, None, "unstable")
        result = found.result
        return _found(
            trials, result.rate_fps, result.upper_fps, result.conclusion, found.goals
        )


def _found(
    trials: SearchTrials,
    rate_fps: int | None,
    upper_fps: int | None,
    conclusion: Conclusion,
    goals: Sequence[GoalBounds] = (),
) -> Found:
    tells = conclusion in ("unstable", "tester_limited")
    return Found(
        rate_fps=rate_fps,
        upper_fps=upper_fps,
        conclusion=conclusion,
        reasons=tuple(trials.troubles.at(upper_fps)) if tells else (),
        goals=goals,
        trials=tuple(Trial.of(asked.record) for asked in trials.asked),
    )


def check_duration(duration_s: float, least_s: float = _LEAST_S) -> None:
    """Refuse what no trial can last.

    Raises:
        InputError: it is that.
    """
    number = isinstance(duration_s, int | float) and not isinstance(duration_s, bool)
    if not number or not least_s <= duration_s <= _MOST_S:
        raise InputError(
            f"duration_s: {duration_s!r} is no duration of a trial",
            f"give {least_s:g} to {_MOST_S:,} seconds",
            "duration_s",
        )


def check_whole(name: str, value: object) -> None:
    """Refuse what is no whole number of 1 or more, of the argument ``name``.

    Raises:
        InputError: it is that.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name}: {value!r} is no whole number of 1 or more", "", name)


def _was_invalid(tried: Sequence[TrialRecord]) -> bool:
    return tried[-1].result.verdict.kind == "invalid"
