"""Where a test's four-tuples begin, if no hook empties the device's table.

A connection that the device knows already costs it nothing: a test that opens the same
ones again measures something else. So each test takes those that follow the ones of
all tests before, of this run and of others on the same ports, as long as the
enumeration has some and the table has room for what the device may not have forgotten.
Else it waits for the device's timeout; where that is not known, nothing is promised.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError

from dutperf.config import Testbed
from dutperf.config.cell_checks import empties_table
from dutperf.errors import DutperfError, SetupError
from dutperf.model.cell import Cell
from dutperf.model.specs import CapacitySearchKeys
from dutperf.model.stateful_keys import Stateful
from dutperf.plain_files import read_plain
from dutperf.protocol.base import IpVersion
from dutperf.protocol.result_messages import Reason, ReasonCode
from dutperf.protocol.stream_messages import StreamRequest
from dutperf.protocol.stream_parts import Tuples
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results.model import CellResult
from dutperf.results.storage import storing, write_atomically
from dutperf.results.trial_record import Earlier, TrialRecord
from dutperf.results.units import Stored
from dutperf.run import connections_of, opens
from dutperf.run.engine_session import port_names
from dutperf.standards import Deviation

# Which connections a device may still know, kept from run to run (RFC 9693 4.4).
#
# Of a device whose table no hook empties. The file belongs to the ports of the tester
# that the device is behind, wherever the runs store their results.


DIRECTORY = Path("/var/lib/dutperf/connections")


class Opening(Stored):
    """Four-tuples of one test, in an enumeration: ``count`` from ``first`` on."""

    enumeration: str = Field(description="what tells one enumeration from another")
    ip_version: IpVersion = Field(description="the initiator's")
    first: int
    count: int
    until: float = Field(description="when the last frame of them was due, Unix time")

    @property
    def end(self) -> int:
        """The number after the last one."""
        return self.first + self.count


class OpeningsFile(Stored):
    """What is kept; ``following`` says of each enumeration where it goes on."""

    schema_version: Literal[1] = 1
    ports: list[str]
    openings: list[Opening] = Field(default=[])
    following: dict[str, int] = Field(default={})


def path_of(ports: Iterable[str], directory: Path = DIRECTORY) -> Path:
    """The file of these ports, which is called by what tells them from all others."""
    told = "\n".join(sorted(ports))
    return directory / f"{hashlib.sha256(told.encode()).hexdigest()[:16]}.json"


def load_openings(path: Path, ports: Iterable[str]) -> OpeningsFile:
    """What is kept there; nothing if there is no file.

    Raises:
        SetupError: it cannot be read.
    """
    try:
        return OpeningsFile.model_validate_json(read_plain(path))
    except FileNotFoundError:
        return OpeningsFile(ports=sorted(ports))
    except (OSError, ValidationError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not complete"
        raise SetupError(
            f"{path}: which connections the device may still know cannot be read: "
            f"{why}",
            "remove the file when the device's table is empty",
        ) from None


def save_openings(path: Path, kept: OpeningsFile) -> None:
    """Keep them; on disk when this returns.

    Raises:
        StorageError: the file system refused.
    """
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, kept.stored_text(indent=1) + "\n")


_MOST_KEPT = 1000
_REMAIN: ReasonCode = "connections_remain"
_TUPLE = ("src_ip", "dst_ip", "src_port", "dst_port")


class ConnectionsRemainError(DutperfError):
    """The device may know what a test would open, nobody knows for how long."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason.message, reason.hint)
        self.reason = reason


@dataclass(frozen=True)
class _TupleSpace:
    """All four-tuples that a stream could carry, in their order."""

    key: str
    ip_version: IpVersion
    combinations: int


