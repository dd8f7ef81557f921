"""What a NAT does with addresses and ports, and whether RFCs ask for that (RFC 4787).

A few hosts open connections from ports in a row, each to all of several remote ends.
The responder learns what the device made of each, and answers: from the end to which
the connection was opened; from a port, and from an address, to which none was.

    opened      inside 10.0.0.2:10000 -> 198.19.0.2:80, :81, 198.19.0.3:80, :81
    learned     public 198.19.0.1:2048, each time?       mapping
    answered    from 198.19.0.2:84, from 198.19.0.4:80   filtering

What is met is met in what was seen: another number of hosts, or a pool that is full,
may show another behaviour. So each line says how much was seen, and names ends that
show what is not met.
"""

from __future__ import annotations

import ipaddress
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Literal, NamedTuple, TypeVar

from dutperf.charts.cells import CellView
from dutperf.model.cell import Cell
from dutperf.model.specs import NatBehaviourSpec
from dutperf.model.stateful_keys import Stateful
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnConnections, Panel, Section
from dutperf.procedures.searching import NoUseError
from dutperf.procedures.stateful.establishing import (
    Establishing,
    Opened,
    not_opened,
    stateful_of,
    validation,
)
from dutperf.procedures.trials import ATTEMPTS, Ask, DeviceTrials
from dutperf.protocol.result_messages import Reason
from dutperf.protocol.stream_messages import field_bits
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import bounds
from dutperf.results.details import Behaviour
from dutperf.results.model import CellResult
from dutperf.results.rate_results import RepeatResult
from dutperf.results.trial_record import TrialRecord
from dutperf.tables.result_tables import ENDING, title
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Column, Columns, Table, count, heads, rows

# What was seen.


class End(NamedTuple):
    """Address and port."""

    address: str
    port: int

    def __str__(self) -> str:
        """As people write it."""
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{host}:{self.port}"


class Mapped(NamedTuple):
    """A connection: whose it is, what the device made of that, and to whom it goes."""

    inside: End
    public: End
    remote: End


class LetIn(NamedTuple):
    """How many answers came from elsewhere, and how many of them arrived."""

    sent: int
    arrived: int

    @property
    def some(self) -> bool:
        """Neither all nor none."""
        return 0 < self.arrived < self.sent


Kind = Literal[
    "endpoint-independent", "address-dependent", "address and port-dependent"
]
_BEST: Kind = "endpoint-independent"
_SYSTEM_PORTS = 1024
"""RFC 6335 6."""
_LEAST_FOR_PARITY = 16
"""So many ports keep their parity by chance once in 65,536 times."""


def mapped_of(record: TrialRecord) -> list[Mapped]:
    """What phase 1 says of each connection that arrived."""
    stream = record.request.directions[0].streams[0]
    first = stream.tuples.first if stream.tuples else 0
    table = record.result.table
    found: list[Mapped] = []
    for number, told in enumerate(table.told if table else ()):
        if told:
            inside = End(*stream.ends_of(first + number)[:2])
            found.append(Mapped(inside, End(*told[:2]), End(*told[2:])))
    return found


# What is asked for.


Verdict = Literal["met", "not met", "cannot tell"]
Level = Literal["MUST", "SHOULD", "RECOMMENDED"] | None
Found = tuple[Verdict | None, str]
"""Whether it is as asked for, None: nothing is; and what was seen."""
_T = TypeVar("_T")
_U = TypeVar("_U")


