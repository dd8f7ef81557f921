"""Where a cell's frames are others than the standards ask for: sizes, format, fields.

The frame format is RFC 2544's (C.2.6.4) but for what RFC 4814 4.5 put in the place of
its two fixed ports, and for the tag, without which no frame could be told from another
(RFC 2544 10).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from dutperf.catalogue import PROCEDURES
from dutperf.config.flows import directions, ends
from dutperf.config.sizes import cell_versions, listed_sizes, most_header_bytes
from dutperf.model.cell import Cell
from dutperf.model.fields import GoalSpec
from dutperf.model.frames import translates, version_of
from dutperf.model.procedure_keys import TimedStreamKeys
from dutperf.model.rate_specs import BackToBackSpec, FrameLossSpec, RateSearchKeys
from dutperf.model.specs import (
    OVERLOAD_PERCENT,
    OVERLOAD_S,
    TRIGGER_S,
    EstablishmentKeys,
    FixedLoadKeys,
    LatencySpec,
    OutageSpec,
    PowerSpec,
    SoakSpec,
    SystemRecoverySpec,
    TeardownRateSpec,
)
from dutperf.model.stateful_keys import Stateful
from dutperf.model.traffic import BesideKind
from dutperf.standards import Deviation, Level

_FORMAT = "RFC 2544 8, C.2.6.4"
_UPDATE_BEFORE_S = 5
_TTL = 10
_POWER = Deviation(
    "draft-ietf-bmwg-powerbench",
    "the procedure of the draft",
    "a procedure of dutperf's own: the draft is no RFC yet",
    "definition",
)
_QUERY_MS = 1000


def of_frames(cell: Cell) -> list[Deviation]:
    """Of their sizes, then of all else."""
    return [*_sizes(cell), *_frames(cell), *_paths(cell)]


def sizes_asked_for(cell: Cell) -> tuple[list[int], str]:
    """Frame sizes, and the RFC that lists them."""
    extra = most_header_bytes(cell.traffic, cell.ip, cell.phase2)
    return listed_sizes(cell_versions(cell), extra)


def _sizes(cell: Cell) -> list[Deviation]:
    if cell.spec.tcp:  # segments have the sizes that they need
        return []
    if cell.imix:
        rule, actual = "frames of one size", cell.traffic.sizes_name
        actual += " (RFC 6985)" if cell.traffic.imix else ""
        return [Deviation("RFC 2544 9, RFC 1242 3.4", rule, actual, "text")]
    listed, rfc = sizes_asked_for(cell)
    if cell.frame_sizes[0] in listed:
        return []
    rule = f"one of the frame sizes {', '.join(map(str, listed))}"
    actual = f"{cell.frame_sizes[0]} bytes"
    return [Deviation(f"RFC 2544 9.1, {rfc}", rule, actual, "SHOULD")]


def _frames(cell: Cell) -> list[Deviation]:
    traffic = cell.traffic
    found = _ports(cell)
    if traffic.df and 4 in cell_versions(cell):
        found.append(Deviation(_FORMAT, "IPv4 flags 0", "DF set", "SHOULD"))
    found += _headers(cell)
    found += _beside(cell)
    if traffic.ignore_checksums:
        rule = "checksums of received frames"
        found.append(Deviation("RFC 1242 3.17", rule, "not verified", "MUST"))
    if traffic.ttl != _TTL:
        actual = f"{traffic.ttl} instead of {_TTL}"
        found.append(Deviation(_FORMAT, "time to live 10", actual, "SHOULD"))
    if traffic.dscp:
        found.append(
            Deviation(_FORMAT, "type of service 0", f"DSCP {traffic.dscp}", "SHOULD")
        )
    found += _routes(cell)
    return found


def _paths(cell: Cell) -> Iterator[Deviation]:
    """Between several ports on a side, whose sides are inputs and outputs."""
    if cell.pairs == 1:
        return
    if cell.traffic.port_pattern == "pairs":
        rule = "from each input port frames to each of the output ports in sequence"
        yield Deviation("RFC 2544 16", rule, "each to one output port", "SHOULD")
    if len(directions(cell)) > 1:
        rule = "bidirectional: from each port frames to all of the other ports"
        actual = "to those of the other side"
        yield Deviation("RFC 2544 16", rule, actual, "MUST")


def _routes(cell: Cell) -> Iterator[Deviation]:
    traffic, settle_s = cell.traffic, cell.spec.settle_wait_s
    most_networks = max(traffic.networks.left, traffic.networks.right)
    if traffic.routes != "static" and settle_s < _UPDATE_BEFORE_S:
        rule = f"routing updates {_UPDATE_BEFORE_S} s before the frames"
        yield Deviation("RFC 2544 C.2.3", rule, f"{settle_s:g} s before", "text")
    if traffic.routes == "static" and most_networks > 1:
        rule = "a routing update with all networks before each trial"
        yield Deviation("RFC 2544 13", rule, "routes are static", "MUST")


def _headers(cell: Cell) -> Iterator[Deviation]:
    """Of the foreground's frames as they are sent."""
    versions = {version_of(cell.ip, ends(way)[0]) for way in directions(cell)}
    options = cell.traffic.ipv4_options
    if options and 4 in versions:
        yield Deviation(_FORMAT, "no IPv4 options", ", ".join(options), "SHOULD")
    headers = cell.traffic.ipv6_headers
    if "hop-by-hop" not in headers or 6 not in versions:
        return
    if len(headers) > 1:
        rule = "no hop-by-hop header in a chain of extension headers"
        yield Deviation("RFC 5180 5.3", rule, ", ".join(headers), "MUST")
    rule = "hop-by-hop headers at 1, 10 and 50 % of the bandwidth, for their impact"
    yield Deviation("RFC 5180 5.3", rule, "in all foreground frames", "text")


