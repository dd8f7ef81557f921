"""A simulated stateful gateway, and the tester's table of what it learned from it.

The gateway knows a connection by the number of its four-tuple, and gives each new one
a mapping (a public port, say) that no other had. Frames of the initiator open
connections as far as size and rate of its table allow; frames of the responder pass
when they carry the mapping of a connection that is alive. Every frame is looked at,
in the order in which they are sent, unless nothing can change but times of last use.
Beside it an agent, which answers what management asks.
"""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from dutperf import packets
from dutperf.packets import Datagram, read_udp, udp_packet
from dutperf.protocol.base import Side
from dutperf.protocol.result_messages import Answer
from dutperf.protocol.stream_messages import DirectionRequest, StreamRequest
from dutperf.protocol.stream_parts import (
    Learn,
    LearnedTuple,
    TableResult,
    Tuples,
)
from dutperf.protocol.trial_messages import Announcement, TrialRequest
from dutperf.simulation.loads_over_time import due_times

Eviction = Literal["refuse", "oldest", "chunk", "random"]

_BYTES_PER_ENTRY = {4: 12, 6: 36}
_ALLOCATION_NS = 1000
_RECENT = 1
"""Connections that may wait for being opened; more are lost."""


@dataclass(frozen=True)
class TupleTraffic:
    """Frame k of a foreground stream: its tuple's number, and when it is sent.

    ``due_ns``: since the first one, where the load is not steady.
    """

    numbers: Sequence[int]
    first_ns: int
    interval_ns: float
    due_ns: Sequence[int] = ()

    def times_ns(self) -> Iterator[int]:
        """When each frame is sent."""
        if self.due_ns:
            return (self.first_ns + due_ns for due_ns in self.due_ns)
        return (
            self.first_ns + int(k * self.interval_ns) for k in range(len(self.numbers))
        )


class SimulatedTable:
    """The tester's: under each number the tuple that arrived, and whose it was.

    Number 0 is that of connection ``first``.
    """

    def __init__(self, learn: Learn, started_ns: int, first: int = 0) -> None:
        self.learn = learn
        self._first = first
        self.started_ns = started_ns
        self.entries: list[tuple[int, int] | None] = [None] * learn.entries
        self.learned = self.changed = self.unlearned_sent = 0

    def begin_trial(self) -> None:
        """Count anew."""
        self.learned = self.changed = self.unlearned_sent = 0

    def store(self, connection: int, mapping: int) -> None:
        """A frame of this connection arrived with this mapping."""
        place = self.place_of(connection)
        found = self.entries[place]
        self.changed += found is not None and found != (connection, mapping)
        self.entries[place] = (connection, mapping)
        self.learned += 1

    def place_of(self, connection: int) -> int:
        """Where it is stored."""
        return (connection - self._first) % len(self.entries)

    def result(
        self, now: TrialRequest, started_ns: int, nat: SimulatedNat
    ) -> TableResult:
        """What the engine says of it after the trial ``now``."""
        public_ip = nat.public_ip
        wanted = now.learn.expected if now.learn else None
        unexpected = self.learned if wanted and not wanted.holds(public_ip) else 0
        size = _BYTES_PER_ENTRY[self.learn.ip_version]
        new = now.learn is not None and not now.learn.keep
        return TableResult(
            ip_version=self.learn.ip_version,
            entries=len(self.entries),
            filled=sum(entry is not None for entry in self.entries),
            bytes_per_entry=size,
            memory_bytes=size * len(self.entries),
            hugepages=False,
            allocation_ns=_ALLOCATION_NS if new else 0,
            learned=self.learned,
            changed=self.changed,
            unexpected=unexpected,
            unexpected_example=public_ip if unexpected else None,
            source_example=public_ip if any(self.entries) else None,
            unlearned_sent=self.unlearned_sent,
            since_learning_ns=started_ns - self.started_ns,
            told=self._told(now, nat),
        )

    def _told(self, now: TrialRequest, nat: SimulatedNat) -> list[LearnedTuple | None]:
        if not (now.learn and now.learn.told):
            return []
        (stream,) = (
            d.streams[0] for d in now.directions if d.name == now.learn.direction
        )
        return [
            nat.seen(stream.ends_of(entry[0]), entry[1]) if entry else None
            for entry in self.entries[: now.learn.told]
        ]


