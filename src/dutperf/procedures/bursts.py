"""Frames in bursts (RFC 2544 21), or at a capture's own times: loads over time.

    |||||||                |||||||                |||||||
    n / L    a pause       n frames at the maximum rate L
    <------ n / R -------> from burst to burst, where the load is R

A modifier of whatever is measured: a procedure asks for trials at its loads as ever,
and each is sent in bursts. What a throughput finds is then the shortest interval
between bursts of which no frame is lost.

A capture's own times are stretched until their mean is the load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Literal

from dutperf.config.rate_sources import FEWEST_BURSTS
from dutperf.model.capture import Capture
from dutperf.model.cell import Cell
from dutperf.model.frames import version_of
from dutperf.model.rate_specs import RateSearchKeys
from dutperf.procedures.events import OnEvent
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.trials import Ask, Trials
from dutperf.protocol.base import IpVersion
from dutperf.protocol.result_messages import (
    DirectionResult,
    Reason,
    TrialResult,
    Verdict,
)
from dutperf.protocol.stream_messages import RateStep
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results.model import CellResult
from dutperf.results.rate_results import Derived
from dutperf.results.trial_record import TrialRecord
from dutperf.results.units import duration
from dutperf.standards import Deviation
from dutperf.stats import percentile_bounds

_RFC = "RFC 2544 21"
_MOST_IN_A_PERIOD = 64
_NS = 10**9
_PERCENTILE = 90
"""Of how late frames left: of most bursts their end is among the others."""
_LATE = Fraction(1, 4)
_WITH_FRAME_NS = 1000
_AT_ONCE_NS = 50_000
"""A burst as a whole may leave so much later: the sender was at something else."""


def burst_steps(frames: int, rate_fps: int, peak_fps: int) -> list[RateStep]:
    """Bursts of ``frames`` at ``peak_fps`` that are ``rate_fps`` on average.

    Steps last whole nanoseconds. So that the average is exact all the same, a period
    has as many bursts as fit whole nanoseconds best, each begun to the nearest one.

    Returns:
        Steps of one period; none where the load leaves no pause.
    """
    each = Fraction(frames * _NS, rate_fps)
    burst_ns = round(Fraction(frames * _NS, peak_fps))
    if burst_ns >= int(each):
        return []
    count = min(range(1, _MOST_IN_A_PERIOD + 1), key=lambda n: _off(n * each) / n)
    begins = [round(number * each) for number in range(count + 1)]
    steps = []
    for begin_ns, next_ns in pairwise(begins):
        pause_ns = next_ns - begin_ns - burst_ns
        steps.append(RateStep(rate_fps=peak_fps, duration_ns=burst_ns))
        steps.append(RateStep(rate_fps=0, duration_ns=pause_ns))
    return steps


def captured_steps(
    capture: Capture, version: IpVersion, rate_fps: int
) -> list[RateStep]:
    """A short step for each frame, and a pause until the next one is due.

    From the last frame on it is a mean gap until the first is sent again. At the
    capture's own rate, rounded, times are its own; else all are stretched alike. Frames
    of the same time are a nanosecond apart, and of two directions one is half a
    microsecond later.
    """
    times_ns = [frame.at_ns for frame in capture.of(version)]
    own_fps = capture.own_fps(version)
    assert own_fps  # noqa: S101 - checked with the cell
    stretch = Fraction(1) if round(own_fps) == rate_fps else own_fps / rate_fps
    after_ns = [Fraction(at_ns - times_ns[0]) for at_ns in times_ns]
    begins: list[int] = []
    for at_ns in [*after_ns, len(times_ns) * _NS / own_fps]:
        begins.append(max(round(at_ns * stretch), begins[-1] + 1) if begins else 0)
    steps = []
    for begin_ns, next_ns in pairwise(begins):
        gap_ns = next_ns - begin_ns
        with_frame_ns = min(gap_ns, _WITH_FRAME_NS)
        one = RateStep(rate_fps=round(_NS / with_frame_ns), duration_ns=with_frame_ns)
        steps.append(one)
        if gap_ns > with_frame_ns:
            steps.append(RateStep(rate_fps=0, duration_ns=gap_ns - with_frame_ns))
    return steps


def _off(time_ns: Fraction) -> Fraction:
    """From a whole number of nanoseconds."""
    return abs(time_ns - round(time_ns))


@dataclass(frozen=True)
class Bursts:
    """Of ``frames`` at ``peak_fps``: what is sent, and whether it was.

    ``searched``: it is asked only whether frames are lost. Then a loss stands, as real
    bursts, or more of them, are harder on the device; else it is a figure, too.
    """

    frames: int
    peak_fps: int
    searched: bool

    def steps_of(self, rate_fps: int) -> list[RateStep]:
        """One period of a load; none where it leaves no pause."""
        return burst_steps(self.frames, rate_fps, self.peak_fps)

    def judged(self, result: TrialResult, ask: Ask) -> TrialResult:
        """Invalid where bursts were none, or too few."""
        kind = result.verdict.kind
        if kind == "invalid" or ask.rate_fps >= self.peak_fps:
            return result
        if self.searched and kind == "fail":
            return result
        reasons = [*self._stretched(result), *self._too_few(result, ask)]
        if not reasons:
            return result
        verdict = Verdict(kind="invalid", reasons=[*reasons, *result.verdict.reasons])
        return result.model_copy(update={"verdict": verdict})

    def _stretched(self, result: TrialResult) -> Iterator[Reason]:
        """Bursts that took longer were no such bursts, and easier on the device."""
        burst_ns = self.frames * _NS // self.peak_fps
        for direction, late_ns in _late(result, Fraction(burst_ns)):
            yield Reason(
                code="sender_lag",
                message=f"{direction.name}: most bursts took longer than "
                f"{duration(burst_ns, 3)}: at their end frames left "
                f"{duration(late_ns, 3)} late",
                hint="the tester does not send so fast while frames come back: "
                "lower the rate of the bursts (--max-rate)",
            )

    def _too_few(self, result: TrialResult, ask: Ask) -> Iterator[Reason]:
        sent = min(
            sum(stream.sent for stream in direction.streams)
            for direction in result.directions
        )
        if sent < FEWEST_BURSTS * self.frames:
            yield Reason(
                code="too_short",
                message=f"a trial at {ask.rate_fps:,} fps has {sent:,} frames, less "
                f"than {FEWEST_BURSTS} bursts of {self.frames:,}: nothing is known of "
                "the interval between them",
                hint="raise the rate, or trial_duration_s (--trial-duration)",
            )


def _late(
    result: TrialResult, of_ns: Fraction
) -> Iterator[tuple[DirectionResult, int]]:
    """Directions whose frames left late by much of such a time, and by how much."""
    for direction in result.directions:
        if not direction.lag_ns.count:
            continue
        late_ns = percentile_bounds(direction.lag_ns.buckets, _PERCENTILE)[0]
        if late_ns > _AT_ONCE_NS + of_ns * _LATE:
            yield direction, late_ns


def _at_their_times(result: TrialResult, ask: Ask) -> TrialResult:
    """Invalid where the capture's times were not kept."""
    if result.verdict.kind == "invalid":
        return result
    reasons = [
        Reason(
            code="sender_lag",
            message=f"{direction.name}: frames left {duration(late_ns, 3)} after the "
            "capture's times, and later",
            hint="the tester does not send so fast: lower the rate",
        )
        for direction, late_ns in _late(result, Fraction(_NS, ask.rate_fps))
    ]
    if not reasons:
        return result
    verdict = Verdict(kind="invalid", reasons=[*reasons, *result.verdict.reasons])
    return result.model_copy(update={"verdict": verdict})