def _beside(cell: Cell) -> Iterator[Deviation]:
    """Frames beside the stream: as many as the RFCs have."""
    beside = cell.traffic.beside
    if beside is None or beside.kind not in _PERCENT_BESIDE:  # no RFC says how many
        return
    if beside.percent in _PERCENT_BESIDE[beside.kind]:
        return
    if beside.kind == "broadcast":
        yield Deviation(beside.rfc, "1 % broadcast frames", beside.words, "SHOULD")
    else:
        rule = "hop-by-hop headers at 1, 10 and 50 % of the bandwidth, for their impact"
        yield Deviation(beside.rfc, rule, beside.words, "text")


_PERCENT_BESIDE: dict[BesideKind, tuple[int, ...]] = {
    "broadcast": (1,),
    "hop-by-hop": (1, 10, 50),
}


def _ports(cell: Cell) -> list[Deviation]:
    """Random ones would make more flows than RFC 8219 10.2.1 wants."""
    if cell.traffic.flows is not None:
        return []
    if cell.traffic.pcap:
        rule, actual = "random source and destination ports", "those of the capture"
        return [Deviation("RFC 4814 4.5", rule, actual, "SHOULD")]
    ports = cell.traffic.ports
    found: dict[Deviation, None] = {}
    for direction in directions(cell):
        reverse = direction == "reverse" and ports.reverse is not None
        where = " in the reverse direction" if reverse else ""
        for name, port in zip(
            ("source", "destination"), ports.of(direction), strict=True
        ):
            if not port.by_the_book:
                wanted = f"random {name} ports {port.LEAST}-{port.MOST}"
                told = Deviation("RFC 4814 4.5", wanted, f"{port}{where}", "SHOULD")
                found[told] = None
    return list(found)


# Where a cell does less than the standards ask for; goes into the report.
#
# RFC 9971 wants every shorter wait described; RFC 2544 24 lets a search use shorter
# trials. So nothing here is refused, and nothing is left unsaid. Each point has the
# level that the RFC's own words give it: a MUST (REQUIRED, SHALL), a SHOULD
# (RECOMMENDED), plain text, or part of what the quantity is by definition.
# ``config.conformance`` makes one statement of them.


_LARGEST_STEP_PERCENT = 10
_REPEATS = 20
_TAGS = 500
_SEARCHES = 50
_BURST_S = 2
_FIRST_TAG_S = 60
_TEN_THOUSAND = 10_000