class SimulatedNat:
    """Forwards what belongs to a connection; simulated time passes with each trial.

    Args:
        table_size: how many connections it holds; None: any number.
        connection_rate_fps: how many it can open a second; None: any number. Frames
            that would open one more are lost.
        timeout_ns: a connection without frames for so long is gone; None: never.
        eviction: what it does when its table is full: refuse the new connection, or
            drop the one that was used longest ago, the ``chunk`` oldest, or any.
        collapses_at: with more connections than this it forwards nothing any more.
        public_ip: its address towards the responder.
        delete_rate_fps: connections a second that ``clear`` deletes; None: at once.
        command_ns: what ``clear`` takes whatever it deletes.
        waiting: how many frames that would open a connection may wait for their turn.
        seen: what the responder sees of a connection, from whom and to whom, of its
            ends inside and its mapping.
        lets_in: who may answer a connection beside the end that it was opened to:
            another port of it, another address.
        refuses: a new connection, told those that are alive.
    """

    def __init__(
        self,
        *,
        table_size: int | None = None,
        connection_rate_fps: float | None = None,
        timeout_ns: int | None = None,
        eviction: Eviction = "refuse",
        chunk: int = 1,
        collapses_at: int | None = None,
        public_ip: str = "198.19.0.1",
        delete_rate_fps: float | None = None,
        command_ns: int = 0,
        waiting: int = 0,
        seen: Callable[[LearnedTuple, int], LearnedTuple] | None = None,
        lets_in: Collection[Literal["port", "address"]] = (),
        refuses: Callable[[int, Collection[int]], bool] | None = None,
        seed: int = 1,
    ) -> None:
        self.now_ns = 0
        self.timeout_ns = timeout_ns
        self.public_ip = public_ip
        self.seen = seen or self._in_order
        self._lets_in = lets_in
        self._refuses = refuses
        self.is_alive = True
        self._table_size = table_size
        self._rate_fps = connection_rate_fps
        self._eviction = eviction
        self._chunk = chunk
        self._collapses_at = collapses_at
        self._delete_rate_fps = delete_rate_fps
        self._command_ns = command_ns
        self._waiting = waiting
        self._draw = random.Random(seed)  # noqa: S311 - simulated, not a secret
        self._new_mapping = itertools.count().__next__
        self._used_ns: dict[int, int] = {}
        """Connection -> when a frame of it passed last."""
        self._mapping: dict[int, int] = {}
        self._order: deque[tuple[int, int]] = deque()
        """Uses in the order of time; what is not in ``_used_ns`` like this is old."""
        self._members: list[int] = []
        """The connections in any order, and some that are gone."""
        self._free_ns = 0.0
        self.waited_ns = 0
        """The longest that a frame of ``waiting`` waited in the last trial."""

    def _in_order(self, ends: LearnedTuple, mapping: int) -> LearnedTuple:
        return (self.public_ip, 1024 + mapping % 64_512, *ends[2:])

    def lets_in(self, tuples: Tuples) -> bool:
        """Whether its filtering lets in who sends these."""
        if tuples.port_added and "port" not in self._lets_in:
            return False
        return not tuples.address_added or "address" in self._lets_in

    # --- what hooks ask of it ---

    def table_count(self) -> int:
        """How many connections are alive."""
        return sum(self._lives(c, self.now_ns) for c in self._used_ns)

    def wait(self, duration_ns: int) -> None:
        """Let time pass."""
        self.now_ns += duration_ns

    def clear(self) -> int:
        """Delete all connections; return how many nanoseconds that took."""
        took_ns = self._command_ns
        if self._delete_rate_fps:
            took_ns += int(self.table_count() * 1e9 / self._delete_rate_fps)
        self._used_ns.clear()
        self._mapping.clear()
        self.now_ns += took_ns
        return took_ns

    def restart(self) -> None:
        """Make it work again after a collapse, with an empty table."""
        self.clear()
        self.is_alive = True

    # --- what frames do to it ---

    def carry(
        self,
        outbound: TupleTraffic | None,
        inbound: TupleTraffic | None,
        table: SimulatedTable | None,
        *,
        learns: bool,
        opens: bool = True,
    ) -> tuple[bytearray, bytearray]:
        """Say for each frame of both whether it arrives.

        The numbers of ``inbound`` are entries of ``table``; with ``learns`` what
        arrives of ``outbound`` is stored there. Without ``opens`` no frame of it does:
        those of connections that are not there are lost.
        """
        self.waited_ns = 0
        nobody = TupleTraffic((), 0, 1.0)
        outbound, inbound = outbound or nobody, inbound or nobody
        learned = table if learns else None
        arrived = bytearray(len(outbound.numbers)), bytearray(len(inbound.numbers))
        if table and inbound.numbers:
            empty = {i for i, entry in enumerate(table.entries) if entry is None}
            table.unlearned_sent += sum(n in empty for n in inbound.numbers)
        if self._is_steady(outbound, inbound, table, learned):
            self._use_all(outbound, outbound.numbers)
            arrived[0][:] = b"\1" * len(arrived[0])
            if table and inbound.numbers:
                self._use_all(inbound, [_owner(table, n) for n in inbound.numbers])
                arrived[1][:] = b"\1" * len(arrived[1])
            if learned:
                learned.learned += len(outbound.numbers)
            return arrived
        self._order = deque(sorted(self._used_ns.items(), key=lambda use: use[1]))
        self._members = list(self._used_ns)
        for now_ns, is_inbound, frame in _in_time(outbound, inbound):
            if is_inbound:
                entry = table.entries[inbound.numbers[frame]] if table else None
                arrived[1][frame] = entry is not None and self._answer(*entry, now_ns)
                continue
            connection = outbound.numbers[frame]
            knows = opens or self._lives(connection, now_ns)
            if knows and self._open(connection, now_ns):
                arrived[0][frame] = 1
                if learned:
                    learned.store(connection, self._mapping[connection])
        return arrived

    def _is_steady(
        self,
        outbound: TupleTraffic,
        inbound: TupleTraffic,
        table: SimulatedTable | None,
        learned: SimulatedTable | None,
    ) -> bool:
        """Whether all pass, and no connection or entry will be another one."""
        if not self.is_alive:
            return False
        end_ns = max(_end_ns(outbound), _end_ns(inbound))
        opened = set(outbound.numbers)
        if not all(self._lives(connection, end_ns) for connection in opened):
            return False
        if learned and not all(self._is_current(learned, c) for c in opened):
            return False
        answered = set(inbound.numbers) if table else set()
        return table is None or all(
            (entry := table.entries[number]) is not None
            and self._lives(entry[0], end_ns)
            and self._mapping[entry[0]] == entry[1]
            for number in answered
        )

    def _is_current(self, table: SimulatedTable, connection: int) -> bool:
        entry = table.entries[table.place_of(connection)]
        return entry == (connection, self._mapping[connection])

    def _use_all(self, traffic: TupleTraffic, connections: Sequence[int]) -> None:
        for connection, now_ns in zip(connections, traffic.times_ns(), strict=True):
            if now_ns > self._used_ns[connection]:
                self._used_ns[connection] = now_ns

    def _lives(self, connection: int, now_ns: int) -> bool:
        used_ns = self._used_ns.get(connection)
        if used_ns is None:
            return False
        return self.timeout_ns is None or now_ns - used_ns < self.timeout_ns

    def _use(self, connection: int, now_ns: int) -> None:
        self._used_ns[connection] = now_ns
        self._order.append((connection, now_ns))

    def _answer(self, connection: int, mapping: int, now_ns: int) -> bool:
        """A frame of the responder: whether it passes."""
        passes = self.is_alive and self._lives(connection, now_ns)
        if not passes or self._mapping[connection] != mapping:
            return False
        self._use(connection, now_ns)
        return True

    def _open(self, connection: int, now_ns: int) -> bool:
        """A frame of the initiator: whether it passes."""
        if not self.is_alive:
            return False
        if not self._lives(connection, now_ns):
            if connection in self._used_ns:
                self._drop(connection)
            if self._refuses and self._refuses(connection, self._used_ns.keys()):
                return False
            if not (self._has_time(now_ns) and self._has_room(now_ns)):
                return False
            self._mapping[connection] = self._new_mapping()
            self._members.append(connection)
        self._use(connection, now_ns)
        if self._collapses_at is not None and len(self._used_ns) > self._collapses_at:
            self.is_alive = False
        return self.is_alive

    def _has_time(self, now_ns: int) -> bool:
        if self._rate_fps is None:
            return True
        each_ns = 1e9 / self._rate_fps
        if self._free_ns > now_ns + (_RECENT + self._waiting) * each_ns:
            return False
        self._free_ns = max(self._free_ns, now_ns) + each_ns
        if self._waiting:
            self.waited_ns = max(self.waited_ns, round(self._free_ns) - now_ns)
        return True

    def _has_room(self, now_ns: int) -> bool:
        if self._table_size is None or len(self._used_ns) < self._table_size:
            return True
        self._expire(now_ns)
        if len(self._used_ns) < self._table_size:
            return True
        if self._eviction == "refuse":
            return False
        if self._eviction == "random":
            self._drop_any()
            return True
        for _ in range(self._chunk if self._eviction == "chunk" else 1):
            self._drop_oldest(lambda _used_ns: True)
        return True

    def _expire(self, now_ns: int) -> None:
        timeout_ns = self.timeout_ns
        if timeout_ns is not None:
            while self._drop_oldest(lambda used_ns: now_ns - used_ns >= timeout_ns):
                pass

    def _drop_oldest(self, is_due: Callable[[int], bool]) -> bool:
        """Drop the connection that was used longest ago, if that is due."""
        while self._order:
            connection, used_ns = self._order[0]
            if self._used_ns.get(connection) == used_ns:
                if not is_due(used_ns):
                    return False
                self._order.popleft()
                self._drop(connection)
                return True
            self._order.popleft()
        return False

    def _drop_any(self) -> None:
        while self._members:
            place = self._draw.randrange(len(self._members))
            connection = self._members[place]
            self._members[place] = self._members[-1]
            self._members.pop()
            if connection in self._used_ns:
                self._drop(connection)
                return

    def _drop(self, connection: int) -> None:
        del self._used_ns[connection]
        del self._mapping[connection]


