"""A comparison as JUnit's XML, which CI systems show: one test case for each cell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from dutperf.comparison.comparison_tables import finding, interval_words
from dutperf.comparison.judging import Compared, Comparison
from dutperf.visible import visible

_NO_XML = re.compile("[\ufffe\uffff]")


def junit(found: Comparison, limit: float) -> str:
    """The XML; a case failed if one of its figures is worse than ``limit``.

    It is skipped if that cannot be told of one. Cells that the baseline does not have
    are no cases.
    """
    cases: dict[tuple[str, str], list[Compared]] = {}
    for each in found.figures:
        if each.before is not None:
            cases.setdefault((each.run, each.key.words), []).append(each)
    suite = Element("testsuite", name="dutperf compare", errors="0")
    counts = {"failure": 0, "skipped": 0}
    for (run, cell), figures in cases.items():
        case = SubElement(
            suite, "testcase", name=_safe(cell), classname=f"dutperf.compare.{run}"
        )
        if worse := [f for f in figures if f.judged(limit) == "worse"]:
            counts["failure"] += 1
            SubElement(case, "failure", message=_words(worse))
        elif open_ := [f for f in figures if f.judged(limit) == "cannot_tell"]:
            counts["skipped"] += 1
            SubElement(case, "skipped", message=f"cannot tell: {_words(open_)}")
    suite.set("tests", str(len(cases)))
    suite.set("failures", str(counts["failure"]))
    suite.set("skipped", str(counts["skipped"]))
    indent(suite)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(suite, "unicode")}\n'


def _words(figures: Iterable[Compared]) -> str:
    told = []
    for each in figures:
        name = f"{each.name}: " if each.name else ""
        told.append(f"{name}{finding(each)}{interval_words(each)}")
    return _safe("; ".join(told))


def _safe(text: str) -> str:
    """No XML may hold these, however they are written."""
    return _NO_XML.sub("?", visible(text))