def beside_bursts(result: CellResult, cell: Cell, peak: MaxRate) -> CellResult:
    """``result`` with what it says of bursts, if ``cell`` is measured in such."""
    frames = cell.traffic.burst_frames
    if frames is None:
        return result
    told = {"burst_frames": frames, "burst_rate_fps": peak.rate_fps}
    found = cell.family == "rate search"
    return result.model_copy(
        update={
            "quantity": f"{result.quantity}, in bursts of {frames:,} ({_RFC})",
            "parameters": result.parameters | told,
            "deviations": [*result.deviations, *_short_of(peak)],
            "derived": _intervals(result, frames, peak.rate_fps) if found else [],
        }
    )


def _intervals(result: CellResult, frames: int, peak_fps: int) -> list[Derived]:
    """Of a throughput: from burst to burst, and the pause between two."""
    each_s = frames / result.median if result.median else None
    pause_s = None if each_s is None else max(0.0, each_s - frames / peak_fps)
    bound: Literal["upper"] | None = "upper" if result.bound else None
    return [
        Derived(
            name="burst interval",
            meaning=f"Shortest time from burst to burst without loss ({_RFC}).",
            value=each_s,
            unit="s",
            bound=bound,
        ),
        Derived(
            name="pause between bursts",
            meaning="The same from the end of one to the begin of the next.",
            value=pause_s,
            unit="s",
            bound=bound,
        ),
    ]


