"""How many ports and sessions a NAT lets a host have, and who pays (RFC 6888 REQ-4).

Each host opens more connections than it may have, one host after the other; then each
connection is used once more. What works of each host tells its limit, by one test:

    ports 10000 ...          ports 10000 ...
    to :80    works | lost   to :81    works | lost    so many ports
    to :80    works | lost   to :81    lost            so many sessions

One host's limit might be the size of a table. Several hosts that get the same have a
limit each; where the first one gets all, and the last one nothing, there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from dutperf.charts.cells import CellView
from dutperf.charts.text import whole
from dutperf.model.cell import Cell
from dutperf.model.specs import ObservedKeys
from dutperf.model.stateful_keys import Stateful
from dutperf.procedures.cell_results import of_cell, of_repeats
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.method import Method, OnConnections
from dutperf.procedures.stateful.connection_rate import (
    lost_of,
    opened_and_used,
    survival,
)
from dutperf.procedures.stateful.establishing import (
    Establishing,
    Opened,
    not_opened,
    stateful_of,
)
from dutperf.procedures.stateful.nat_behaviour import (
    NOTE,
    SECTION,
    Found,
    behaviour,
    behaviour_tables,
)
from dutperf.procedures.trials import DeviceTrials
from dutperf.protocol.result_messages import Reason
from dutperf.results.details import Behaviour
from dutperf.results.model import CellResult
from dutperf.results.rate_results import RepeatResult
from dutperf.stats.survival import Ranges
from dutperf.tables.result_tables import ENDING, title
from dutperf.tables.subject import Subject
from dutperf.tables.table_model import Column, Columns, Table, count, heads, rows

# What became of each host's connections.


Shape = Literal["all", "none", "ports", "sessions", "oldest", "unclear"]


class Share(NamedTuple):
    """What works of a host's connections.

    shape: ports: the first ones to each remote port; sessions: the first ones of all;
        oldest: the last ones of all.
    sessions: how many work.
    ports: from how many of its ports one works at least.
    """

    host: str
    shape: Shape
    sessions: int
    ports: int


def share_of(host: str, lost: Ranges, ports: int, remotes: int) -> Share:
    """What a host has that opened ``ports`` connections to each of ``remotes`` ports.

    Args:
        host: its address.
        lost: ranges of its connections, from 0 on, rising, without overlap.
        ports: how many change, for each remote port.
        remotes: how many of these there are.
    """
    total = ports * remotes
    sessions = total - sum(number for _, number in lost)
    of_each = [
        [
            (max(first, begin) - begin, min(first + number, begin + ports) - begin)
            for first, number in lost
            if first < begin + ports and begin < first + number
        ]
        for begin in range(0, total, ports)
    ]
    # A port works if it does towards one of them: lost are those lost towards all.
    gone = _in_all(of_each)
    return Share(
        host,
        _shape(lost, of_each, ports, total),
        sessions,
        ports - sum(end - first for first, end in gone),
    )


def _shape(lost: Ranges, of_each: Sequence[Ranges], ports: int, total: int) -> Shape:
    if not lost:
        return "all"
    (first, number), several = lost[0], len(lost) > 1
    if not several and number == total:
        return "none"
    tail = of_each[0]
    alike = len(of_each) > 1 and all(each == tail for each in of_each)
    if alike and len(tail) == 1 and tail[0][0] > 0 and tail[0][1] == ports:
        return "ports"
    if several:
        return "unclear"
    if first + number == total:
        # All towards some remote ports, and none towards others: that is no number.
        return "unclear" if first % ports == 0 else "sessions"
    return "oldest" if first == 0 else "unclear"


def _in_all(each: Sequence[Ranges]) -> Ranges:
    """What all have in common, as first and end."""
    common = list(each[0])
    for other in each[1:]:
        common = [
            (max(a, c), min(b, d))
            for a, b in common
            for c, d in other
            if max(a, c) < min(b, d)
        ]
    return common


# What that says of the device.


def judged(shares: Sequence[Share], ports: int, remotes: int) -> list[Behaviour]:
    """Whether ports and sessions of a host are limited, and what the others get."""
    limit = "a limit of external ports for each host"
    state = "a limit of sessions for each host"
    return [
        behaviour("RFC 6888", "REQ-4", "MUST", limit, _of_ports(shares, ports)),
        behaviour(
            "RFC 6888", "REQ-5", "SHOULD", state, _of_sessions(shares, ports * remotes)
        ),
        behaviour("RFC 6888", "3", None, "what the others get", (None, _got(shares))),
    ]


def limit_of(shares: Sequence[Share], ports: int) -> int | None:
    """The ports that each host may have; None: no such limit was seen.

    Hosts after the last one that got so many may have less: then a table is full.
    """
    most = shares[0]
    alike = [share for share in shares if share[1:] == most[1:]]
    others = shares[len(alike) :]
    if len(alike) < 2 or alike != list(shares[: len(alike)]) or most.ports >= ports:
        return None
    if most.shape not in ("ports", "sessions", "oldest"):
        return None
    return None if any(share.ports > most.ports for share in others) else most.ports


def _of_ports(shares: Sequence[Share], ports: int) -> Found:
    limit = limit_of(shares, ports)
    most = max(share.ports for share in shares)
    if limit is not None:
        return "met", f"{limit:,} of {ports:,} ports, {_which(shares)}"
    if all(share.ports == ports for share in shares):
        return "cannot tell", f"each host got all {ports:,} ports: let it have more"
    if len(shares) == 1:
        return "cannot tell", f"{most:,} of {ports:,}, as one host alone: take several"
    return "cannot tell", _got(shares)


def _of_sessions(shares: Sequence[Share], total: int) -> Found:
    first = shares[0]
    alike = len(shares) > 1 and len({share[1:] for share in shares}) == 1
    if alike and first.shape in ("sessions", "oldest"):
        return "met", f"{first.sessions:,} of {total:,}, {_which(shares)}"
    if all(share.shape == "all" for share in shares):
        return "cannot tell", f"each host got all {total:,}: let it have more"
    return "cannot tell", _got(shares)


def _which(shares: Sequence[Share]) -> str:
    """Whose they are, and which ones of those that it opened."""
    alike = sum(share[1:] == shares[0][1:] for share in shares)
    hosts = f"each of {alike} hosts"
    if alike < len(shares):
        hosts = f"each of the first {alike} of {len(shares)} hosts"
    return {
        "ports": f"{hosts}: the first ones, to each remote port",
        "sessions": f"{hosts}: the first sessions that it opened",
        "oldest": f"{hosts}: the last sessions that it opened, older ones were dropped",
    }.get(shares[0].shape, hosts)


def _got(shares: Sequence[Share]) -> str:
    if len({share[1:] for share in shares}) == 1:
        each = shares[0]
        return (
            f"each of {len(shares)} hosts has {each.sessions:,} sessions from "
            f"{each.ports:,} ports"
        )
    told = [f"{s.host} {s.sessions:,} ({s.shape})" for s in shares]
    if len(told) > _MOST_HOSTS:
        told = [*told[: _MOST_HOSTS - 1], "...", told[-1]]
    return "sessions: " + ", ".join(told)


_MOST_HOSTS = 8


# Measuring.


def measure_port_limit(runner: DeviceTrials, cell: Cell, limit: MaxRate) -> CellResult:
    """Open more connections than a host may have, and use each once.

    Raises:
        EngineError, SetupError: see ``Trials.run``.
    """
    tests, stateful = Establishing(runner, cell, 1), stateful_of(cell)
    rate_per_s = cell.spec_of(ObservedKeys).stateful.phase1_rate
    opened = opened_and_used(tests, stateful, rate_per_s)
    shares = _shares(opened, stateful) if opened else tests.spoilt_at(rate_per_s)
    ports, remotes = stateful.port_numbers
    if isinstance(shares, Reason):
        told = []
        repeat = RepeatResult(
            value=None, verdict="invalid", reasons=[shares], trials=tests.trials
        )
    else:
        told = judged(shares, ports, remotes)
        known, most = limit_of(shares, ports), max(share.ports for share in shares)
        # What a host still has of a run before counts against its limit, unseen.
        is_exact = known is not None and stateful.is_emptied
        repeat = RepeatResult(
            value=most if known is None else known,
            verdict="pass",
            bound=None if is_exact else "lower",
            bound_cause="set" if known is None and most == ports else None,
            trials=tests.trials,
        )
    return CellResult(
        **of_cell(cell, limit),
        **of_repeats([repeat]),
        quantity="ports of a host that work, of more than it may have (RFC 6888 REQ-4)",
        behaviour=told,
    )


def _shares(opened: Opened, stateful: Stateful) -> list[Share] | Reason:
    """Of each host; why that is not known."""
    if opened.back is None:
        return not_opened(opened.first)
    first, back = survival(opened.first.result), survival(opened.back.result)
    lost = lost_of(first, back) if first and back else None
    if lost is None:
        return _SCATTERED
    ports, remotes = stateful.port_numbers
    stream = opened.first.request.directions[0].streams[0]
    begin = stream.tuples.first if stream.tuples else 0
    each, shares = ports * remotes, []
    for number in range(0, stateful.connections, each):
        host, *_ = stream.ends_of(begin + number)
        own = [
            (
                max(one, number) - number,
                min(one + many, number + each) - max(one, number),
            )
            for one, many in lost
            if one < number + each and number < one + many
        ]
        shares.append(share_of(host, own, ports, remotes))
    if all(share.shape == "none" for share in shares):
        return Reason(
            code="nothing_passed", message="no connection works", hint=_SLOWER
        )
    return shares


_SLOWER = (
    "does it forget connections before they are used (a shorter timeout than the test "
    "takes)? Open fewer, or faster: --phase1-rate"
)
_SCATTERED = Reason(
    code="frames_lost",
    message="connections are lost here and there, in more places than are listed",
    hint="open them slower: --phase1-rate",
)


# Shown.


def _figures(key: str, cells: Sequence[Subject]) -> Table:
    """A row for each NAT."""
    columns: Columns[Subject] = (
        (
            Column("traffic", "IP versions, frame size.", spared=6, words=True),
            lambda cell: f"{cell.versions}, {cell.sizes}{cell.at}",
        ),
        (
            Column("hosts", "Who opened connections, one after the other."),
            lambda cell: count(cell.opened.source_addresses if cell.opened else None),
        ),
        (
            Column("ports tried", "Of each host."),
            lambda cell: count(cell.opened.port_numbers[0] if cell.opened else None),
        ),
        (
            Column("ports", "That a host may have.", tone="strong"),
            lambda cell: cell.figure,
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


def _meaning(cell: CellView) -> str:
    tried = cell.opened.port_numbers[0] if cell.opened else 0
    return f"Ports that a host may have, {whole(tried)} tried"


METHOD = Method(
    "port-limit",
    OnConnections(measure_port_limit),
    _meaning,
    table=_figures,
    tables=behaviour_tables,
    section=SECTION,
)