def deviations(cell: Cell) -> list[Deviation]:
    """All points in which ``cell`` does less than RFC 2544 and RFC 8219 ask for."""
    opened = _stateful(cell, cell.stateful) if cell.stateful else []
    if isinstance(cell.spec, EstablishmentKeys):
        return opened
    found = [*opened, *_times(cell), *_direction(cell), *of_frames(cell)]
    found += _shape(cell)
    match cell.spec:
        case FrameLossSpec(load_percent=loads):
            found += _loads(loads)
        case BackToBackSpec() as spec:
            found += _bursts(spec)
        case FixedLoadKeys() as spec:
            found += _load(cell, spec)
        case SystemRecoverySpec() as spec:
            found += _overload(spec)
        case OutageSpec() as spec:
            found += _outage(cell, spec)
        case PowerSpec():
            found.append(_POWER)
        case SoakSpec():
            rule = "a trial at each of falling loads"
            actual = "one load, in trials in a row"
            found.append(Deviation("RFC 2544 26.3", rule, actual, "definition"))
    found += _repeats(cell)
    if isinstance(cell.spec, LatencySpec):
        found += _tags(cell.spec)
    return [*found, *_judgement(cell)]


def _shape(cell: Cell) -> list[Deviation]:
    """Bursts are RFC 2544 21's; anything else that is not steady is another measure."""
    shape, capture = cell.traffic.load_shape, cell.traffic.pcap
    if shape:
        actual = f"a load that changes: {shape.label}"
    elif capture and capture.times == "original":
        actual = "the times of a capture"
    else:
        return []
    return [Deviation("RFC 2544 21", "steady or bursty traffic", actual, "definition")]


def hasty(cell: Cell) -> list[str]:
    """What was cut short of that which makes a result; empty: nothing.

    Trials of less than the RFC's duration, or a single repeat where it asks for more.
    """
    found = [
        f"trials of {is_s:.12g} s"
        for _, _, is_s, least_s in _duration(cell)
        if is_s < least_s
    ]
    spec = cell.spec
    if isinstance(spec, SystemRecoverySpec) and spec.overload_duration_s < OVERLOAD_S:
        found.append(f"an overload of {spec.overload_duration_s:.12g} s")
    asks_for_more = cell.stateful or _delay_rfc(cell) or translates(cell.ip)
    asks_for_more = asks_for_more or cell.spec.dns is not None
    if isinstance(spec, OutageSpec) and spec.trigger_after_s < TRIGGER_S:
        found.append(f"an outage after {spec.trigger_after_s:.12g} s")
    asks_for_more = asks_for_more or isinstance(spec, SystemRecoverySpec)
    if cell.repeats == 1 and asks_for_more and not cell.spec.loss_criterion.goals:
        found.append("a single repeat")
    return found


def _stateful(cell: Cell, stateful: Stateful) -> list[Deviation]:
    if cell.spec.tcp:  # RFC 9693 is about UDP
        return _once() if cell.repeats == 1 else []
    found = _gateway(stateful)
    if stateful.order != "random":
        rule = "four-tuples in pseudorandom order"
        actual = f"{stateful.order} order"
        found.append(Deviation("RFC 9693 4.4", rule, actual, "MUST"))
    found += _ranges(stateful)
    if cell.repeats == 1:
        rule = "measurements executed multiple times"
        found.append(Deviation("RFC 9693 6", rule, "a single one", "MUST"))
    if isinstance(cell.spec, TeardownRateSpec) and stateful.numbers == 1:
        rule = "tear-down rates of various numbers of connections"
        found.append(Deviation("RFC 9693 4.8", rule, "of one number", "SHOULD"))
    if not cell.phase2:
        return found
    if stateful.transport == "tcp":
        rule = "connections of UDP"
        actual = "of TCP (RFC 8219 8): opened by SYN, used by data both ways"
        found.append(Deviation("RFC 9693 4.7", rule, actual, "definition"))
    rate = stateful.phase1_rate
    if isinstance(rate, int) and cell.connection_cell is None:
        rule = "connections opened safely below the maximum rate, measured before"
        actual = f"at {rate:,}/s, as given"
        found.append(Deviation("RFC 9693 4.2", rule, actual, "MUST"))
    in_turn = isinstance(cell.spec, OutageSpec) and cell.spec.by_connection
    if in_turn or stateful.responder_order != "random":
        rule = "the responder's four-tuples in pseudorandom order"
        order = stateful.responder_order
        actual = "in the order of opening" if in_turn else f"{order} order"
        found.append(Deviation("RFC 9693 4.10", rule, actual, "SHOULD"))
    return found


def _ranges(stateful: Stateful) -> list[Deviation]:
    source, destination = stateful.port_numbers
    if source >= _TEN_THOUSAND >= destination and destination < source:
        return []
    rule = "a few ten thousand source ports, and fewer destination ports"
    actual = f"{source:,} source and {destination:,} destination ports"
    return [Deviation("RFC 9693 4.1", rule, actual, "SHOULD")]