def traffic_of(
    trial: TrialRequest, direction: DirectionRequest, frames: int, start_ns: int
) -> TupleTraffic:
    """The first ``frames`` of a direction's foreground stream in a trial."""
    share = direction.frames_of(0, 10**6) / 10**6
    numbers = tuple_numbers(direction.streams[0], frames, trial.seed)
    interval_ns = 1e9 / (direction.rate_fps * share)
    due_ns = _due_ns(trial, direction)[:frames] if direction.steps else []
    return TupleTraffic(numbers, start_ns, interval_ns, due_ns)


def _due_ns(trial: TrialRequest, direction: DirectionRequest) -> list[int]:
    """When each frame of the foreground stream is due, since the trial's start."""
    return [
        due_ns
        for number, due_ns in enumerate(due_times(direction, trial.frames(direction)))
        if direction.frames_of(0, number + 1) > direction.frames_of(0, number)
    ]


def tuple_numbers(stream: StreamRequest, frames: int, seed: int) -> Sequence[int]:
    """Which tuple each frame carries; draws are not those of the engine."""
    first = stream.tuples.first if stream.tuples else 0
    return [first + number for number in _drawn(stream, frames, seed)]


def _drawn(stream: StreamRequest, frames: int, seed: int) -> Sequence[int]:
    tuples = stream.tuples
    if tuples is None or tuples.order == "once":
        return range(frames) if tuples or stream.enumerates else [0] * frames
    count = tuples.count
    draw = random.Random(f"{seed} {stream.id} {tuples.source}")  # noqa: S311
    match tuples.order:
        case "first":
            return [0] * frames
        case "increasing":
            return [k % count for k in range(frames)]
        case "decreasing":
            return [count - 1 - k % count for k in range(frames)]
        case "random":
            return draw.choices(range(count), k=frames)
        case "shuffled":
            return draw.sample(range(count), frames)


