"""What the trials of one search say, once more: the end of a search by its trials.

A search is not made again: whatever order its trials came in, the highest rate that
passed is the result, and what became of the lowest rate above it says why it ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

from dutperf.evidence import accounting
from oracle import formulas, records

Json = dict[str, Any]
_CLASSIC_REPEATS = 4


class Asked(NamedTuple):
    """A trial that counts for a search or load, as it was judged; loads in fps."""

    load_fps: int
    repeat: int
    kind: str
    trial: Json

    @property
    def seconds(self) -> Fraction:
        """How long it was to last."""
        return records.seconds(self.trial)


class Limit(NamedTuple):
    """The most that a search may ask for; ``cause``: why a device may do more."""

    fps: int
    cause: str | None


class Repeat(NamedTuple):
    """One repeat, as it is stored, and the rate that ended it."""

    value: float | None
    verdict: str
    bound: str | None = None
    bound_cause: str | None = None
    trials: int | None = None
    upper: int | None = None

    def as_stored(self) -> Json:
        """With those keys that are figures."""
        return {key: v for key, v in self._asdict().items() if key != "upper"}


class End(NamedTuple):
    """Where a search ended: rates that passed and did not, and why."""

    lower: int | None
    upper: int | None
    why: str
    """found, passed, nothing, tester or unstable."""
    at: Sequence[Asked] = ()
    """The trials at the upper rate."""


def ended(asked: Sequence[Asked]) -> End:
    """By the highest rate that passed, and the last word on the lowest above it."""
    lower = max((a.load_fps for a in asked if a.kind == "pass"), default=None)
    above = [a for a in asked if lower is None or a.load_fps > lower]
    if not above:
        return End(lower, None, "passed")
    upper = min(a.load_fps for a in above)
    at = [a for a in above if a.load_fps == upper]
    if at[-1].kind == "fail":
        return End(lower, upper, "found" if lower else "nothing", at)
    limits = sum(records.could_not_offer(a.trial) for a in at if a.kind == "invalid")
    return End(lower, upper, "tester" if limits > 1 else "unstable", at)


def is_closed(end: End, resolution: str) -> bool:
    """Whether its rates are as close as was asked for."""
    lower, upper = end.lower or 0, end.upper
    if upper is None:
        return True
    return upper - lower <= max(Fraction(1), formulas.width_at(resolution, upper))


def concluded(
    asked: Sequence[Asked], resolution: str, limit: Limit, *, offers: bool = True
) -> Repeat:
    """One repeat by its trials.

    ``offers``: what the tester could not offer ends a search, too; else such trials
    only tell nothing.
    """
    end = ended(asked)
    why = end.why if offers or end.why != "tester" else "unstable"
    if why in ("found", "nothing") and not is_closed(end, resolution):
        why = "unstable"  # it was given up
    verdict, bound, cause = judged(why, end, asked, limit)
    value = 0 if why == "nothing" else end.lower
    return Repeat(value, verdict, bound, cause, len(asked), end.upper)


def judged(
    why: str, end: End, asked: Sequence[Asked], limit: Limit
) -> tuple[str, str | None, str | None]:
    """Verdict, and whether the value is a lower bound and why."""
    known = end.lower is not None
    match why:
        case "passed":
            return "pass", "lower" if limit.cause else None, limit.cause
        case "tester":
            held = any("held_back" in _why_invalid(a) for a in asked)
            cause = "held_back" if held else "tester"
            told = ("lower", cause) if known else (None, None)
            return "pass" if known else "invalid", *told
        case "unstable":
            spoilt = [a for a in end.at if a.kind == "invalid"]
            spoilt = spoilt or [a for a in asked if a.kind == "invalid"]
            others = bool(spoilt) and records.disturbed(spoilt[-1].trial)
            bound = (
                ("lower", "disturbed" if others else None) if known else (None, None)
            )
            return "pass" if end.lower and others else "invalid", *bound
        case _:
            return "pass" if why == "found" else "fail", None, None


def _why_invalid(asked: Asked) -> set[str]:
    return accounting.codes(asked.trial) if asked.kind == "invalid" else set()


# --- repeats together


def overall(
    repeats: Sequence[Repeat], rounding: formulas.Rounding = formulas.EXACT
) -> Json:
    """The median, and what RFC 8219 12 wants beside it."""
    known = [(r.value, r.bound is not None, r) for r in repeats if r.value is not None]
    values = [float(value) for value, _, _ in known]
    spread = formulas.spread(values, [bound for _, bound, _ in known], rounding)
    verdicts = {repeat.verdict for repeat in repeats}
    valid = "pass" if "pass" in verdicts else "fail"
    told: Json = {
        "median": spread["median"] if spread else None,
        "bound": None,
        "bound_cause": None,
        "repeats": [repeat.as_stored() for repeat in repeats],
        "verdict": "invalid" if "invalid" in verdicts else valid,
        "spread": spread,
    }
    if spread and "median" in spread["lower_bounds"]:
        middle = sorted(values)[len(values) // 2]
        near = [(v, r.bound_cause) for v, b, r in known if b and v <= middle]
        most = max(value for value, _ in near)
        causes = [cause for value, cause in near if value == most]
        cause = next((cause for cause in causes if cause), None)
        told |= {"bound": "lower", "bound_cause": cause}
    return told


def averaged(repeats: Sequence[Repeat], width: float) -> Json:
    """The average instead, and its own interval (RFC 9004 6.3)."""
    told = overall(repeats)
    values = [float(r.value) for r in repeats if r.value is not None]
    bounded = [repeat for repeat in repeats if repeat.bound]
    told["median"] = formulas.mean(values) if values else None
    told["bound"] = "lower" if bounded else None
    told["bound_cause"] = bounded[0].bound_cause if bounded else None
    if told["spread"]:
        ends = None
        if not bounded:
            ends = formulas.mean_interval(values, Fraction(95, 100))
        told["spread"] |= {
            "interval_lower": max(0.0, ends[0]) if ends else None,
            "interval_upper": ends[1] + width if ends else None,
            "interval_percent": 95.0 if ends else None,
            "lower_bounds": [
                name
                for name in told["spread"]["lower_bounds"]
                if not name.startswith("interval")
            ],
        }
    return told


def without_withdrawn(
    settings: Json, repeats: list[Repeat], searched: list[list[Asked]]
) -> tuple[list[Repeat], list[list[Asked]], Json | None]:
    """Narrowed repeats that one of them contradicted do not count (docs/repeats.md)."""
    ends = [(r.value, r.upper) for r in repeats]
    whole = all(
        r.value and r.upper and r.verdict == "pass" and not r.bound
        for r in repeats[:_CLASSIC_REPEATS]
    )
    narrowed = (
        settings.get("search") in ("narrowed", "verified")
        and whole
        and len(set(ends[:_CLASSIC_REPEATS])) == 1
    )
    begin = _CLASSIC_REPEATS
    for number in range(begin, len(repeats)) if narrowed else []:
        found = repeats[number]
        same = ends[number] == ends[0] and found.verdict == "pass" and not found.bound
        if same:
            continue
        gone = slice(begin, number + 1)
        told = {
            "repeats": list(range(begin + 1, number + 2)),
            "trials": sum(len(each) for each in searched[gone]),
        }
        del repeats[gone], searched[gone]
        return repeats, searched, told
    return repeats, searched, None


# --- MLRsearch (RFC 9971)


def goals_of(settings: Json) -> list[formulas.Goal]:
    """As given, "loss%:exceeded%:seconds, ..."; never narrower than a loss."""
    trial_s = float(settings["trial_duration_s"])
    width = float(formulas.width_at(settings["resolution"], 1))
    found = []
    for text in settings["goals"].split(", "):
        loss, exceed, sum_s = (float(part.rstrip("%s")) for part in text.split(":"))
        found.append(
            formulas.Goal(
                loss / 100, exceed / 100, sum_s, trial_s, max(width, loss / 100)
            )
        )
    return found


def mlr_goals(
    asked: Sequence[Asked], settings: Json, limit: Limit
) -> tuple[Repeat, list[Json]]:
    """The relevant bounds of each goal; the first one's is the repeat's value."""
    told, first = [], None
    for goal in goals_of(settings):
        end, forwarded = _relevant(goal, asked)
        verdict, bound, cause = judged(end.why, end, asked, limit)
        regular = end.why == "found"
        told.append(
            {
                "loss_ratio": goal.loss,
                "exceed_ratio": goal.exceed,
                "final_duration_s": goal.final_s,
                "duration_sum_s": goal.sum_s,
                "initial_duration_s": min(1.0, goal.final_s),
                "width": goal.width,
                "lower_fps": end.lower,
                "upper_fps": end.upper,
                "conditional_fps": forwarded,
                "regular": regular,
                "bound": bound,
                "bound_cause": cause,
                "verdict": verdict,
            }
        )
        first = first or Repeat(end.lower, verdict, bound, cause, len(asked), end.upper)
    assert first is not None, "MLRsearch has goals"
    return first, told


def _relevant(goal: formulas.Goal, asked: Sequence[Asked]) -> tuple[End, int | None]:
    """RFC 9971: the lowest upper bound, the highest lower bound below it."""
    current, gave_up = _since_limit(asked)
    by_load: dict[int, list[tuple[float, float]]] = {}
    for each in current:
        if each.kind != "invalid":
            # As counts of 10^15 frames, which is how the search has them.
            loss = round(records.loss_ratio(each.trial) * 10**15) / 10**15
            by_load.setdefault(each.load_fps, []).append((float(each.seconds), loss))
    classes = {load: goal.classify(trials) for load, trials in by_load.items()}
    uppers = [load for load, kind in classes.items() if kind == "upper"]
    upper = min(uppers, default=None)
    lowers = [
        load
        for load, kind in classes.items()
        if kind == "lower" and (upper is None or load < upper)
    ]
    lower = max(lowers, default=None)
    forwarded = None
    if lower is not None:
        forwarded = int(lower * goal.forwarded_share(by_load[lower]))
    at = [a for a in asked if a.kind == "invalid"][-1:]
    return End(lower, upper, _why(goal, lower, upper, gave_up), at), forwarded


def _why(
    goal: formulas.Goal, lower: int | None, upper: int | None, gave_up: str | None
) -> str:
    if lower is not None and upper is not None:
        close = upper - lower <= Fraction(goal.width) * upper
        return "found" if close else "unstable"
    if upper is None:
        return gave_up or "passed"
    return "unstable" if gave_up == "unstable" else "nothing"


def _since_limit(asked: Sequence[Asked]) -> tuple[Sequence[Asked], str | None]:
    """It begins anew below what the tester cannot offer; and how it was given up."""
    begin, gave_up = 0, None
    for place, each in enumerate(asked):
        last_there = (
            place + 1 == len(asked) or asked[place + 1].load_fps != each.load_fps
        )
        if each.kind != "invalid" or not last_there:
            continue
        at = place
        while at and asked[at - 1].load_fps == each.load_fps:
            at -= 1
        limits = [a for a in asked[at : place + 1] if records.could_not_offer(a.trial)]
        most = max((records.offered_fps(a.trial) for a in limits), default=0)
        # What it had offered before it can offer: it was kept from it now.
        before = max((a.load_fps for a in asked[:at] if a.kind != "invalid"), default=0)
        gave_up = "tester" if len(limits) > 1 and most > before else "unstable"
        begin = place + 1 if asked[place + 1 :] else begin
    return asked[begin:], gave_up