def _gateway(stateful: Stateful) -> list[Deviation]:
    """What the testbed says of the device, and what is asked of it."""
    found: list[Deviation] = []
    if not stateful.translates:
        rule = "a gateway that translates addresses or ports"
        actual = "the device does not translate, as its testbed says"
        found.append(Deviation("RFC 9693 3", rule, actual, "definition"))
    if stateful.expiry:
        rule = "all connections deleted by one command"
        actual = "they expire one by one, a measure of dutperf's own"
        found.append(Deviation("RFC 9693 4.8", rule, actual, "definition"))
    if stateful.untold:
        rule = "the device's parameters reported (device: in the testbed)"
        actual = f"not reported: {', '.join(stateful.untold)}"
        found.append(Deviation("RFC 9693 6", rule, actual, "SHOULD"))
    return found


def _delay_rfc(cell: Cell) -> str | None:
    """Where the procedure is defined, if it is about delays."""
    if is_rfc2544_latency(cell):
        return "RFC 2544 26.2"
    if not isinstance(cell.spec, FixedLoadKeys):
        return None
    return f"RFC 8219 {PROCEDURES[cell.procedure].sections['RFC 8219']}"


def is_rfc2544_latency(cell: Cell) -> bool:
    """Whether it is the latency of RFC 2544, of one tagged frame."""
    return isinstance(cell.spec, LatencySpec) and cell.spec.rfc2544_latency


def _load(cell: Cell, spec: FixedLoadKeys) -> list[Deviation]:
    """RFC 8219 12: the throughput is the median of its repeats."""
    if spec.rate_reference and spec.rate_reference.plain:
        return []
    given = spec.rate_fps
    actual = f"at {given:,} fps, as given" if isinstance(given, int) else f"at {given}"
    if spec.rate_per_flow_fps is not None:
        actual = f"at {spec.given_rate_fps:,} fps, {spec.rate_per_flow_fps:,} per flow"
    return [other_load(cell, actual)]


def other_load(cell: Cell, actual: str) -> Deviation:
    """That a delay was not measured at the throughput, but ``actual``."""
    rfc = _delay_rfc(cell) or ""
    level: Level = "SHOULD" if rfc == "RFC 8219 7.2" else "text"
    return Deviation(rfc, "load at the throughput rate", actual, level)


def lower_bound(cell: Cell, actual: str) -> Deviation:
    """That the limit of the device was not reached, but ``actual``."""
    rfc, rule = PROCEDURES[cell.procedure].limit
    return Deviation(rfc, rule, actual, "text")


def _repeats(cell: Cell) -> list[Deviation]:
    if cell.auto:
        return []
    rfc = _delay_rfc(cell)
    if rfc is None:
        return _iterations(cell)
    if cell.repeats >= _REPEATS:
        return []
    actual = f"{cell.repeats} instead of at least {_REPEATS}"
    return [Deviation(rfc, f"at least {_REPEATS} repeats", actual, "MUST")]


def _iterations(cell: Cell) -> list[Deviation]:
    """RFC 2544 leaves open how often; of a translator RFC 8219 does not."""
    if cell.repeats > 1 or not translates(cell.ip) or cell.spec.loss_criterion.goals:
        return []
    return _once()


def _once() -> list[Deviation]:
    return [Deviation("RFC 8219 12", "multiple iterations", "a single one", "SHOULD")]


def _bursts(spec: BackToBackSpec) -> list[Deviation]:
    """The RFCs say how many searches, how long a burst may be, and what is waited."""
    found: list[Deviation] = []
    if spec.repeats < _SEARCHES:
        rule = f"at least {_SEARCHES} repeats"
        actual = f"{spec.repeats} instead of at least {_SEARCHES}"
        found.append(Deviation("RFC 2544 26.4", rule, actual, "SHOULD"))
    wanted = (
        ("RFC 2544 26.4", "bursts of up to at least", spec.longest_burst_s),
        (
            "RFC 9004 6.2",
            "after a burst, until the buffer is empty, at least",
            spec.residual_wait_s,
        ),
    )
    for rfc, what, is_s in wanted:
        if is_s < _BURST_S:
            actual = f"{is_s:.12g} s"
            found.append(Deviation(rfc, f"{what} {_BURST_S} s", actual, "MUST"))
    if spec.longest_burst_s > _BURST_S >= spec.residual_wait_s:
        rule = f"a longer wait after bursts of more than {_BURST_S} s"
        actual = f"{spec.residual_wait_s:.12g} s for bursts of up to "
        actual += f"{spec.longest_burst_s:.12g} s"
        found.append(Deviation("RFC 9004 6.2", rule, actual, "MUST"))
    if isinstance(spec.throughput_fps, int):
        rule = "the throughput, measured without loss before"
        actual = f"{spec.throughput_fps:,} fps, as given"
        found.append(Deviation("RFC 9004 5", rule, actual, "MUST"))
    return found