class Openings:
    """What was opened on the tester's ports, and may still be known.

    Args:
        path: where it is kept from run to run; None: nowhere.
        ports: what tells the ports from all others.
        now: the time of day, in seconds; None: the clock's, as it is set now.

    Raises:
        SetupError: what is kept cannot be read.
    """

    def __init__(
        self,
        path: Path | None = None,
        ports: tuple[str, ...] = (),
        now: Callable[[], float] | None = None,
    ) -> None:
        self._path = path
        self._now = now or _time_of_day()
        kept = load_openings(path, ports) if path else OpeningsFile(ports=list(ports))
        self._ports = kept.ports
        self._known = list(kept.openings)
        self._following = dict(kept.following)
        self._last: Opening | None = None

    def placed(
        self, request: TrialRequest, cell: Cell, wait: Callable[[float, int], None]
    ) -> tuple[TrialRequest, Earlier | None]:
        """``request`` with four-tuples that the device does not know.

        Those of phase 2 are those of the phase 1 before it.

        Args:
            request: of a trial of ``cell``.
            cell: about connections.
            wait: passes so many seconds, for so many connections to be forgotten.

        Raises:
            ConnectionsRemainError: there are none.
        """
        stateful = cell.stateful
        count = connections_of(request)
        if stateful is None or count is None:
            return request, None
        if not opens(request):
            first = self._last.first if self._last else 0
            return begun_at(request, first), None
        found = _enumeration_of(request)
        empty = isinstance(cell.spec, CapacitySearchKeys)
        opening, at, known = self._next(found, count, stateful, empty=empty)
        wait_s = max(0.0, at - self._now())
        if wait_s:
            wait(wait_s, sum(each.count for each in self._known))
        self._last = opening
        return begun_at(request, opening.first), Earlier(
            connections=known, waited_s=round(wait_s, 3)
        )

    def used(self, request: TrialRequest, lasts_s: float) -> None:
        """The connections will have, or had, frames for so long from now on.

        Raises:
            StorageError: that cannot be kept.
        """
        if self._last is None or not _uses(request):
            return
        until = max(self._last.until, self._now() + lasts_s)
        last = self._last.model_copy(update={"until": until})
        if self._known and self._known[-1] == self._last:
            self._known.pop()
        self._known.append(last)
        self._following[last.enumeration] = last.end
        self._last = last
        self._keep()

    def forget(self) -> None:
        """The device was restarted: it knows nothing any more.

        Raises:
            StorageError: as above.
        """
        self._known.clear()
        self._last = None
        self._keep()

    def _next(
        self, of: _TupleSpace, count: int, stateful: Stateful, *, empty: bool
    ) -> tuple[Opening, float, int]:
        """What to open, when, and how many connections may be known by then."""
        lives_s = stateful.forgotten_after_s
        now = self._now()
        # No trial runs now: what is said to last longer ended early, or the clock was
        # set back.
        past = [e.model_copy(update={"until": min(e.until, now)}) for e in self._known]
        self._known = [each for each in past if each.until + lives_s > now]
        ends = sorted({each.until + lives_s for each in self._known} - {math.inf})
        for at in (now, *ends):
            left = [each for each in self._known if each.until + lives_s > at]
            first = self._first(of, count, left)
            known = sum(each.count for each in left)
            size = stateful.table_size
            full = known > 0 and (empty or size is None or known + count > size)
            if first is not None and not full:
                opening = Opening(
                    enumeration=of.key,
                    ip_version=of.ip_version,
                    first=first,
                    count=count,
                    until=at,
                )
                return opening, at, known
        raise ConnectionsRemainError(remain(sum(e.count for e in self._known)))

    def _first(self, of: _TupleSpace, count: int, left: list[Opening]) -> int | None:
        """Where the next so many begin; None: some of them may be known."""
        first = self._following.get(of.key, 0)
        if first + count > of.combinations:
            first = 0
        for each in left:
            if each.ip_version != of.ip_version:
                continue
            apart = each.end <= first or first + count <= each.first
            if each.enumeration != of.key or not apart:
                return None
        return first

    def _keep(self) -> None:
        if self._path is None:
            return
        kept = OpeningsFile(
            ports=self._ports,
            openings=_joined(self._known),
            following=self._following,
        )
        save_openings(self._path, kept)


def _time_of_day() -> Callable[[], float]:
    """A clock that nobody sets: else a device would seem to have forgotten by that."""

    def since_boot() -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    ahead = time.time() - since_boot()
    return lambda: since_boot() + ahead


def openings_of(testbed: Testbed) -> Openings | None:
    """What is known of the testbed's ports; None if a hook empties its device's table.

    Raises:
        SetupError: what is kept cannot be read.
    """
    if empties_table(testbed):
        return None
    ports = tuple(port_names(testbed))
    return Openings(path_of(ports) if ports else None, ports)


