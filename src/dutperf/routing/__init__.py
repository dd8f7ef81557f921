"""A routing daemon beside the tester, which tells the device routes (RFC 2544 13).

    device <-> port of the tester <-> tap <-> BIRD, in a network namespace of its own

BIRD speaks OSPF or BGP as the hosts of the tester's own addresses, one for each port.
The engine hands to it what is no test traffic, and sends what it sends, in trials as
between them (slow path). Before each trial it tells the device all networks to which
frames go; after it, it is asked whether the device is still its neighbour.

    open_speaker    a namespace; the engine makes its taps there when it opens the ports
    begin           addresses, BIRD, sessions
    tell            before a trial: all networks that it needs, again (RFC 2544 13)
    sessions        after a trial: how each session stands, and since when

A session that the device gave up in a trial, because it did not find time for it, is
waited for before the next one.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from dutperf.config.testbed import Testbed
from dutperf.errors import SetupError
from dutperf.model.cell import Cell
from dutperf.packets import Network
from dutperf.protocol.base import Side
from dutperf.protocol.port_messages import Tap
from dutperf.results.trial_record import RoutingSession
from dutperf.routing import bird
from dutperf.routing.bird import Session, configuration, hosts_of, sessions_of, told_in

Notify = Callable[[str], None]

SPREAD_S = 5.0
"""Until a device has made routes of what it was told (RFC 2544 C.2.3)."""
SAME_AGAIN_S = 5.0
"""OSPF tells the same no sooner (MinLSInterval, RFC 2328 B)."""
_LEAST_PATIENCE_S = 60.0
_POLL_S = 0.2
_WORTH_TELLING_S = 1.0
_OPEN = {"Running", "Established"}
"""BIRD's words: an OSPF neighbour is full, a BGP session open."""
_FALLS = ("changed state from Full to", "BGP session closed")
"""Its words when one was."""
_STATE_COLUMN = 5
"""Name, protocol, table, state, since when, and BIRD's word, if it has one."""


class Speaker(Protocol):
    """What a run asks of it; ``BirdSpeaker`` has it, and tests have another."""

    @property
    def taps(self) -> Mapping[Side, Tap]:
        """Where the engine is to make a port's tap, if it needs one."""
        ...

    def begin(self) -> None:
        """See ``BirdSpeaker``; so for the others."""
        ...

    def tell(self, cell: Cell) -> None: ...  # noqa: D102
    def sessions(self) -> list[RoutingSession]: ...  # noqa: D102


Speaking = Callable[
    [Testbed, Sequence[Cell], int, Notify], AbstractContextManager["Speaker | None"]
]
"""Opens a speaker for cells at a testbed, its daemon on a CPU, if they need one."""