def _short_of(peak: MaxRate) -> Iterator[Deviation]:
    if peak.bound_cause:
        rule = "bursts with the minimum gap between frames"
        actual = f"bursts at {peak.rate_fps:,} fps, {peak.words}"
        yield Deviation(_RFC, rule, actual, "text")


# Trials whose load changes while they last: a procedure asks for them as for others.
#
# The engine's schedule of steps is the only one; here is who says what the steps are.


StepsOf = Callable[[int], list[RateStep]]
"""Of a load: the steps of a period; none where it is steady."""
JudgedBy = Callable[[TrialResult, Ask], TrialResult]


def shaped_trials(runner: Trials, cell: Cell, peak: MaxRate) -> Trials:
    """``runner``, whose trials are as the cell's traffic says.

    ``peak``: the rate of frames within a burst.
    """
    frames, shape = cell.traffic.burst_frames, cell.traffic.load_shape
    if frames is not None:
        searched = isinstance(cell.spec, RateSearchKeys)
        bursts = Bursts(frames, peak.rate_fps, searched)
        return _ShapedTrials(runner, bursts.steps_of, bursts.judged)
    if shape is not None:
        return _ShapedTrials(runner, shape.of_load, _as_it_is)
    capture = cell.traffic.pcap
    if capture and capture.times == "original":
        steps_of = partial(captured_steps, capture, version_of(cell.ip, "left"))
        return _ShapedTrials(runner, steps_of, _at_their_times)
    return runner


def with_steps(request: TrialRequest, steps: Sequence[RateStep]) -> TrialRequest:
    """``request`` with this load in all directions; a steady one without ``steps``."""
    if not steps:
        return request
    changed = {"steps": steps, "rate_fps": max(step.rate_fps for step in steps)}
    directions = [d.model_copy(update=changed) for d in request.directions]
    return request.model_copy(update={"directions": directions})


def _as_it_is(result: TrialResult, _ask: Ask) -> TrialResult:
    return result


@dataclass(frozen=True)
class _ShapedTrials:
    """See ``Trials``."""

    runner: Trials
    steps_of: StepsOf
    judge: JudgedBy

    @property
    def on_event(self) -> OnEvent:
        return self.runner.on_event

    @property
    def finished(self) -> int:
        return self.runner.finished

    def run(self, ask: Ask) -> TrialRecord:
        steps = self.steps_of(ask.rate_fps)

        def shape(request: TrialRequest) -> TrialRequest:
            return with_steps(ask.shape(request) if ask.shape else request, steps)

        def judged(result: TrialResult, *, again: bool) -> TrialResult:
            told = ask.rejudge(result, again=again) if ask.rejudge else result
            return self.judge(told, ask)

        return self.runner.run(replace(ask, shape=shape, rejudge=judged))
