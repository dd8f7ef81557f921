"""Why connections are missing: what phase 1, phase 2 and a validation say of it."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator, Sequence

from dutperf.config.phase2 import USABLE_PORTS, Timing
from dutperf.model.stateful_keys import Stateful
from dutperf.procedures.events import Notice
from dutperf.procedures.trials import DeviceTrials
from dutperf.protocol.result_messages import Reason, StreamResult, TrialResult
from dutperf.protocol.stream_messages import StreamRequest
from dutperf.results.trial_record import HookRun, TrialRecord
from dutperf.stats.survival import Ranges, in_both, survivors

_EMPTIES = {"bulk_delete", "before_trial"}
_FEW_SHARE = 1 / 5000
"""Of the frames of phase 1; fewer that are lost here and there are single ones."""
_PORTS_SHARE = 0.02
"""How near to all public ports the connections that were opened are at least."""


def phase1_reasons(
    record: TrialRecord, stateful: Stateful, timing: Timing
) -> list[Reason]:
    """Why phase 2 must not start; empty: all connections were opened and learned."""
    result, table = record.result, record.result.table
    if elsewhere := unexpected_reasons(record, stateful):
        return elsewhere
    begin = f"phase 1, {stateful.connections:,} connections at {timing.rate_fps:,} fps"
    match result.verdict.kind:
        case "invalid":
            return [
                Reason(
                    code="phase1_failed",
                    message=f"{begin}: {reason.message}",
                    hint=reason.hint,
                )
                for reason in result.verdict.reasons
            ]
        case "fail":
            told = "; ".join(_losses(result))
            why, hint = _why_lost(record, stateful)
            message = f"{begin}, lost frames: {told}; {why}"
            return [Reason(code="phase1_failed", message=message, hint=hint)]
        case "pass":
            if table and table.filled < stateful.connections:
                message = f"{begin}: only {table.filled:,} of them were learned"
                return [Reason(code="phase1_failed", message=message, hint=_MAPPED)]
            return []


def unexpected_reasons(record: TrialRecord, stateful: Stateful) -> list[Reason]:
    """Frames with other addresses or numbers than they should have; empty: none."""
    table, tcp = record.result.table, record.result.tcp
    if tcp and tcp.initiator.renumbered:
        return [_renumbered(tcp.initiator.renumbered, proxied=tcp.initiator.proxied)]
    if tcp and _came_as_sent(record):
        return [_not_translated(record.request.directions[0].streams[0].src_ip)]
    if table is None:
        return []
    seen = table.source_example
    if stateful.translates and seen and _is_initiators(seen, record, stateful):
        return [_not_translated(seen)]
    if not table.unexpected:
        return []
    return [
        Reason(
            code="unexpected_address",
            message=f"{table.unexpected:,} frames came from other addresses than "
            f"{stateful.public_addresses or 'those of the IP version'}, for example "
            f"{table.unexpected_example}",
            hint="correct stateful.public_addresses, or the device's pool of addresses",
        )
    ]


def _renumbered(connections: int, *, proxied: int) -> Reason:
    """Of connections that nobody but the device knows how to go on with."""
    whose = "changes sequence numbers"
    if proxied:
        whose = "answers SYNs itself (SYN proxy)"
    return Reason(
        code="renumbered",
        message=f"the device {whose}, of {connections:,} connections: what a later "
        "trial sends on them, the device would not know",
        hint="switch that off, or measure tcp-connection-rate, whose connections come "
        "to their end in one trial",
    )


def _came_as_sent(record: TrialRecord) -> bool:
    """Whether all that came of a trial that opens connections was not translated."""
    request, tcp = record.request.tcp, record.result.tcp
    if request is None or tcp is None or request.begin != "syn":
        return False
    return tcp.responder.untranslated > 0 and not tcp.segments[0].received


def _not_translated(address: str) -> Reason:
    return Reason(
        code="not_translated",
        message="this device does not translate: the responder saw frames of the "
        f"initiator's own address, {address}",
        hint="a router or a stateful firewall is not a NAT gateway (RFC 9693): are its "
        "rules in place? To measure a firewall all the same, write translates: false "
        "into the testbed",
    )


def _is_initiators(address: str, record: TrialRecord, stateful: Stateful) -> bool:
    """Whether the initiator sends from it, as the trial was asked for."""
    streams = [
        direction.streams[0]
        for direction in record.request.directions
        if direction.name == stateful.direction
    ]
    return any(_sends_from(stream, address) for stream in streams)


def _sends_from(stream: StreamRequest, address: str) -> bool:
    """By what stands where nothing varies, and the range of what does."""
    own, seen = map(ipaddress.ip_address, (stream.src_ip, address))
    if own.version != seen.version:
        return False
    differing = int(own) ^ int(seen)
    for varied in stream.vary:
        if varied.field != "src_ip":
            continue
        shift = own.max_prefixlen - varied.offset - varied.width
        bits = (1 << varied.width) - 1
        if not varied.min <= int(seen) >> shift & bits <= varied.max:
            return False
        differing &= ~(bits << shift)
    return differing == 0


def forgotten_reasons(
    record: TrialRecord, stateful: Stateful, timing: Timing
) -> list[Reason]:
    """Connections of which phase 2 showed another mapping: they were opened anew."""
    table = record.result.table
    if elsewhere := unexpected_reasons(record, stateful):
        return elsewhere
    untranslated = sum(port.untranslated for port in record.result.ports)
    if untranslated:
        told = (
            f"{untranslated:,} segments came with the initiator's own address: the "
            "device does not know their connections any more"
        )
        return [_expired(told, stateful, timing)]
    if table is None or not table.changed:
        return []
    told = f"{table.changed:,} times a connection was opened anew in phase 2"
    return [_expired(told, stateful, timing)]


def expired_reasons(
    checks: Sequence[TrialRecord], stateful: Stateful, timing: Timing
) -> list[Reason]:
    """What one validation after phase 2 or more say; empty: no connection is gone.

    A frame that arrived damaged came through a connection that is there, and so did
    each that another validation got back: a device that loses a frame now and then at
    any rate loses those of other connections each time.
    """
    check = checks[-1]
    stream = _foreground(check.result)
    silent = min(stream.lost - stream.corrupt, _silent_in_all(checks))
    if check.result.verdict.kind != "fail" or silent <= 0:
        return []
    told = (
        f"of {stream.sent:,} connections {silent:,} let no frame back any more "
        "right after the trial"
    )
    return [_expired(told, stateful, timing)]


def _silent_in_all(checks: Sequence[TrialRecord]) -> int:
    """How many connections, at most, let no frame back in any validation."""
    streams = [_foreground(check.result) for check in checks]
    known: Ranges = [(0, streams[0].sent)]
    for stream in streams:
        survival = stream.survival
        if survival is not None and not survival.more_ranges:
            known = in_both(known, survival.lost_ranges)
    return min(sum(count for _, count in known), *(s.lost for s in streams))


def lost_answers(record: TrialRecord, stateful: Stateful) -> bool:
    """Whether frames of the responder were lost that needed a connection.

    One that arrived damaged had it.
    """
    return any(
        direction.name == stateful.responder_direction
        and direction.streams[0].lost > direction.streams[0].corrupt
        for direction in record.result.directions
    )


def _expired(told: str, stateful: Stateful, timing: Timing) -> Reason:
    known_s = stateful.dut_timeout_s
    said = f"; it was said to be {known_s:g} s" if known_s else ""
    return Reason(
        code="connections_expired",
        message=f"connections expired: {told}; this is not a lack of speed",
        hint=f"raise the device's UDP timeout to at least {timing.dut_timeout_s:.4g} s"
        f"{said}; if it is that long, its table is too small for "
        f"{stateful.connections:,} connections",
    )


def _losses(result: TrialResult) -> Iterator[str]:
    for direction in result.directions:
        several = len(direction.streams) > 1
        for stream in direction.streams:
            if stream.lost or not several:
                name = f"{stream.name}: " if several else ""
                yield f"{name}{stream.lost:,} of {stream.sent:,}"


def _why_lost(record: TrialRecord, stateful: Stateful) -> tuple[str, str]:
    """Cause, as far as it shows, and what to do."""
    stream = _foreground(record.result)
    if stream.received == 0:
        return "none was forwarded", _NOTHING
    emptied = any(run.moment in _EMPTIES for run in record.hooks)
    no_hook = "" if emptied else f"; {_NOT_EMPTIED}"
    if stream.lost == 0:
        return "only background was lost", _SLOWER
    opened = _opened_first(stream)
    if opened is None and stream.lost <= _FEW_SHARE * stream.sent:
        return "single ones here and there", f"{_SINGLE}{no_hook}"
    if opened is None:
        return "here and there: R is too high", f"{_SLOWER}{no_hook}"
    addresses = stateful.expected.count if stateful.expected else 1
    ports = addresses * USABLE_PORTS
    if stateful.mappings > ports and abs(opened - ports) <= _PORTS_SHARE * ports:
        why = f"after {opened:,}: as many as there are public ports"
        return (
            why,
            f"give the device more public addresses, or narrow the ports{no_hook}",
        )
    why = f"all after the first {opened:,}: the table is full, or public ports ran out"
    return why, f"{_TABLE}{no_hook}"


def _opened_first(stream: StreamResult) -> int | None:
    """How many were opened before no more were; None: it was not like that."""
    survival = stream.survival
    if survival is None or survival.more_ranges:
        return None
    refused = sum(count for _, count in survival.lost_ranges)
    found = survivors(stream.sent, survival.lost_ranges, refused)
    return found.border if found.policy == "keeps_first" else None


def _foreground(result: TrialResult) -> StreamResult:
    return result.directions[0].streams[0]


_NOTHING = (
    "does the device forward what the initiator sends? see its addresses, routes and "
    "rules, and which side is stateful.initiator"
)
_SLOWER = (
    "lower stateful.phase1_rate (--phase1-rate), safely below what connection-rate "
    "finds"
)
_SINGLE = (
    "open fewer connections if a lower stateful.phase1_rate (--phase1-rate) loses as "
    "many: the device then loses a few at any rate, as translators do that spoil UDP "
    "checksums"
)
_TABLE = (
    "raise the device's limit of connections, or open fewer; table-capacity finds how "
    "many it holds"
)
_NOT_EMPTIED = "no hook empties the table before each trial (hooks: bulk_delete)"
_MAPPED = (
    "does the device forward each frame unchanged but for its addresses and ports?"
)


# The device's own count of connections beside what the tester believes.
#
# All frames of phase 1 arrived, so all connections should be there. A device that
# counts fewer has forgotten some already, or forwards without remembering: what RFC
# 9693 4.6 validates is seen at once. Where no hook counts, nothing is asked.


_TOLERANCE = 0.01
"""Of the connections: what a device may have beside them, or already have lost."""


def number_in(run: HookRun) -> int | None:
    """The first number that a hook printed."""
    found = re.search(r"[0-9]+", run.output)
    return int(found.group()) if found else None


def agrees(counted: int, connections: int) -> bool:
    """Whether a device that counts so many may have just these connections."""
    return abs(counted - connections) <= _TOLERANCE * connections


class Counting:
    """Asks for the device's count after phase 1; tells once where it is another one."""

    def __init__(self, runner: DeviceTrials) -> None:
        self._runner = runner
        self._told = False

    def ask(self, result: TrialResult) -> list[HookRun]:
        """For ``Trials.run``, as what is done right after a trial."""
        hook = self._runner.hooks.table_count
        if hook is None or result.verdict.kind != "pass":
            return []
        return self._runner.run_hooks([hook], "table_count")

    def compare(self, record: TrialRecord, stateful: Stateful) -> None:
        """Tell whoever watches of a count that is not that of the connections."""
        asked = [run for run in record.hooks if run.moment == "table_count"]
        counted = number_in(asked[0]) if asked else None
        if counted is None or self._told or agrees(counted, stateful.connections):
            return
        if record.earlier and counted >= stateful.connections:
            return  # those of earlier tests are known to be there
        self._told = True
        self._runner.on_event(
            Notice(
                f"trial {record.number}: {stateful.connections:,} connections were "
                f"opened, but the device counts {counted:,} right after: it has "
                "forgotten some, or never remembered them"
                if counted < stateful.connections
                else f"trial {record.number}: the device counts {counted:,} "
                f"connections, of which this test opened {stateful.connections:,}: "
                "its table was not empty"
            )
        )