def judged(mapped: Sequence[Mapped], port: LetIn, address: LetIn) -> list[Behaviour]:
    """Each thing that these connections say something of.

    Args:
        mapped: what the device made of each connection.
        port: answers from ports to which no connection was opened.
        address: from such addresses.
    """
    kinds = {
        inside: _kind_of(each)
        for inside, each in _grouped((m.inside, m) for m in mapped).items()
    }
    udp = "RFC 4787"
    asked: list[tuple[str, str, Level, str, Found]] = [
        (udp, "REQ-1", "MUST", "endpoint-independent mapping", _mapping(mapped, kinds)),
        (
            udp,
            "REQ-2",
            "RECOMMENDED",
            "one public address for each host; a CGN must (RFC 6888 REQ-2)",
            _pooling(mapped),
        ),
        (
            udp,
            "REQ-3",
            "MUST",
            "no public address and port for two inside ends",
            _overloading(mapped),
        ),
        (
            udp,
            "REQ-3 a",
            "RECOMMENDED",
            "ports below 1024 stay there, so do those above",
            _kept(mapped, lambda port: port < _SYSTEM_PORTS, 1),
        ),
        (
            udp,
            "REQ-4",
            "RECOMMENDED",
            "even ports stay even, odd ones odd",
            _kept(mapped, lambda port: port % 2, _LEAST_FOR_PARITY),
        ),
        (
            udp,
            "REQ-8",
            "RECOMMENDED",
            "endpoint-independent or address-dependent filtering",
            _filtering(port, address),
        ),
        (
            udp,
            "REQ-11",
            "MUST",
            "the same behaviour for all, at any time",
            _deterministic(kinds, port, address),
        ),
        (udp, "4.2.1", None, "port preservation", _preserved(mapped)),
        ("RFC 7422", "2", None, "a block of ports for each host", _blocks(mapped)),
    ]
    return [behaviour(*each) for each in asked]


def behaviour(
    rfc: str, section: str, level: Level, asks: str, told: Found
) -> Behaviour:
    """One of them, as it is stored."""
    return Behaviour(
        rfc=rfc,
        section=section,
        level=level,
        asks=asks,
        verdict=told[0],
        found=told[1],
    )


def _grouped(pairs: Iterable[tuple[_T, _U]]) -> dict[_T, list[_U]]:
    groups: dict[_T, list[_U]] = defaultdict(list)
    for key, value in pairs:
        groups[key].append(value)
    return groups


def _kind_of(connections: Sequence[Mapped]) -> Kind:
    """How the public end of one inside end depends on whom it talks to."""
    if len({m.public for m in connections}) == 1:
        return "endpoint-independent"
    each = _grouped((m.remote.address, m.public) for m in connections)
    one = all(len(set(publics)) == 1 for publics in each.values())
    return "address-dependent" if one else "address and port-dependent"


def _mapping(mapped: Sequence[Mapped], kinds: dict[End, Kind]) -> Found:
    other = {inside: kind for inside, kind in kinds.items() if kind != _BEST}
    if not other:
        words = f"one public end for each of {len(kinds):,} inside ends"
        remotes = {m.remote.address for m in mapped}
        if len(remotes) > 1:
            return "met", f"{words}, towards {len(remotes)} remote addresses"
        return "cannot tell", f"{words}, but towards one remote address"
    inside, kind = next(iter(other.items()))
    each = _grouped((m.public, m.remote) for m in mapped if m.inside == inside)
    two = list(each.items())[:2]
    shown = " and ".join(f"{public} towards {to[0]}" for public, to in two)
    return "not met", (
        f"{kind} for {len(other):,} of {len(kinds):,} inside ends: {inside} is {shown}"
    )


def _pooling(mapped: Sequence[Mapped]) -> Found:
    publics = {m.public.address for m in mapped}
    if len(publics) == 1:
        return "cannot tell", f"all have {next(iter(publics))}: no pool is seen"
    hosts = _grouped((m.inside.address, m.public.address) for m in mapped)
    several = [host for host, seen in hosts.items() if len(set(seen)) > 1]
    if not several:
        return "met", f"paired: {len(hosts)} hosts, {len(publics)} public addresses"
    seen = " and ".join(sorted(set(hosts[several[0]]))[:2])
    return "not met", (
        f"{len(several)} of {len(hosts)} hosts have several: {several[0]} has {seen}"
    )


