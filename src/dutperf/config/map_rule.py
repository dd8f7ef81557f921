"""MAP (RFC 7597, 7599): which customer edges stand behind a rule, and what they send.

A customer edge (CE) shares an IPv4 address with others: its set of ports is that of its
PSID. Its IPv6 address has both embedded, so address and ports of a packet must belong
together, which a border relay checks. The tester is all CEs of a rule at once: suffix
and port vary at random, and what the IPv6 address says of them follows. That address
is of the tunnel's end (MAP-E), or the packet's own (MAP-T).

::

    IPv6    | rule's prefix | EA bits: IPv4 suffix, PSID | 0 | IPv4 address | PSID |
    port    | A, psid_offset bits, not all 0 | PSID | M |
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import AfterValidator, Field, model_validator

from dutperf.model.fields import KeyedError, Strict
from dutperf.model.hosts import AddressSet, BitField
from dutperf.protocol.stream_messages import FieldCopy, FieldVariation
from dutperf.protocol.stream_parts import FollowingBits

_INTERFACE_ID = 64
_IPV4_PLACE = 80
"""RFC 7597 6: 16 bits of 0, the IPv4 address, 16 bits with the PSID at their end."""
_PORT_BITS = 16


def _ipv4_network(text: str) -> str:
    return str(ipaddress.IPv4Network(text))


def _ipv6_network(text: str) -> str:
    return str(ipaddress.IPv6Network(text))


class MapRule(Strict):
    """A basic mapping rule, all of whose CEs the tester is (RFC 7597 5)."""

    ipv6_prefix: Annotated[str, AfterValidator(_ipv6_network)] = Field(
        description="the rule's, like 2001:db8::/40"
    )
    ipv4_prefix: Annotated[str, AfterValidator(_ipv4_network)] = Field(
        description="the rule's, like 192.0.2.0/24; the side's ipv4.address is in it"
    )
    ea_bits: Annotated[int, Field(ge=0, le=48)] = Field(
        description="length of the embedded address bits: IPv4 suffix and PSID"
    )
    psid_offset: Annotated[int, Field(ge=0, le=15)] = Field(
        default=6, description="bits of a port before its PSID, not all of them 0"
    )

    @model_validator(mode="after")
    def _bits_fit(self) -> Self:
        if self.psid_bits < 0:
            raise KeyedError(
                ("ea_bits",),
                f"{self.ea_bits} are fewer than the IPv4 suffix has, "
                f"{self.suffix_bits}: CEs with IPv4 prefixes are not simulated",
                "take a longer ipv4_prefix or more ea_bits",
            )
        if self.psid_offset + self.psid_bits > _PORT_BITS:
            raise KeyedError(
                ("psid_offset",),
                f"{self.psid_offset} bits and {self.psid_bits} of the PSID are more "
                "than a port has, 16",
            )
        if self._ipv6.prefixlen + self.ea_bits > _INTERFACE_ID:
            raise KeyedError(
                ("ea_bits",),
                f"{self.ea_bits} behind a prefix of {self._ipv6.prefixlen} reach into "
                "the interface identifier, which begins at bit 64",
            )
        return self

    @property
    def _ipv6(self) -> ipaddress.IPv6Network:
        return ipaddress.IPv6Network(self.ipv6_prefix)

    @property
    def _ipv4(self) -> ipaddress.IPv4Network:
        return ipaddress.IPv4Network(self.ipv4_prefix)

    @property
    def prefix_bits(self) -> int:
        """Of the IPv6 addresses, what all CEs have."""
        return self._ipv6.prefixlen

    @property
    def suffix_bits(self) -> int:
        """Of an IPv4 address, what differs between those of the rule."""
        return 32 - self._ipv4.prefixlen

    @property
    def psid_bits(self) -> int:
        """0: no address is shared."""
        return self.ea_bits - self.suffix_bits

    def holds(self, ipv4: str) -> bool:
        """Whether it is a CE's address."""
        return ipaddress.IPv4Address(ipv4) in self._ipv4

    def address(self, ipv4: str, psid: int) -> str:
        """The MAP IPv6 address of a CE (RFC 7597 5.2, 6)."""
        number = int(ipaddress.IPv4Address(ipv4))
        suffix = number & ((1 << self.suffix_bits) - 1)
        embedded = suffix << self.psid_bits | psid
        shift = 128 - self.prefix_bits - self.ea_bits
        own = int(self._ipv6.network_address)
        return str(ipaddress.IPv6Address(own | embedded << shift | number << 16 | psid))

    def customers(self, base: str) -> AddressSet:
        """All CEs' addresses: of IPv4, or of IPv6 but for what follows."""
        if not self.suffix_bits:
            return AddressSet(base)
        most = (1 << self.suffix_bits) - 1
        offset = self.prefix_bits if ":" in base else 32 - self.suffix_bits
        return AddressSet(
            base, (BitField(offset, self.suffix_bits, 0, most, "random"),)
        )

    def ports(self, field: Literal["src_port", "dst_port"]) -> Iterator[FieldVariation]:
        """Each port that any CE may have, as likely as any other one."""
        offset = 0
        behind = _PORT_BITS - self.psid_offset - self.psid_bits
        for width, least in ((self.psid_offset, 1), (self.psid_bits, 0), (behind, 0)):
            if width:
                most = (1 << width) - 1
                yield FieldVariation(
                    field=field, offset=offset, width=width, min=least, max=most
                )
            offset += width

    def port_of(self, psid: int) -> int:
        """The first port of a CE."""
        behind = _PORT_BITS - self.psid_offset - self.psid_bits
        first = 1 << (_PORT_BITS - self.psid_offset) if self.psid_offset else 0
        return first | psid << behind

    def copies(self, *, translated: bool) -> Iterator[FieldCopy]:
        """What of a CE's packet its IPv6 address has, twice: in prefix and identifier.

        Of the IPv4 address only the suffix: the rest is the same in all.

        Args:
            translated: MAP-T, where the first place of the suffix is what varies.
        """
        for end in self._embedded(translated=translated):
            if not end.is_source:
                yield FieldCopy(
                    field="src_ip" if translated else "outer_src",
                    offset=end.offset,
                    width=end.width,
                    of="src_port" if end.of_port else "src_ip",
                    of_offset=end.of_offset,
                )

    def follows(self, *, translated: bool) -> Iterator[FollowingBits]:
        """The same of what arrives for a CE."""
        for end in self._embedded(translated=translated):
            yield FollowingBits(
                offset=end.offset,
                width=end.width,
                of="dst_port" if end.of_port else "dst_ip",
                of_offset=end.of_offset,
            )

    def _embedded(self, *, translated: bool) -> Iterator[_Embedded]:
        suffix, psid = self.suffix_bits, self.psid_bits
        of_suffix = self.prefix_bits if translated else 32 - suffix
        ends = (
            (self.prefix_bits, self.prefix_bits + suffix),
            (_IPV4_PLACE + 32 - suffix, 128 - psid),
        )
        for suffix_at, psid_at in ends:
            if suffix:
                is_source = translated and suffix_at == of_suffix
                yield _Embedded(suffix_at, suffix, False, of_suffix, is_source)
            if psid:
                yield _Embedded(psid_at, psid, True, self.psid_offset, False)


class _Embedded(NamedTuple):
    """Bits of a CE's IPv6 address, and whence they are: its IPv4 address, or a port."""

    offset: int
    width: int
    of_port: bool
    of_offset: int
    is_source: bool
    """They are themselves what others are copied from."""
