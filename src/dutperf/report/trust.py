"""What speaks for the figures and what against them, a line each: the first screen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dutperf.charts.cells import CellView
from dutperf.charts.text import (
    MISSING,
    NBSP,
    duration_ns,
    moment,
    percent,
    plural,
    sentence,
    whole,
)
from dutperf.report.source import Source
from dutperf.results import CellResult, Environment, PortRecord, Words
from dutperf.results.closing_words import deviations_words, short_trials_s
from dutperf.results.environment import MachineCheck
from dutperf.results.model import RunPart
from dutperf.results.passport import NEAR_PERCENT

# The environment record as rows of a table.


def environment_rows(environment: Environment | None) -> list[tuple[str, str]]:
    """Name and value of everything that was recorded; empty without a record."""
    if environment is None:
        return []
    return [
        *_machine_rows(environment),
        *[(f"Port {port.label}", _port(port)) for port in environment.ports],
        *_device(environment),
        *_programs(environment),
        *(_finding(check) for check in environment.checks if check.is_finding),
        *map(_part, environment.parts),
    ]


def findings_beside(cell: CellView, source: Source) -> list[str]:
    """What the doctor found that may touch the cell's result."""
    known = [
        each.environment
        for each in source.testbeds
        if each.environment and cell.testbed in {"", each.name}
    ]
    delays = cell.family == "fixed load"
    return [
        f"{check.name.replace('_', ' ')}: {check.found}"
        for environment in known
        for check in environment.checks
        if check.is_finding
        and (check.touches_delays if delays else not check.touches_delays_alone)
    ]


def _machine_rows(environment: Environment) -> list[tuple[str, str]]:
    virtual = {True: ", virtual machine", False: "", None: ""}[environment.hypervisor]
    cores = ", ".join(map(str, environment.cores_used))
    nodes = plural(environment.numa_nodes, "NUMA node")
    memory = f"{whole(environment.memory_mb)} MiB, {nodes}"
    huge = "used" if environment.hugepages_used else "not used"
    return [
        ("Operating system", environment.os),
        ("Kernel", environment.kernel),
        ("CPU", f"{environment.cpu_model}, {environment.cpus_total} CPUs{virtual}"),
        ("Cores of the tester", f"{cores}; control on {environment.main_core}"),
        ("CPU governor", _per_core(environment.governor)),
        ("CPU frequency", _frequency(environment)),
        ("Memory", memory),
        ("Huge pages", f"{environment.hugepages}, {huge}"),
    ]


def _per_core(values: dict[int, str]) -> str:
    if len(set(values.values())) == 1:
        return next(iter(values.values()))
    return ", ".join(f"core {core}: {value}" for core, value in sorted(values.items()))


def _frequency(environment: Environment) -> str:
    turbo = {True: "turbo on", False: "turbo off", None: "turbo unknown"}
    rates = {core: f"{mhz:,.0f} MHz" for core, mhz in environment.frequency_mhz.items()}
    tsc = f"TSC {environment.tsc_hz / 1e6:,.0f} MHz"
    return ", ".join([_per_core(rates), tsc, turbo[environment.turbo]]).lstrip(", ")


def _port(port: PortRecord) -> str:
    kernel = (port.kernel_driver, port.kernel_driver_version)
    speed = port.link_speed_mbps
    parts = [
        f"{port.device or MISSING} ({port.mac})",
        f"{port.driver} by {port.dpdk_name}",
        f"kernel driver {' '.join(k for k in kernel if k)}" if any(kernel) else "",
        f"{whole(speed)} Mbit/s reported" if speed else "speed not reported",
        f"MTU {port.mtu}" if port.mtu else "",
        f"flow control {port.flow_control}",
    ]
    return ", ".join(part for part in parts if part)


def _part(part: RunPart) -> tuple[str, str]:
    """When, and what was not as before."""
    changed = "; ".join(part.changes) or "nothing had changed"
    began = f"{moment(part.started_at)}: {changed}"
    return f"Resumed at trial {part.first_trial}", began