class BirdSpeaker:
    """One BIRD for both ports.

    Args:
        testbed: the tester's addresses, and how the device speaks (``routing``).
        sessions: those of all cells.
        daemon: in its namespace.
        notify: is told when something had to be waited for.
        sleep: waits a number of seconds.
        clock: says how many seconds have passed.
    """

    def __init__(
        self,
        testbed: Testbed,
        sessions: Sequence[Session],
        daemon: bird.Bird,
        notify: Notify,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._testbed = testbed
        self._sessions = sessions
        self._hosts = hosts_of(testbed, sessions)
        self._daemon = daemon
        self._notify = notify
        self._sleep = sleep
        self._clock = clock
        self._told: dict[Session, list[Network]] = {}
        self._number = 0
        self._told_at = -math.inf
        self._ever_open: set[Session] = set()
        self._falls: Counter[Session] = Counter()
        """In the trial that goes on, or since the last one."""

    @property
    def taps(self) -> Mapping[Side, Tap]:
        """One for each port with a session, named after its side."""
        namespace = self._daemon.namespace
        return {
            side: Tap(network_namespace=namespace, interface=side)
            for side in self._hosts
        }

    def begin(self) -> None:
        """Give the taps addresses and start the daemon, which tells nothing yet.

        Raises:
            SetupError: it cannot be done.
        """
        self._daemon.set_up(self._hosts)
        self._daemon.start(self._configuration())

    def tell(self, cell: Cell) -> None:
        """Tell the device all that a trial of ``cell`` needs; nothing if it is static.

        Returns when all sessions are open, and the device had time for what is new.

        Raises:
            SetupError: it is no neighbour, though it was waited for.
        """
        told = told_in(self._testbed, cell)
        if not told:
            return
        fell = self._await_open(list(told))
        news = fell or told != self._told
        if news or self._clock() - self._told_at >= SAME_AGAIN_S:
            self._told = told
            self._number += 1
            self._daemon.configure(self._configuration())
            for session in told:
                if session.protocol == "bgp":
                    self._daemon.ask("reload", "out", session.name)
            self._told_at = self._clock()
        if news:
            self._sleep(SPREAD_S)
        self._hear()
        self._falls.clear()

    def sessions(self) -> list[RoutingSession]:
        """How each stands that tells something, and how often it fell since ``tell``.

        Nothing of a daemon that has gone: the trial is measured, and must be stored
        before ``tell`` says so; the device is not to blame.
        """
        try:
            states = self._states()
        except SetupError:
            return []
        self._hear()
        return [
            RoutingSession(
                port=session.side,
                ip_version=session.version,
                protocol=session.protocol,
                open=states.get(session.name) in _OPEN,
                falls=self._falls[session],
            )
            for session in self._told
        ]

    def _configuration(self) -> str:
        return configuration(self._testbed, self._sessions, self._told, self._number)

    def _await_open(self, sessions: Sequence[Session]) -> bool:
        """Wait until the device is a neighbour in all; whether one was not, or fell."""
        begun = self._clock()
        patience_s = max(_LEAST_PATIENCE_S, 3.0 * self._testbed.routing.ospf.dead_s)
        while closed := self._closed(sessions):
            if self._clock() - begun > patience_s:
                raise self._no_neighbour(closed[0], patience_s)
            self._sleep(_POLL_S)
        waited_s = self._clock() - begun
        if waited_s >= _WORTH_TELLING_S:
            names = ", ".join(f"{s.words} on the {s.side}" for s in sessions)
            self._notify(
                f"waited {waited_s:.0f} s for the device as neighbour: {names}"
            )
        self._hear()
        fell = any(self._falls[session] for session in sessions)
        new = not self._ever_open.issuperset(sessions)
        self._ever_open.update(sessions)
        return fell or new

    def _closed(self, sessions: Sequence[Session]) -> list[Session]:
        states = self._states()
        return [s for s in sessions if states.get(s.name) not in _OPEN]

    def _states(self) -> dict[str, str]:
        """By session name: BIRD's word for how it stands."""
        lines = self._daemon.ask("show", "protocols").splitlines()
        columns = [line.split() for line in lines]
        told = [each for each in columns if len(each) > _STATE_COLUMN]
        return {each[0]: each[_STATE_COLUMN] for each in told}

    def _hear(self) -> None:
        for line in self._daemon.news():
            for session in self._sessions:
                if f" {session.name}: " in line and any(w in line for w in _FALLS):
                    self._falls[session] += 1

    def _no_neighbour(self, session: Session, patience_s: float) -> SetupError:
        side = self._testbed.sides[session.side]
        own = side.ip(session.version)
        ospf, bgp = self._testbed.routing.ospf, self._testbed.routing.bgp
        key = f"routing.{session.protocol}"
        if session.protocol == "ospf":
            what = (
                f"area {ospf.area}, hello {ospf.hello_s} s, dead {ospf.dead_s} s, "
                f"prefix length {self._testbed.routing.prefix_length}, "
                f"MTU {side.mtu}, no authentication"
            )
            key += " and routing.prefix_length"
        else:
            what = f"its AS {bgp.device_as}, the tester's {bgp.tester_as}, no password"
        return SetupError(
            f"{session.side}: after {patience_s:.0f} s the device is no neighbour by "
            f"{session.words} (the tester is {own.address if own else 'unknown'})",
            f"it must be set to: {what}; the testbed's {key} say how it is",
        )


@contextmanager
def open_speaker(
    testbed: Testbed, cells: Sequence[Cell], cpu: int, notify: Notify
) -> Iterator[Speaker | None]:
    """See ``Speaking``.

    Raises:
        SetupError: a program is missing, or the namespace cannot be made.
    """
    sessions = sessions_of(cells)
    if not sessions:
        yield None
        return
    with bird.prepared(cpu) as daemon:
        yield BirdSpeaker(testbed, sessions, daemon, notify)


@contextmanager
def no_speaker(
    _testbed: Testbed, _cells: Sequence[Cell], _cpu: int, _notify: Notify
) -> Iterator[Speaker | None]:
    """Routes are told by nobody."""
    yield None
