"""MAP (RFC 7597): which customer edges stand behind a rule, and what they may send.

A customer edge (CE) shares an IPv4 address with others: its set of ports is that of its
PSID. Its IPv6 address has both embedded, so address and ports of a packet must belong
together, which a border relay checks. The tester is all CEs of a rule at once: suffix
and port vary at random, and what the IPv6 address says of them follows.

::

    IPv6    | rule's prefix | EA bits: IPv4 suffix, PSID | 0 | IPv4 address | PSID |
    port    | A, psid_offset bits, not all 0 | PSID | M |
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from dutperf.config.address_set import AddressSet, BitField
from dutperf.config.fields import Strict
from dutperf.config.problem import KeyedError
from dutperf.protocol import FieldCopy, FieldVariation

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
        """The IPv4 addresses of all CEs."""
        if not self.suffix_bits:
            return AddressSet(base)
        most = (1 << self.suffix_bits) - 1
        place = BitField(32 - self.suffix_bits, self.suffix_bits, 0, most, "random")
        return AddressSet(base, (place,))

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

    def copies(self) -> Iterator[FieldCopy]:
        """What of a CE's packet its IPv6 address has, twice: in prefix and identifier.

        Of the IPv4 address only the suffix: the rest is the same in all.
        """
        suffix, psid = self.suffix_bits, self.psid_bits
        ends = (
            (self.prefix_bits, self.prefix_bits + suffix),
            (_IPV4_PLACE + 32 - suffix, 128 - psid),
        )
        for of_suffix, of_psid in ends:
            if suffix:
                yield FieldCopy(
                    field="outer_src",
                    offset=of_suffix,
                    width=suffix,
                    of="src_ip",
                    of_offset=32 - suffix,
                )
            if psid:
                yield FieldCopy(
                    field="outer_src",
                    offset=of_psid,
                    width=psid,
                    of="src_port",
                    of_offset=self.psid_offset,
                )
