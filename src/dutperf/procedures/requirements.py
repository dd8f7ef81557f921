"""Whether figures are what a user requires, and what that rests on.

Nothing is said more firmly than it was measured. A figure is somewhere in its known
range: the interval of its median, or its repeats where they are too few for one, and up
to the next rate that its search would have tried. A bound within that is neither met
nor missed, nor is one of an invalid figure, or of one that another result denies.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from dutperf.catalogue import PROCEDURES
from dutperf.model.requirements import Requirement
from dutperf.procedures.side_by_side import known_range
from dutperf.results import CellResult
from dutperf.results.figures import Figure, figures_of, judged_words
from dutperf.results.units import in_unit
from dutperf.visible import visible

Outcome = Literal["met", "not met", "cannot tell"]
_SIGNS = {None: "", "lower": ">= ", "upper": "<= ", "below": "< "}


@dataclass(frozen=True)
class Judged:
    """A requirement of one figure; ``found`` says what the outcome rests on."""

    requirement: Requirement
    cell: str
    outcome: Outcome
    found: str


def judged(wanted: Sequence[Requirement], cells: Sequence[CellResult]) -> list[Judged]:
    """Each requirement of each figure that it is of; of a missing one, too."""
    return [found for each in wanted for found in _judged(each, cells)]


def _judged(wanted: Requirement, cells: Sequence[CellResult]) -> Iterator[Judged]:
    there = False
    for cell in cells:
        if cell.procedure != wanted.procedure:
            continue
        for figure in figures_of(cell):
            if figure.name == wanted.figure or (figure.leads and not wanted.figure):
                there = True
                outcome = outcome_of(figure, wanted.bound, at_least=wanted.at_least)
                name = figure_name(figure, cells)
                yield Judged(wanted, name, outcome, found_words(figure))
    if not there:
        name = PROCEDURES[wanted.procedure].noun
        yield Judged(wanted, name, "cannot tell", "it was not measured")


def outcome_of(figure: Figure, bound: float, *, at_least: bool) -> Outcome:
    """Whether the figure is ``bound`` or more (or less), as far as it is known."""
    if not _is_known(figure):
        return "cannot tell"
    least, most = known_range(figure)
    if at_least:
        return "met" if least >= bound else "not met" if most < bound else "cannot tell"
    return "met" if most <= bound else "not met" if least > bound else "cannot tell"


def _is_known(figure: Figure) -> bool:
    """Not invalid, nor denied by another result of the run."""
    is_denied = "contradiction" in figure.doubts
    return figure.value is not None and figure.verdict != "invalid" and not is_denied


def figure_name(figure: Figure, cells: Sequence[CellResult]) -> str:
    """The cell, one of ``cells``, and which of its figures."""
    of = figure.result
    which = f"{figure.name} {figure.direction}" if figure.unit == "ns" else ""
    load = figure.load_percent
    at_load = "" if load is None else f"at {load:g} % load"
    several = len({cell.place for cell in cells}) > 1
    at = f"at {of.place}" if of.place and several else ""
    return ", ".join(filter(None, (of.id, which, at_load, judged_words(of), at)))


def found_words(figure: Figure) -> str:
    """The value with what is known of its range, or why there is none."""
    if figure.value is None:
        return f"no valid figure; {verdict_words(figure)}"
    repeats = len(figure.repeats)
    told = f"{told_value(figure)} ({repeats} repeat{'s' * (repeats != 1)}"
    ends = known_range(figure)
    if _is_known(figure) and ends[0] < ends[1] and math.isfinite(ends[1]):
        told += f", {' to '.join(in_unit(each, figure.unit) for each in ends)}"
    told += f"); {verdict_words(figure)}"
    return told


def told_value(figure: Figure) -> str:
    """The value in its unit, with its sign if it is a bound."""
    if figure.value is None:
        return "no valid figure"
    if math.isinf(figure.value):
        return "infinite: too many frames were lost"
    return f"{_SIGNS[figure.limit]}{in_unit(figure.value, figure.unit)}"


def verdict_words(figure: Figure) -> str:
    """The verdict, and what led to it or to a bound."""
    told = f"verdict {figure.verdict}"
    if reasons := figure.result.reasons:
        told += f" ({', '.join(reason.message for reason in reasons)})"
    if figure.bound_cause:
        told += f", a lower bound ({figure.bound_cause})"
    return told


# JUnit's XML, which CI systems show.


_NO_XML = re.compile("[\ufffe\uffff]")


@dataclass(frozen=True)
class Case:
    """A test case; ``failure``, ``skipped``: why, where it is one."""

    name: str
    classname: str
    failure: str = ""
    skipped: str = ""


def junit(suite: str, cases: Sequence[Case]) -> str:
    """One suite of them, as XML."""
    root = Element("testsuite", name=_safe(suite), errors="0", tests=str(len(cases)))
    root.set("failures", str(sum(bool(each.failure) for each in cases)))
    root.set("skipped", str(sum(bool(each.skipped) for each in cases)))
    for each in cases:
        names = {"name": _safe(each.name), "classname": _safe(each.classname)}
        case = SubElement(root, "testcase", names)
        if each.failure:
            SubElement(case, "failure", message=_safe(each.failure))
        elif each.skipped:
            SubElement(case, "skipped", message=_safe(each.skipped))
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, "unicode")}\n'


def _safe(text: str) -> str:
    """No XML may hold these, however they are written."""
    return _NO_XML.sub("?", visible(text))