def _overloading(mapped: Sequence[Mapped]) -> Found:
    owners = {
        public: set(insides)
        for public, insides in _grouped((m.public, m.inside) for m in mapped).items()
    }
    shared = [public for public, insides in owners.items() if len(insides) > 1]
    if not shared:
        return "met", f"each of {len(owners):,} public ends is of one inside end"
    both = " and ".join(map(str, sorted(owners[shared[0]])[:2]))
    return "not met", (
        f"{len(shared):,} of {len(owners):,} public ends are of several inside ends: "
        f"{shared[0]} is of {both}"
    )


def _kept(
    mapped: Sequence[Mapped], property_of: Callable[[int], int], least: int
) -> Found:
    """Whether inside and public ports have a property alike, of so many at least."""
    ends = {(m.inside, m.public) for m in mapped}
    other = sorted(
        (inside, public)
        for inside, public in ends
        if property_of(inside.port) != property_of(public.port)
    )
    if other:
        inside, public = other[0]
        return "not met", (
            f"not so for {len(other):,} of {len(ends):,}: {inside} is {public}"
        )
    if len(ends) < least:
        return "cannot tell", f"{len(ends)} may be so by chance; take {least} ports"
    return "met", f"so for {len(ends):,}"


def _filtering(port: LetIn, address: LetIn) -> Found:
    words = (
        f"let in: {port.arrived:,} of {port.sent:,} from another port, "
        f"{address.arrived:,} of {address.sent:,} from another address"
    )
    if port.some or address.some or (address.arrived and not port.arrived):
        return "cannot tell", words
    if not port.arrived:
        return "not met", f"address and port-dependent; {words}"
    kind = "endpoint-independent" if address.arrived else "address-dependent"
    return "met", f"{kind}; {words}"


def _deterministic(kinds: dict[End, Kind], port: LetIn, address: LetIn) -> Found:
    seen = _grouped((kind, inside) for inside, kind in kinds.items())
    if len(seen) > 1:
        shown = ", ".join(
            f"{kind} for {len(insides):,} ({insides[0]})"
            for kind, insides in sorted(seen.items())
        )
        return "not met", f"mapping differs: {shown}"
    if port.some or address.some:
        return "cannot tell", "some answers from elsewhere are lost, or filtered"
    return "met", f"for {len(kinds):,} inside ends"


def _preserved(mapped: Sequence[Mapped]) -> Found:
    ends = {(m.inside, m.public) for m in mapped}
    kept = sum(inside.port == public.port for inside, public in ends)
    return None, f"{kept:,} of {len(ends):,} public ends have the inside end's port"


def _blocks(mapped: Sequence[Mapped]) -> Found:
    """Whether the ports of each host stand apart from those of all others."""
    ports = _grouped(
        ((m.public.address, m.inside.address), m.public.port) for m in mapped
    )
    if len(ports) == len({public for public, _ in ports}):
        return None, "no two hosts have the same public address"
    ranges = sorted(
        (public, min(seen), max(seen), host) for (public, host), seen in ports.items()
    )
    shared = [(a, b) for a, b in pairwise(ranges) if a[0] == b[0]]
    for (public, _, last, host), (_, first, _, other) in shared:
        if first <= last:
            return None, f"no: at {public} ports of {host} and {other} mix"
    steps = Counter(b[1] - a[1] for a, b in shared)
    size = math.gcd(*steps)
    each = f"; every {size:,} ports one begins" if steps[size] else ""
    widest = max(last - first + 1 for _, first, last, _ in ranges)
    apart = f"each host's ports stand apart, {widest:,} wide at the most{each}"
    if not each or size < widest:
        return None, apart
    return None, f"{apart}; {_formula({h: (p, f) for p, f, _, h in ranges}, size)}"


