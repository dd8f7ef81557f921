"""The load of latency, PDV and IPDV: as given, or the throughput found before.

A frame loss curve lies around that throughput, or goes down from the maximum rate.

What was found is a function of the earlier cell's result, so a run that is resumed
comes to the same load.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from decimal import Decimal
from functools import partial

from dutperf import stats
from dutperf.config.cell import Cell
from dutperf.config.deviating import other_load
from dutperf.config.rate_reference import RateReference
from dutperf.config.rate_sources import check_load
from dutperf.errors import InputError
from dutperf.procedures.cell_results import of_cell
from dutperf.procedures.max_rate import MaxRate
from dutperf.protocol import Reason
from dutperf.results.bounds import valued
from dutperf.results.by_the_book import is_by_the_book
from dutperf.results.model import CellResult
from dutperf.results.rate_results import BoundCause, Load
from dutperf.standards import Deviation


def found_load(
    cell: Cell, limit: MaxRate, done: Iterable[CellResult]
) -> MaxRate | CellResult:
    """The load of ``cell``, if it is one that was to be found; else ``limit``.

    Where what was found is not the load itself, ``limit`` is the most there may be; if
    it is not known then, ``limit`` alone, which says so.

    Or, when it cannot be measured, its result: invalid, without a trial.
    """
    asked = cell.spec.rate_reference
    if asked is None:
        return limit
    source = next(r for r in done if r.id == cell.throughput_cell)
    if source.verdict != "pass" or not source.median:
        if cell.spec.reference_use in ("full load", "correction"):
            return replace(limit, shortfall=unknown(source, "throughput"))
        return unmeasured(cell, limit, _no_throughput(source))
    load = _load(asked, source)
    if load.rate_fps < 1:
        return unmeasured(cell, limit, _too_low(load))
    if cell.spec.reference_use != "load":
        return replace(load, most=limit)
    try:
        check_load(cell.with_keys(rate_fps=load.rate_fps))
    except InputError as error:
        return unmeasured(cell, limit, _does_not_fit(load, error))
    return load


_MOST: dict[BoundCause, str] = {
    "tester": "as much as the tester could offer",
    "disturbed": "as much as the tester could offer undisturbed",
    "held_back": "as much as what stopped the tester let through",
    "set": "as much as the search was allowed to ask for",
    "nominal": "as much as the virtual link names",
    "short_tests": "as much as the tests proved",
}


def load_deviations(cell: Cell, load: MaxRate) -> list[Deviation]:
    """That the load is not the throughput of the standard, if it is not."""
    if (
        not load.shortfall
        or not cell.spec.rate_reference
        or not cell.spec.rate_reference.plain
    ):
        return []
    return [other_load(cell, f"at {load.rate_fps:,} fps, {load.shortfall}")]


def load_words(load: MaxRate) -> str:
    """For the name of a result: ``468,113 fps per direction``, and where it is from."""
    found = f"{load.words}, " if load.kind == "found" else ""
    return f"{found}{load.rate_fps:,} fps per direction"


def load_record(cell: Cell, load: MaxRate) -> Load:
    """The load as it is stored with the result."""
    return Load(
        rate_fps=load.rate_fps,
        asked=str(cell.spec.rate_reference or cell.spec.given_rate_fps),
        cell=cell.throughput_cell,
        words=load.words,
    )


def _load(asked: RateReference, source: CellResult) -> MaxRate:
    values, at_least = valued(source.repeats)
    statistic: stats.Statistic = stats.median
    kind = "median"
    if asked.percentile is not None:
        statistic = partial(stats.percentile, numerator=asked.percentile)
        kind = f"{_ordinal(asked.percentile)} percentile"
    found_fps, is_bound = stats.estimate(statistic, values, at_least)
    count = f"{len(values)} repeats" if len(values) > 1 else "one repeat"
    of = count if len(values) == 1 and kind == "median" else f"{kind} of {count}"
    capped = _capped(source) if is_bound else ""
    plain = is_by_the_book(source)
    name = "throughput" if plain else source.quantity
    told = f", {capped}" if capped else ""
    share = _share(asked.share_percent, found_fps)
    return MaxRate(
        asked.of(found_fps),
        "found",
        f"{share}the {name} found: {of}{told}",
        capped if plain else f"the {name}",
    )


def _capped(source: CellResult) -> str:
    """The device may do more than was asked of it."""
    causes = [repeat.bound_cause for repeat in source.repeats if repeat.bound_cause]
    return _MOST[causes[0]] if causes else ""


def _share(percent: Decimal, found_fps: float) -> str:
    return "" if percent == 100 else f"{percent:f} % of {found_fps:,.0f} fps, "


def _ordinal(number: int) -> str:
    tens, ones = divmod(number, 10)
    endings = {1: "st", 2: "nd", 3: "rd"} if tens != 1 else {}
    return f"{number}{endings.get(ones, 'th')}"


def unmeasured(cell: Cell, limit: MaxRate, *reasons: Reason) -> CellResult:
    """The result of a cell of which nothing was sent, or nothing came back."""
    rate = cell.spec.rate_reference or cell.spec.given_rate_fps
    at = f" at {rate}" if rate else ""
    told = of_cell(cell, limit)
    if rate:
        told["parameters"]["rate_fps"] = str(rate)
    return CellResult(
        **told,
        quantity=f"{cell.procedure}{at}: not measured",
        median=None,
        repeats=[],
        verdict="invalid",
        reasons=list(reasons),
    )


def unknown(source: CellResult, what: str) -> str:
    """Why ``what`` a cell was to find is not there."""
    why = {
        "fail": "is 0: no rate that was tried passed",
        "invalid": "is not known: its cell is invalid",
        "pass": "is not known: its cell has no result",
    }[source.verdict]
    return f"the {what} of {source.id} {why}"


def _no_throughput(source: CellResult) -> Reason:
    told = unknown(source, "throughput")
    hint = f"see why in {source.id}; or give a rate in frames per second"
    return _not_sent(f": {told}", hint)


def _too_low(load: MaxRate) -> Reason:
    told = f": {load.words}: below 1 frame per second"
    return _not_sent(told, "take a larger share of the throughput")


def _does_not_fit(load: MaxRate, error: InputError) -> Reason:
    return _not_sent(f" at {load_words(load)}: {error.message}", error.hint)


def _not_sent(why: str, hint: str) -> Reason:
    return Reason(code="no_throughput", message=f"nothing was sent{why}", hint=hint)
