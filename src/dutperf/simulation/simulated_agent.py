"""A device's management: what comes back to announced queries, if anything does."""

from __future__ import annotations

from collections.abc import Iterator

from dutperf import packets
from dutperf.packets import Datagram, read_udp, udp_packet
from dutperf.protocol.base import Side
from dutperf.protocol.result_messages import Answer
from dutperf.protocol.trial_messages import Announcement, TrialRequest

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