def _device(environment: Environment) -> list[tuple[str, str]]:
    """What RFC 9693 6 wants beside a result, in one row."""
    told = [f"{name}: {value}" for name, value in environment.device.items()]
    return [("Device under test", "; ".join(told))] if told else []


def _finding(check: MachineCheck) -> tuple[str, str]:
    """What may touch the results, and why; the cure is for next time."""
    why = f": {check.why}" if check.why else ""
    cure = f" (cure: {check.cure})" if check.cure else ""
    name = check.name.replace("_", " ")
    return f"{sentence(check.verdict)}: {name}", f"{check.found}{why}{cure}"


def _programs(environment: Environment) -> list[tuple[str, str]]:
    return [
        ("DPDK", environment.dpdk_version.removeprefix("DPDK ")),
        ("Engine", environment.engine_version),
        ("dutperf", environment.dutperf_version),
        ("Protocol", f"version {environment.protocol_version}"),
        ("Python", environment.python_version),
        ("Seed", str(environment.seed)),
        ("Started", moment(environment.started_at)),
    ]


Level = Literal["good", "note", "bad"]
_FEW = 3


@dataclass(frozen=True)
class TrustRow:
    """``target``: the section that says more."""

    name: str
    words: str
    level: Level
    target: str = ""


def trust_rows(source: Source, cells: Sequence[CellView], more: str) -> list[TrustRow]:
    """In the order of their weight; ``more``: where the lists are."""
    return [
        _trials(cells),
        _share(cells),
        _stalls(cells),
        _drops(cells),
        *_inspected(cells),
        _machine(source, cells),
        _standards(source.cells, more),
    ]


def in_a_sentence(rows: Sequence[TrustRow], cells: Sequence[CellView]) -> TrustRow:
    """How far to trust the figures, as a traffic light has it."""
    said = [*_without_figure(cells), *_weak(cells)]
    dropped = any(row.level == "bad" for row in rows)
    level: Level
    if dropped:
        said.append("the tester dropped frames")
    if dropped or any(cell.state != "pass" for cell in cells):
        name, level = "With care", "bad"
    elif said:
        look = short_trials_s([cell.result for cell in cells if cell.result])
        name, level = ("Exploratory" if look else "Read the small print"), "note"
    else:
        name, level = "Sound", "good"
        said = ["no trial was invalid, and the tester dropped no frame"]
    return TrustRow(name, "; ".join(said), level)


def _without_figure(cells: Sequence[CellView]) -> Iterator[str]:
    states = Counter(cell.state for cell in cells)
    of = f"of {len(cells)} test cases"
    if doubtful := states["unstable"] + states["doubtful"]:
        yield f"{doubtful} {of} found no figure that all their trials agree on"
    if states["fail"]:
        yield f"{states['fail']} {of} passed at no load"
    if lacking := states["invalid"] + states["open"]:
        yield f"{lacking} {of} have no result"


def _weak(cells: Sequence[CellView]) -> Iterator[str]:
    if short := short_trials_s([cell.result for cell in cells if cell.result]):
        ends = dict.fromkeys((f"{short[0]:g}", f"{short[-1]:g}"))
        yield f"trials of {' to '.join(ends)}{NBSP}s"
    counted = sum(cell.tester.trials for cell in cells)
    invalid = sum(cell.tester.invalid for cell in cells)
    if invalid:
        told = percent(100 * invalid / (counted + invalid))
        yield f"{told} of trials were invalid, and repeated"
    if bounds := sum(bool(cell.at_least) for cell in cells):
        yield f"{plural(bounds, 'figure')} only a lower bound"


