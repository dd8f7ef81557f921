"""Where a cell does less than the standards ask for; goes into the report.

RFC 9971 wants every shorter wait described; RFC 2544 24 lets a search use shorter
trials. So nothing here is refused, and nothing is left unsaid.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from dutperf.config.campaign import Cell
from dutperf.config.flows import directions
from dutperf.config.sizes import cell_versions

_TTL = 10
_LARGEST_STEP_PERCENT = 10
_REPEATS = 20
_TAGS = 500
_FIRST_TAG_S = 60


class Shortfall(NamedTuple):
    """One point: the RFC's section, what it asks for, what the cell does."""

    rfc: str
    requirement: str
    actual: str


def deviations(cell: Cell) -> list[tuple[str, str, str]]:
    """All points in which ``cell`` does less than RFC 2544 and RFC 8219 ask for."""
    found = [*_times(cell), *_direction(cell), *_frames(cell)]
    if cell.procedure == "frame-loss":
        found += _loads(cell.load_percent)
    return [*found, *_load(cell), *_repeats(cell), *_tags(cell), *_judgement(cell)]


_DELAYS = {
    "latency": "RFC 8219 7.2",
    "pdv": "RFC 8219 7.3.1",
    "ipdv": "RFC 8219 7.3.2",
}


def _load(cell: Cell) -> list[tuple[str, str, str]]:
    """RFC 8219 12: the throughput is the median of its repeats."""
    if cell.rate_fps is None or (cell.found_rate and cell.found_rate.plain):
        return []
    rfc = "RFC 2544 26.2" if cell.legacy else _DELAYS[cell.procedure]
    given = cell.rate_fps
    actual = f"at {given:,} fps, as given" if isinstance(given, int) else f"at {given}"
    return [Shortfall(rfc, "load at the throughput rate", actual)]


def _repeats(cell: Cell) -> list[tuple[str, str, str]]:
    rfc = "RFC 2544 26.2" if cell.legacy else _DELAYS.get(cell.procedure)
    if rfc is None or cell.repeats >= _REPEATS:
        return []
    actual = f"{cell.repeats} instead of at least {_REPEATS}"
    return [Shortfall(rfc, f"at least {_REPEATS} repeats", actual)]


def _tags(cell: Cell) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    rfc = "RFC 2544 26.2" if cell.legacy else "RFC 8219 7.2"
    if cell.tags is not None and cell.tags < _TAGS and not cell.legacy:
        actual = f"{cell.tags} instead of at least {_TAGS}"
        found.append(Shortfall(rfc, f"at least {_TAGS} tagged frames", actual))
    if cell.first_tag_s is not None and cell.first_tag_s < _FIRST_TAG_S:
        rule = f"first tagged frame after {_FIRST_TAG_S} s"
        found.append(Shortfall(rfc, rule, f"after {cell.first_tag_s:.12g} s"))
    return found


def _judgement(cell: Cell) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    rfc = "RFC 2544 26.1" if cell.procedure == "throughput" else "RFC 2544 26.3"
    if cell.frame_timeout_ms is not None:
        rule = "frames count as received however late they are"
        actual = f"frames slower than {cell.frame_timeout_ms:.12g} ms count as lost"
        found.append(Shortfall(rfc, rule, actual))
    if cell.loss_tolerance_percent:
        lost = f"up to {cell.loss_tolerance_percent:.12g} % of a direction's frames"
        found.append(Shortfall(rfc, "no frame is lost", f"{lost} may be lost"))
    return [*found, *_search(cell)]


def _search(cell: Cell) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    if cell.verify_trials is not None:
        rule = "the rate is lowered when fewer frames come out"
        actual = f"only when that happened in {cell.verify_trials} trials"
        found.append(Shortfall("RFC 2544 26.1", rule, actual))
    for goal in cell.goals:
        lost, exceed = f"{goal.loss_percent:.12g}", f"{goal.exceed_percent:.12g}"
        actual = f"a goal lets {lost} % be lost"
        if goal.exceed_percent:
            actual += f", and more in {exceed} % of the time"
        if goal.loss_percent or goal.exceed_percent:
            found.append(Shortfall("RFC 2544 26.1", "no frame is lost", actual))
    return found


def _times(cell: Cell) -> list[tuple[str, str, str]]:
    wanted = [
        _duration(cell),
        ("RFC 2544 23", "wait after learning frames", cell.settle_wait_s, 2),
        ("RFC 2544 23", "wait for late frames", cell.residual_wait_s, 2),
        ("RFC 2544 23", "wait between trials", cell.restabilise_wait_s, 5),
    ]
    return [
        Shortfall(
            rfc,
            f"{what} of at least {least} s",
            f"{is_s:.12g} s instead of at least {least} s",
        )
        for rfc, what, is_s, least in wanted
        if is_s < least
    ]


def _duration(cell: Cell) -> tuple[str, str, float, int]:
    least = ("RFC 2544 24", 60)
    if cell.procedure == "latency":
        least = ("RFC 2544 26.2" if cell.legacy else "RFC 8219 7.2", 120)
    return least[0], "trial duration", cell.trial_duration_s, least[1]


def _direction(cell: Cell) -> list[tuple[str, str, str]]:
    if cell.direction == "both":
        return []
    return [
        Shortfall(
            "RFC 8219 5.3, RFC 2544 14",
            "bidirectional traffic",
            f"{cell.direction} direction only",
        )
    ]


def _frames(cell: Cell) -> list[tuple[str, str, str]]:
    traffic = cell.traffic
    found = _ports(cell)
    if traffic.df and 4 in cell_versions(cell):
        found.append(Shortfall("RFC 2544 C.2.6.4", "IPv4 flags 0", "DF set"))
    if traffic.ignore_checksums:
        found.append(
            Shortfall("RFC 1242 3.17", "checksums of received frames", "not verified")
        )
    if traffic.ttl != _TTL:
        actual = f"{traffic.ttl} instead of {_TTL}"
        found.append(Shortfall("RFC 2544 C.2.6.4", "time to live 10", actual))
    return found


def _ports(cell: Cell) -> list[tuple[str, str, str]]:
    """Random ones would make more flows than RFC 8219 10.2.1 wants."""
    if cell.traffic.flows is not None:
        return []
    ports = cell.traffic.ports
    found: dict[tuple[str, str, str], None] = {}
    for direction in directions(cell):
        reverse = direction == "reverse" and ports.reverse is not None
        where = " in the reverse direction" if reverse else ""
        for name, port in zip(
            ("source", "destination"), ports.of(direction), strict=True
        ):
            if not port.by_the_book:
                wanted = f"random {name} ports {port.LEAST}-{port.MOST}"
                found[Shortfall("RFC 4814 4.5", wanted, f"{port}{where}")] = None
    return list(found)


def _loads(falling: list[float]) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    if falling[0] < 100:
        what = f"{falling[0]:.12g} % instead of 100 %"
        found.append(Shortfall("RFC 2544 26.3", "first trial at 100 % load", what))
    steps = [above - below for above, below in pairwise(falling)]
    rule = f"loads in steps of at most {_LARGEST_STEP_PERCENT} %"
    if not steps:
        found.append(Shortfall("RFC 2544 26.3", rule, "a single load"))
    elif max(steps) > _LARGEST_STEP_PERCENT + 1e-9:
        what = f"steps of up to {max(steps):.9g} % instead of at most 10 %"
        found.append(Shortfall("RFC 2544 26.3", rule, what))
    return found