def _owner(table: SimulatedTable, number: int) -> int:
    entry = table.entries[number]
    return entry[0] if entry else -1


def _end_ns(traffic: TupleTraffic) -> int:
    if traffic.due_ns:
        return traffic.first_ns + traffic.due_ns[-1]
    return traffic.first_ns + int(len(traffic.numbers) * traffic.interval_ns)


def _in_time(
    outbound: TupleTraffic, inbound: TupleTraffic
) -> Iterator[tuple[int, bool, int]]:
    """All frames in the order in which they are sent: when, inbound, which."""
    return heapq.merge(_events(outbound, False), _events(inbound, True))


def _events(traffic: TupleTraffic, is_inbound: bool) -> Iterator[tuple[int, bool, int]]:
    return ((now_ns, is_inbound, k) for k, now_ns in enumerate(traffic.times_ns()))


# A device's management: what comes back to announced queries, if anything does.


_HOPS = 64


class SimulatedAgent:
    """Answers SNMP queries of one community.

    Args:
        community: others get no answer.
        after_ns: how long it takes.
        interfaces: of the device; it has no values of others.
        silent_every: the query of that number, and of its multiples, gets no answer.
    """

    def __init__(
        self,
        community: str = "public",
        after_ns: int = 1_000_000,
        interfaces: int = 1,
        silent_every: int | None = None,
    ) -> None:
        self._community = community.encode("ascii")
        self._after_ns = after_ns
        self._interfaces = interfaces
        self._silent_every = silent_every

    def answers(self, trial: TrialRequest, side: Side) -> list[Answer]:
        """What the port on ``side`` is told in ``trial``, at most two to a query."""
        asked = [a for a in trial.announcements if a.port == side and a.answered_from]
        return [answer for query in asked for answer in self._answer(query)]

    def _answer(self, query: Announcement) -> Iterator[Answer]:
        asked = read_udp(bytes.fromhex(query.packet))
        found = packets.read_request(asked.payload) if asked else None
        if asked is None or found is None or self._community not in asked.payload:
            return
        number, names = found
        if self._silent_every and number % self._silent_every == 0:
            return
        values = {
            name: number
            for name in names
            if int(name.rpartition(".")[2]) <= self._interfaces
        }
        told = packets.get_response(number, self._community.decode("ascii"), values)
        ends = (asked.destination, asked.source)
        ports = (asked.destination_port, asked.source_port)
        packet = udp_packet(Datagram(*ends, *ports, told), hops=_HOPS)
        received_ns = (query.at_ns or 0) + self._after_ns
        yield Answer(received_ns=received_ns, packet=packet.hex())