def _trials(cells: Sequence[CellView]) -> TrustRow:
    """Invalid ones are run again: many of them say that the machine was not quiet."""
    counted = sum(cell.tester.trials for cell in cells)
    invalid = sum(cell.tester.invalid for cell in cells)
    if counted + invalid == 0:
        return TrustRow("Trials", "none is stored", "bad")
    if not invalid:
        return TrustRow("Invalid trials", f"none of {whole(counted)}", "good", "tester")
    why: Counter[str] = Counter()
    for cell in cells:
        why.update(cell.tester.invalid_reasons)
    codes = ", ".join(code.replace("_", " ") for code, _ in why.most_common(_FEW))
    said = f"{whole(invalid)} of {whole(counted + invalid)}, not counted"
    return TrustRow("Invalid trials", f"{said} ({codes})", "note", "tester")


def _share(cells: Sequence[CellView]) -> TrustRow:
    name = "Tester's own limit"
    bounds = sum(bool(cell.at_least) for cell in cells)
    shares = [
        cell.result.passport.share_percent
        for cell in cells
        if cell.result and cell.measured and cell.result.passport
    ]
    known = [share for share in shares if share is not None]
    limited = f"; {plural(bounds, 'result')} a lower bound" if bounds else ""
    if not known:
        said = "not known: there is no passport of this tester"
        return TrustRow(name, said + limited, "note", "tester")
    said = f"at most {max(known):.0f} % of it was used"
    near = max(known) > NEAR_PERCENT or bounds > 0
    return TrustRow(name, said + limited, "note" if near else "good", "tester")


def _stalls(cells: Sequence[CellView]) -> TrustRow:
    """Of the trials that count; no loss in their shadow is the device's."""
    stalls = sum(cell.tester.stalls for cell in cells)
    if not stalls:
        return TrustRow("Stalls of the tester", "none", "good", "tester")
    longest = max(cell.tester.longest_stall_ns or 0 for cell in cells)
    lost = sum(cell.tester.lost_in_shadow for cell in cells)
    said = f"{whole(stalls)}, the longest {duration_ns(longest)}; "
    said += (
        f"{plural(lost, 'frame')} lost in their recovery windows, none held against "
        "the device"
        if lost
        else "nothing was lost in their recovery windows"
    )
    return TrustRow("Stalls of the tester", said, "note", "tester")


def _drops(cells: Sequence[CellView]) -> TrustRow:
    dropped = sum(cell.tester.dropped for cell in cells)
    if dropped:
        said = f"{plural(dropped, 'frame')}: these losses may be the tester's"
        return TrustRow("Dropped by the tester", said, "bad", "tester")
    return TrustRow("Dropped by the tester", "no frame", "good", "tester")


def _inspected(cells: Sequence[CellView]) -> list[TrustRow]:
    """What the device did to frames beside forwarding them."""
    name = "Frames inspected"
    frames = sum(cell.tester.inspected for cell in cells)
    if not frames:
        return []
    if not any(cell.tester.altered for cell in cells):
        said = f"{whole(frames)}: TTL, DSCP and payload as they should be"
        return [TrustRow(name, said, "good", "tester")]
    said = f"{whole(frames)}: TTL, DSCP or payload of some altered by the device"
    return [TrustRow(name, said, "note", "tester")]


def _machine(source: Source, cells: Sequence[CellView]) -> TrustRow:
    """What the doctor found that may touch one of these cells, once for all."""
    name = "This machine"
    if not any(each.environment for each in source.testbeds):
        return TrustRow(name, MISSING, "note")
    found = dict.fromkeys(f for cell in cells for f in findings_beside(cell, source))
    if not found:
        return TrustRow(name, "dutperf doctor found nothing", "good", "environment")
    more = ", \N{HORIZONTAL ELLIPSIS}" if len(found) > _FEW else ""
    said = f"{plural(len(found), 'finding')}: {', '.join(list(found)[:_FEW])}{more}"
    return TrustRow(name, said, "note", "environment")


def _standards(cells: Sequence[CellResult], more: str) -> TrustRow:
    """All deviations in one line; where their list is."""
    words = Words(where=more, figures=False)
    said = next(iter(deviations_words(cells, words)), "")
    if said:
        return TrustRow("By the RFCs", sentence(said), "note", "deviations")
    return TrustRow("By the RFCs", "no deviation" if cells else MISSING, "good")