def _overload(spec: SystemRecoverySpec) -> list[Deviation]:
    """RFC 2544 26.5: how much, for how long, and how often."""
    found: list[Deviation] = []
    rfc, is_s = "RFC 2544 26.5", spec.overload_duration_s
    if is_s < OVERLOAD_S:
        rule = f"an overload for at least {OVERLOAD_S} s"
        actual = f"{is_s:.12g} s instead of at least {OVERLOAD_S} s"
        found.append(Deviation(rfc, rule, actual, "text"))
    if spec.overload_percent != OVERLOAD_PERCENT:
        rule = f"an overload of {OVERLOAD_PERCENT} % of the throughput"
        actual = f"{spec.overload_percent:.12g} %"
        found.append(Deviation(rfc, rule, actual, "text"))
    if spec.repeats == 1:
        rule = "repeated a number of times"
        found.append(Deviation(rfc, rule, "a single repeat", "SHOULD"))
    reference = spec.rate_reference
    if reference is None or not reference.plain:
        rule = "the throughput, determined first"
        given = spec.throughput_fps
        actual = f"{given:,} fps, as given" if isinstance(given, int) else str(given)
        found.append(Deviation(rfc, rule, actual, "text"))
    return found


def _outage(cell: Cell, spec: OutageSpec) -> list[Deviation]:
    """RFC 6201 4: what is forwarded before; 1.4: how often."""
    found: list[Deviation] = []
    rfc, after_s = "RFC 6201 4", spec.trigger_after_s
    if after_s < TRIGGER_S:
        rule = f"forwarding for at least {TRIGGER_S} s before"
        actual = f"{after_s:.12g} s instead of at least {TRIGGER_S} s"
        found.append(Deviation(rfc, rule, actual, "text"))
    reference = spec.rate_reference
    if reference is None or not reference.plain:
        given = spec.rate_fps
        actual = f"{given:,} fps, as given" if isinstance(given, int) else str(given)
        found.append(
            Deviation(rfc, "a rate that reaches the throughput", actual, "text")
        )
    smallest = min(sizes_asked_for(cell)[0])
    if not cell.imix and cell.frame_sizes[0] > smallest:
        actual = f"{cell.frame_sizes[0]} bytes"
        found.append(Deviation(rfc, "the smallest frames", actual, "text"))
    if spec.repeats == 1:
        rule = "multiple trials, averaged"
        found.append(Deviation("RFC 6201 1.4", rule, "a single one", "SHOULD"))
    return found


def _tags(spec: LatencySpec) -> list[Deviation]:
    found: list[Deviation] = []
    rfc = "RFC 2544 26.2" if spec.rfc2544_latency else "RFC 8219 7.2"
    if spec.tags < _TAGS and not spec.rfc2544_latency:
        actual = f"{spec.tags} instead of at least {_TAGS}"
        found.append(
            Deviation(rfc, f"at least {_TAGS} tagged frames", actual, "SHOULD")
        )
    if spec.first_tag_s < _FIRST_TAG_S:
        rule = f"first tagged frame after {_FIRST_TAG_S} s"
        actual = f"after {spec.first_tag_s:.12g} s"
        found.append(Deviation(rfc, rule, actual, "SHOULD"))
    return found


def _judgement(cell: Cell) -> list[Deviation]:
    found: list[Deviation] = []
    rfc = "RFC 2544 26.1" if isinstance(cell.spec, RateSearchKeys) else "RFC 2544 26.3"
    criterion = cell.spec.loss_criterion
    if cell.spec.dns:
        found += _query_timeout(cell.spec.frame_timeout_ns)
    elif criterion.frame_timeout_ms is not None:
        rule = "frames count as received however late they are"
        actual = (
            f"frames slower than {criterion.frame_timeout_ms:.12g} ms count as lost"
        )
        found.append(Deviation(rfc, rule, actual, "definition"))
    if criterion.tolerance_percent:
        share = f"{criterion.tolerance_percent:.12g} %"
        lost = f"up to {share} of a direction's frames may be lost"
        found.append(Deviation(rfc, "no frame is lost", lost, "definition"))
    return [*found, *_search(cell)]