def _formula(blocks: Mapping[str, tuple[str, int]], size: int) -> str:
    """Whether the number of the host says which block it has (RFC 7422 2).

    Args:
        blocks: public address and first port of each host.
        size: from one block to the next.
    """
    numbers = {host: int(ipaddress.ip_address(host)) for host in blocks}
    apart = math.gcd(*(b - a for a, b in pairwise(sorted(numbers.values()))))
    lowest = min(first for _, first in blocks.values())
    publics = sorted({public for public, _ in blocks.values()})
    places = {
        host: (publics.index(public), (first - lowest) // size)
        for host, (public, first) in blocks.items()
    }
    full = 1 + max(block for _, block in places.values())
    kinds = {
        "the next host has the next block": (full, 1),
        "the next host has the next address, and behind the last one the next block": (
            (1, len(publics))
        ),
    }
    found = []
    for words, (of_address, of_block) in kinds.items():
        # So far each host's place is from its number: all alike, if that is the rule.
        off = {
            host: address * of_address + block * of_block - numbers[host] // apart
            for host, (address, block) in places.items()
        }
        (usual, count), *_ = Counter(off.values()).most_common()
        found.append((count, words, [host for host in off if off[host] != usual]))
    count, words, others = max(found, key=lambda each: each[0])
    if 2 * count <= len(blocks):
        return "no formula gives a host's block"
    if others:
        return f"{words}, but for {len(others):,} hosts, one of them {others[0]}"
    return f"{words} (RFC 7422 2)"


# Measuring.


def measure_nat_behaviour(
    runner: DeviceTrials, cell: Cell, limit: MaxRate
) -> CellResult:
    """Open connections, look what became of them, answer from several ends.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    tests = Establishing(runner, cell, 1)
    told = _told(runner, cell, tests)
    if isinstance(told, Reason):
        repeat = RepeatResult(
            value=None, verdict="invalid", reasons=[told], trials=tests.trials
        )
    else:
        said = [each.verdict for each in told]
        known = said.count("met") + said.count("not met")
        value = 100 * said.count("met") / known if known else 0.0
        repeat = RepeatResult(
            value=value, verdict="pass", reasons=[], trials=tests.trials
        )
    return CellResult(
        **of_cell(cell, limit),
        **of_repeats([repeat], bounds.overall([repeat])),
        quantity="requirements met, of those that these connections say something of",
        behaviour=[] if isinstance(told, Reason) else told,
    )


def _told(
    runner: DeviceTrials, cell: Cell, tests: Establishing
) -> list[Behaviour] | Reason:
    stateful = stateful_of(cell)
    rate_per_s = cell.spec_of(NatBehaviourSpec).stateful.phase1_rate
    reason = tests.spoilt_at(rate_per_s)
    for _ in range(ATTEMPTS):
        try:
            opened = tests.both(stateful, rate_per_s)
        except NoUseError:
            return tests.spoilt_at(rate_per_s)
        found = _answered(runner, cell, opened, rate_per_s)
        if not isinstance(found, Reason):
            return found
        reason = found
    return reason


def _answered(
    runner: DeviceTrials, cell: Cell, opened: Opened, rate_per_s: int
) -> list[Behaviour] | Reason:
    """What all trials of one test say; why they say nothing."""
    if opened.back is None:
        return not_opened(opened.first)
    if opened.back.result.verdict.kind != "pass":
        said = "; ".join(r.message for r in opened.back.result.verdict.reasons)
        return Reason(
            code="frames_lost",
            message=f"answers to open connections do not arrive: {said}",
            hint="take fewer connections, or a lower --phase1-rate",
        )
    mapped, let_in = mapped_of(opened.first), []
    for shape in (_from_port, partial(_from_address, mapped=mapped)):
        if not runner.can_check():
            return Reason(code="phase1_failed", message="the connections are gone")
        record = runner.run(_ask(cell, shape, rate_per_s))
        if record.result.verdict.kind == "invalid":
            return record.result.verdict.reasons[0]
        (stream,) = record.result.directions[0].streams
        let_in.append(LetIn(stream.sent, stream.received))
    return judged(mapped, *let_in)


Elsewhere = Callable[[TrialRequest, TrialRequest, Stateful], TrialRequest]


def _ask(cell: Cell, elsewhere: Elsewhere, rate_per_s: int) -> Ask:
    """An answer to each connection, by somebody else."""
    stateful = stateful_of(cell)

    def shape(request: TrialRequest) -> TrialRequest:
        return elsewhere(request, validation(request, stateful), stateful)

    reverse = cell.model_copy(update={"direction": stateful.responder_direction})
    return Ask(
        reverse,
        rate_per_s,
        shape=shape,
        continues=True,
        attempts=1,
        role="validation",
    )


def _from_port(
    _: TrialRequest, answers: TrialRequest, stateful: Stateful
) -> TrialRequest:
    """Behind those to which connections were opened."""
    first, last = stateful.destinations
    return _moved(answers, {"port_added": last - first + 1})


def _from_address(
    request: TrialRequest, answers: TrialRequest, _: Stateful, mapped: Sequence[Mapped]
) -> TrialRequest:
    """Behind those to which connections were opened, and none of the device's."""
    stream = request.directions[0].streams[0]
    of = ipaddress.IPv4Address if stream.ip_version == 4 else ipaddress.IPv6Address
    size = 1
    for varied in stream.vary:
        if varied.field == "src_ip":
            bits = field_bits(varied.field, stream.ip_version)
            last_bit = bits - varied.offset - varied.width
            size = varied.size << last_bit
    opened = {int(of(m.remote.address)) for m in mapped}
    taken = opened | {int(of(m.public.address)) for m in mapped}
    taken.add(int(of(stream.next_hop or stream.src_ip)))
    added = size
    while taken & {address + added for address in opened}:
        added += size
    return _moved(answers, {"address_added": str(of(added))})


def _moved(answers: TrialRequest, how: dict[str, object]) -> TrialRequest:
    data = answers.model_dump()
    data["directions"][0]["streams"][0]["tuples"] |= how
    return TrialRequest.model_validate(data)


# Shown.


_TOLD = ("met", "not met")
NOTE = (
    "Of these connections: other numbers of hosts, or a pool that is full, may show "
    "another behaviour"
)


def _figures(key: str, cells: Sequence[Subject]) -> Table:
    """A row for each NAT."""
    columns: Columns[Subject] = (
        (
            Column("traffic", "IP versions, hosts.", spared=6, words=True),
            lambda cell: f"{cell.versions}{cell.at}",
        ),
        (
            Column("met", "Of what could be told.", tone="strong"),
            lambda cell: cell.figure,
        ),
        (
            Column("could be told", "Requirements of RFC 4787."),
            lambda cell: count(
                len([b for b in _behaviour(cell) if b.verdict in _TOLD])
            ),
        ),
        *ENDING,
    )
    return Table(
        key=key,
        title=title(cells),
        columns=heads(columns),
        rows=rows(columns, cells, lambda cell: cell.id),
        notes=(NOTE,),
    )


def _behaviour(cell: Subject) -> Sequence[Behaviour]:
    return cell.result.behaviour if cell.result else []


def behaviour_tables(cell: Subject) -> Iterable[Table]:
    """What each RFC asks for, and what was seen."""
    columns: Columns[Behaviour] = (
        (
            Column("RFC", "And requirement or section.", words=True),
            lambda b: f"{b.rfc} {b.section}",
        ),
        (Column("level", "How strong.", words=True), lambda b: b.level or ""),
        (Column("asks for", "In short.", words=True), lambda b: b.asks),
        (
            Column("verdict", "Of what was seen.", words=True, tone="strong"),
            lambda b: b.verdict or "",
        ),
        (Column("seen", "With ends that show it.", words=True), lambda b: b.found),
    )
    if behaviour := _behaviour(cell):
        yield Table(
            key=f"behaviour-{cell.id}",
            title=f"{cell.name}: what it does, and what RFCs ask for",
            columns=heads(columns),
            rows=rows(columns, behaviour),
            notes=(NOTE,),
        )


def _meaning(cell: CellView) -> str:  # noqa: ARG001 - the same for all
    return "Of what RFCs ask a NAT for, so much was seen to be met"


SECTION = Section("nat", Panel)
"""Of all procedures with such tables."""
METHOD = Method(
    "nat-behaviour",
    OnConnections(measure_nat_behaviour),
    _meaning,
    table=_figures,
    tables=behaviour_tables,
    section=SECTION,
)
