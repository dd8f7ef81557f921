"""What a DNS server counted of a trial, by what the testbed's hooks printed.

Its counters go on, so they are read before a trial and after it, by one command:

* Unbound: ``unbound-control stats_noreset``;
* BIND 9: ``/json/v1/server`` of its statistics channel.

Of a trial that passed they have to be those of the tester, each of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from dutperf.protocol.result_messages import DnsResult
from dutperf.results.model import CellResult
from dutperf.results.rate_results import Finding
from dutperf.results.trial_record import HookRun, TrialRecord


class ServerCounts(NamedTuple):
    """What it counted by itself."""

    queries: int
    """That clients asked."""
    looked_up: int
    """Of these, that its cache had no answer to."""
    asked: int | None
    """Queries of its own to authorities; None: it does not tell (Unbound)."""


def server_counts(hooks: Sequence[HookRun]) -> ServerCounts | None:
    """Of one trial; None: no hook tells, or it was started anew meanwhile."""
    before = {
        (*run.command, run.host): found
        for run in hooks
        if run.moment == "before_trial" and (found := read_counts(run.output))
    }
    for run in hooks:
        began = before.get((*run.command, run.host))
        ended = read_counts(run.output) if run.moment == "after_trial" else None
        if began and ended and all(map(_is_later, began, ended)):
            asked = None if ended.asked is None else ended.asked - (began.asked or 0)
            queries, looked_up, _ = ended
            return ServerCounts(
                queries - began.queries, looked_up - began.looked_up, asked
            )
    return None


def _is_later(before: int | None, after: int | None) -> bool:
    return (before or 0) <= (after or 0)


_UNBOUND = re.compile(r"^total\.num\.(queries|cachemiss)=(\d+)$", re.M)


def read_counts(text: str) -> ServerCounts | None:
    """Of all since the server runs; None: it is neither's output."""
    told = dict(_UNBOUND.findall(text))
    if len(told) == 2:
        return ServerCounts(int(told["queries"]), int(told["cachemiss"]), None)
    try:
        server = json.loads(text)
        views = [view for name, view in server["views"].items() if name != "_bind"]
        resolvers = [view["resolver"]["stats"] for view in views]
        # A counter that is 0 is left out, and so are all of them if each is.
        own = server.get("nsstats", {})
        return ServerCounts(
            _sum(own, "Requestv4", "Requestv6"),
            _sum(own, "QryRecursion"),
            sum(_sum(each, "Queryv4", "Queryv6") for each in resolvers),
        )
    except (ValueError, LookupError, TypeError, AttributeError):
        return None


def _sum(counters: dict[str, int], *names: str) -> int:
    return sum(int(counters.get(name, 0)) for name in names)


def beside_server_counts(
    result: CellResult, records: Iterable[TrialRecord]
) -> CellResult:
    """The result with a finding, if the server contradicts trials of it that passed."""
    passed = [
        (record, record.result.dns, counts)
        for record in records
        if record.cell == result.id
        and record.role == "trial"
        and record.result.verdict.kind == "pass"
        and record.result.dns
        and (counts := server_counts(record.hooks))
    ]
    told = [
        f"trial {record.number}: {'; '.join(differences)}"
        for record, dns, counts in passed
        if (differences := list(_differences(record, dns, counts)))
    ]
    if not told:
        return result
    finding = Finding(
        kind="contradiction",
        of=result.procedure,
        message=f"in {len(told)} of {len(passed)} trials that passed the server's own "
        f"counters are not the tester's ({told[0]})",
        unit=result.unit,
    )
    return result.model_copy(update={"findings": [*result.findings, finding]})


def _differences(
    record: TrialRecord, dns: DnsResult, counts: ServerCounts
) -> Iterator[str]:
    """Queries that were lost, as a tolerance allows, may be in its counts or not."""
    frames = [s for way in record.result.directions for s in way.streams]
    sent = sum(stream.sent for stream in frames)
    lost = sum(stream.lost for stream in frames)
    if not sent - lost <= counts.queries <= sent:
        yield f"it counted {counts.queries:,} queries, and {sent:,} were sent"
    own = sent - dns.valid_cached
    if not own - lost <= counts.looked_up <= own:
        yield (
            f"it looked {counts.looked_up:,} names up, and {own:,} were not to be in "
            "its cache"
        )
    kinds = (dns.asked_aaaa, dns.asked_a)
    asked = sum(kind.names + kind.again + kind.cached for kind in kinds)
    asked += dns.unknown_queries + dns.damaged_queries
    # More than came: what was lost on the way, and is asked for again.
    if counts.asked is not None and counts.asked < asked:
        yield f"it asked {counts.asked:,} times, and {asked:,} questions came"