def _query_timeout(given_ns: int | None) -> Iterator[Deviation]:
    if given_ns is None or given_ns > _QUERY_MS * 10**6:
        actual = "any" if given_ns is None else f"{given_ns / 1e6:.12g} ms"
        rule = f"answers within {_QUERY_MS} ms at most"
        yield Deviation("RFC 8219 9.2", rule, actual, "SHOULD")


def _search(cell: Cell) -> list[Deviation]:
    criterion = cell.spec.loss_criterion
    found = [*_goals(criterion.goals[:1]), *of_further_goals(cell)]
    if criterion.verify_trials is not None:
        rule = "the rate is lowered when fewer frames come out"
        needed = f"{criterion.verify_trials} trials at it lost frames"
        if criterion.verified_percent is not None:
            needed += f", or one lost more than {criterion.verified_percent:.12g} %"
        actual = f"a rate is lowered only when {needed}"
        found.append(Deviation("RFC 2544 26.1", rule, actual, "definition"))
    return found


def of_further_goals(cell: Cell) -> list[Deviation]:
    """Points of goals beside the first one, whose result the cell's is not."""
    goals = cell.spec.loss_criterion.goals
    first = _goals(goals[:1])
    return [point for point in _goals(goals[1:]) if point not in first]


def _goals(goals: Sequence[GoalSpec]) -> list[Deviation]:
    found = []
    for goal in goals:
        lost, exceed = f"{goal.loss_percent:.12g}", f"{goal.exceed_percent:.12g}"
        actual = f"a goal lets {lost} % be lost"
        if goal.exceed_percent:
            actual += f", and more in {exceed} % of the time"
        if goal.loss_percent or goal.exceed_percent:
            rule = "no frame is lost"
            found.append(Deviation("RFC 2544 26.1", rule, actual, "definition"))
    return found


def _times(cell: Cell) -> list[Deviation]:
    wanted: list[tuple[str, str, float, int, Level]] = [
        *((*duration, "SHOULD") for duration in _duration(cell)),
        (
            "RFC 2544 23",
            "wait after learning frames",
            cell.spec.settle_wait_s,
            2,
            "text",
        ),
        ("RFC 2544 23", "wait for late frames", cell.spec.residual_wait_s, 2, "text"),
        ("RFC 2544 23", "wait between trials", cell.spec.restabilise_wait_s, 5, "text"),
    ]
    return [
        Deviation(
            rfc,
            f"{what} of at least {least} s",
            f"{is_s:.12g} s instead of at least {least} s",
            level,
        )
        for rfc, what, is_s, least, level in wanted
        if is_s < least
    ]


def _duration(cell: Cell) -> list[tuple[str, str, float, int]]:
    """Of trials that last as long as they are told to."""
    if not isinstance(cell.spec, TimedStreamKeys) or isinstance(cell.spec, OutageSpec):
        return []
    least = ("RFC 2544 24", 60)
    if isinstance(cell.spec, LatencySpec):
        least = (_delay_rfc(cell) or "", 120)
    return [(least[0], "trial duration", cell.spec.trial_duration_s, least[1])]


def _direction(cell: Cell) -> list[Deviation]:
    if cell.direction == "both" or cell.spec.is_one_way:
        return []
    return [
        Deviation(
            "RFC 8219 5.3, RFC 2544 14",
            "bidirectional traffic",
            f"{cell.direction} direction only",
            "SHOULD",
        )
    ]


def _loads(falling: list[float]) -> list[Deviation]:
    found: list[Deviation] = []
    if falling[0] < 100:
        what = f"{falling[0]:.12g} % instead of 100 %"
        rule = "first trial at 100 % load"
        found.append(Deviation("RFC 2544 26.3", rule, what, "SHOULD"))
    steps = [above - below for above, below in pairwise(falling)]
    rule = f"loads in steps of at most {_LARGEST_STEP_PERCENT} %"
    if not steps:
        found.append(Deviation("RFC 2544 26.3", rule, "a single load", "MUST"))
    elif max(steps) > _LARGEST_STEP_PERCENT + 1e-9:
        what = f"steps of up to {max(steps):.9g} % instead of at most 10 %"
        found.append(Deviation("RFC 2544 26.3", rule, what, "MUST"))
    return found
