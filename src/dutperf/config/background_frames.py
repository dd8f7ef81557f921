"""Frames beside the stream: what a device need not forward, and what they do to it.

They take the place of some of the stream's frames, evenly spread, and have its sizes.
Of them only how many were sent and how many came is told: none of them is lost. They
are part of a burst, as they are part of a load; what is timed is the stream.

broadcast (RFC 2544 11.1): the stream's frames, to the hardware broadcast address. They
are for the hosts behind the router, so it has nothing to answer and nothing to deliver:
a packet that came as link-layer broadcast and is for another host is to be discarded
without a word (RFC 1812 5.3.4), and a bridge floods it. 255.255.255.255, or the
network's own broadcast address, would be the router's own to receive, up to UDP.

hop-by-hop (RFC 5180 5.3): the stream's frames with a hop-by-hop options header of
padding. Routers may forward them, slowly or not at all (RFC 9673): that is no loss of
the stream's.

spoofed (RFC 7597 8.1): frames of a customer edge whose IPv6 address is that of another
one than its port says. A border relay that checks them lets none through.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from pydantic import AfterValidator, Field

from dutperf.config.fields import KeyedError
from dutperf.protocol import Ipv6Header, IpVersion

if TYPE_CHECKING:
    from dutperf.config.cell import Cell


BesideKind = Literal["broadcast", "hop-by-hop", "spoofed"]
_ASKED_FOR: dict[BesideKind, str] = {
    "broadcast": "RFC 2544 11.1",
    "hop-by-hop": "RFC 5180 5.3",
    "spoofed": "RFC 7597 8.1",
}
BROADCAST_MAC = "ff:ff:ff:ff:ff:ff"
_PLACES = 2


def _check_places(percent: float) -> float:
    if round(percent, _PLACES) != percent:
        raise ValueError(f"must have at most {_PLACES} decimal places")
    return percent


BesidePercent = Annotated[float, Field(gt=0, le=50), AfterValidator(_check_places)]
"""Of the frames of a direction, the stream's and those beside it together."""


class Beside(NamedTuple):
    """Which frames are beside the stream, and how many."""

    kind: BesideKind
    percent: float

    @property
    def share(self) -> Fraction:
        """Of all frames of a direction; exact."""
        return Fraction(str(self.percent)) / 100

    @property
    def key(self) -> str:
        """Of the traffic profile."""
        return f"{self.kind.replace('-', '_')}_percent"

    @property
    def label(self) -> str:
        """Part of a cell's name."""
        return f"{self.percent:g}percent-{self.kind}"

    @property
    def words(self) -> str:
        """``1 % broadcast frames``."""
        return f"{self.percent:g} % {self.kind} frames"

    @property
    def rfc(self) -> str:
        """Where it is asked for."""
        return _ASKED_FOR[self.kind]

    @property
    def version(self) -> IpVersion | None:
        """Of the one IP version that has such frames; none: it is the stream's."""
        versions: dict[BesideKind, IpVersion] = {"broadcast": 4, "hop-by-hop": 6}
        return versions.get(self.kind)

    @property
    def dst_mac(self) -> str | None:
        """None: the next hop's, as the stream's."""
        return BROADCAST_MAC if self.kind == "broadcast" else None

    @property
    def ipv6_headers(self) -> list[Ipv6Header]:
        """Their extension headers, instead of the stream's."""
        return ["hop-by-hop"] if self.kind == "hop-by-hop" else []


def check_beside(cell: Cell) -> None:
    """Refuse frames beside the stream where they have no meaning.

    Raises:
        KeyedError: says which key is wrong.
    """
    beside = cell.traffic.beside
    if beside is None:
        return
    keys = ("traffic", beside.key)
    if cell.stateful:
        raise KeyedError(
            keys,
            "must be left out of a stateful test, whose frames are all of connections",
        )
    if beside.kind == "spoofed" and cell.direction == "both":
        raise KeyedError(
            keys,
            "is for one direction: customer edges are on one side",
            "set direction to the one from them (--direction forward)",
        )
    if beside.version and cell.ip != beside.version:
        lacks = {
            4: "IPv6 has no broadcast",
            6: "IPv4 has no hop-by-hop header, and a translator takes it out",
        }[beside.version]
        raise KeyedError(
            keys,
            f"is for IPv{beside.version} alone, not for ip {cell.ip}: {lacks}",
            f"set ip: [{beside.version}] (--ip {beside.version}), or give other "
            "versions entries of their own",
        )