def beside_earlier(result: CellResult, records: Iterable[TrialRecord]) -> CellResult:
    """``result`` with what its tests began with, if no hook emptied the table."""
    own = [r.earlier for r in records if r.cell == result.id and r.earlier]
    if not own:
        return result
    most = max(each.connections for each in own)
    waited_s = round(sum(each.waited_s for each in own), 3)
    earlier = Earlier(connections=most, waited_s=waited_s)
    deviations = result.deviations
    if most:
        rule = "an empty connection tracking table before each test"
        actual = (
            f"up to {most:,} other connections of earlier tests were in it: the "
            "testbed has no hook that empties it"
        )
        not_empty = Deviation("RFC 9693 4.4", rule, actual, "text")
        deviations = [*deviations, not_empty]
    return result.model_copy(update={"earlier": earlier, "deviations": deviations})


def begun_at(request: TrialRequest, first: int) -> TrialRequest:
    """``request`` with the four-tuples of its enumeration from number ``first`` on."""
    count = connections_of(request)
    if first == 0 or count is None:
        return request
    once = Tuples(source="generated", count=count, order="once")

    def begun(stream: StreamRequest) -> StreamRequest:
        if not _enumerates(stream):
            return stream
        tuples = (stream.tuples or once).model_copy(update={"first": first})
        return stream.model_copy(update={"tuples": tuples})

    return _with_streams(request, begun)


def begun_like(request: TrialRequest, other: TrialRequest) -> TrialRequest:
    """``request`` with the four-tuples of ``other``, if that is of the same kind."""
    firsts = [
        stream.tuples.first
        for direction in other.directions
        for stream in direction.streams
        if _enumerates(stream) and stream.tuples
    ]
    return begun_at(request, firsts[0]) if firsts else request


def _with_streams(
    request: TrialRequest, change: Callable[[StreamRequest], StreamRequest]
) -> TrialRequest:
    directions = [
        direction.model_copy(update={"streams": [*map(change, direction.streams)]})
        for direction in request.directions
    ]
    return TrialRequest.model_validate(
        request.model_copy(update={"directions": directions}).model_dump()
    )


def _enumerates(stream: StreamRequest) -> bool:
    return stream.enumerates and not stream.is_learned


def _uses(request: TrialRequest) -> bool:
    """Whether its frames are of connections."""
    streams = [s for direction in request.directions for s in direction.streams]
    return any(stream.enumerates or stream.is_learned for stream in streams)


def _enumeration_of(request: TrialRequest) -> _TupleSpace:
    streams = [s for direction in request.directions for s in direction.streams]
    (stream,) = (each for each in streams if _enumerates(each))
    told = stream.model_dump(include={*_TUPLE, "id", "enumeration_order"})
    told["vary"] = [v.model_dump() for v in stream.vary if v.mode == "enumerate"]
    text = json.dumps([request.seed, told], sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    return _TupleSpace(key, stream.ip_version, stream.combinations)


def _joined(openings: list[Opening]) -> list[Opening]:
    """Fewer of very many: those that follow each other, with the later time."""
    if len(openings) <= _MOST_KEPT:
        return openings
    found: list[Opening] = []
    for each in openings:
        last = found[-1] if found else None
        if last and (last.enumeration, last.end) == (each.enumeration, each.first):
            found[-1] = last.model_copy(
                update={
                    "count": last.count + each.count,
                    "until": max(last.until, each.until),
                }
            )
        else:
            found.append(each)
    return found


def told_again(cell: CellResult) -> Reason | None:
    """Why a stored cell opened no more connections, if it ended by that.

    Of that reason the number of connections alone is believed.
    """
    for reason in cell.reasons:
        if reason.code == _REMAIN:
            known = re.search(r"know (\d[\d,]*) connections", reason.message)
            return remain(int(known[1].replace(",", "")) if known else None)
    return None


def remain(known: int | None) -> Reason:
    """Why a cell opens no more connections.

    Args:
        known: how many of earlier tests the device may know; None: the journal alone
            is there, and tells that the run went on to the next cell.
    """
    count = "" if known is None else f"{known:,} "
    return Reason(
        code=_REMAIN,
        message=f"the device may still know {count}connections of earlier tests, no "
        "hook empties its table (bulk_delete), and neither its timeout nor room for "
        "more is known: the next test would not begin as the ones before",
        hint="give the testbed a hook bulk_delete; or say how large the table is "
        "(--table-size), or after which time the device forgets (--dut-timeout)",
    )
