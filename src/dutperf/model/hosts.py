"""The addresses that a base address and its varying fields make: arithmetic only.

Nothing here lists addresses: sets of 2^32 are as cheap as sets of two.
"""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from dutperf.model.fields import Short, Strict
from dutperf.protocol.base import IpVersion, Side
from dutperf.protocol.stream_messages import FieldVariation

Mode = Literal["increasing", "decreasing", "random"]


class BitField(NamedTuple):
    """Bits ``offset`` to ``offset + width - 1`` from the left take min..max."""

    offset: int
    width: int
    min: int
    max: int
    mode: Mode

    def variation(self, field: Literal["src_ip", "dst_ip"]) -> FieldVariation:
        """The field as the engine wants to have it."""
        return FieldVariation(field=field, **self._asdict())


@dataclass(frozen=True)
class AddressSet:
    """``base`` with every combination of the values of ``fields``."""

    base: str
    fields: tuple[BitField, ...] = ()

    @property
    def version(self) -> IpVersion:
        """IP version of all the addresses."""
        return 6 if ":" in self.base else 4

    @property
    def bits(self) -> int:
        """Length of an address."""
        return 32 if self.version == 4 else 128

    @property
    def lowest(self) -> str:
        """The numerically first address."""
        return self.with_values([field.min for field in self.fields])

    @property
    def highest(self) -> str:
        """The numerically last address."""
        return self.with_values([field.max for field in self.fields])

    @property
    def size(self) -> int:
        """How many addresses there are."""
        return math.prod(field.max - field.min + 1 for field in self.fields)

    def host(self, number_: int) -> str:
        """Address number ``number_`` of a set that varies in one field, or in none."""
        return self.with_values([field.min + number_ for field in self.fields])

    def value(self, field: BitField) -> int:
        """What ``base`` has in ``field``."""
        return _cut(number(self.base), self._shift(field), field.width)

    def with_values(self, values: list[int]) -> str:
        """``base`` with ``values`` in its fields."""
        address = number(self.base)
        for field, value in zip(self.fields, values, strict=True):
            shift = self._shift(field)
            address &= ~(((1 << field.width) - 1) << shift)
            address |= value << shift
        return text(address, self.version)

    def reaches(self, target: int, last_bits: int | None = None) -> bool:
        """Whether an address of the set ends in the ``last_bits`` bits of ``target``.

        Without ``last_bits``: whether ``target`` itself is in the set.
        """
        last_bits = self.bits if last_bits is None else last_bits
        mask = (1 << last_bits) - 1
        for field in self.fields:
            shift = self._shift(field)
            mask &= ~(((1 << field.width) - 1) << shift)
            seen = min(max(last_bits - shift, 0), field.width)
            if not _hits(field, _cut(target, shift, seen), seen):
                return False
        return number(self.base) & mask == target & mask

    def meets(self, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
        """Whether the range from lowest to highest touches ``network``."""
        return number(self.lowest) <= int(network.broadcast_address) and int(
            network.network_address
        ) <= number(self.highest)

    def within(self, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
        """Whether all addresses are in ``network``."""
        ends = (self.lowest, self.highest)
        return all(ipaddress.ip_address(end) in network for end in ends)

    def _shift(self, field: BitField) -> int:
        return self.bits - field.offset - field.width


def overlap(one: BitField, other: BitField) -> bool:
    """Whether the two fields have a bit in common."""
    return (
        one.offset < other.offset + other.width
        and other.offset < one.offset + one.width
    )


def number(address: str) -> int:
    """``address`` as a number."""
    return int(ipaddress.ip_address(address))


def text(address: int, version: IpVersion) -> str:
    """``address`` as people write it."""
    kind = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
    return str(kind(address))


def _cut(address: int, shift: int, width: int) -> int:
    return address >> shift & ((1 << width) - 1)


def _hits(field: BitField, wanted: int, last_bits: int) -> bool:
    """Whether min..max has a value whose ``last_bits`` last bits are ``wanted``."""
    first = field.min + (wanted - field.min) % (1 << last_bits)
    return first <= field.max


# Addresses that vary from frame to frame: many hosts on a side (paper 003).
#
# In short a number of hosts: the addresses from the side's own on, at random. As a
# block of keys any contiguous field of 1 to 32 bits.


HostMode = Literal["fixed", "increasing", "decreasing", "random"]
HostCount = Annotated[int, Field(ge=2, le=65536)]
_FieldValue = Annotated[int, Field(ge=0, lt=2**32)]

_IPV6_END = 112
"""Bit after the last varying one: bits 96-111 of paper 003, and shorter fields."""
_FORM = ("width", "min", "max", "ipv4_offset", "ipv6_offset")
_WIDTH = 16


class HostField(Strict):
    """The addresses of one side: source of what it sends, destination of the rest."""

    mode: HostMode = Field(
        default="random", description="how the address goes on from frame to frame"
    )
    hosts: HostCount | None = Field(
        default=None,
        description="number of addresses, from the side's own on: its last 8 or 16 "
        "bits in IPv4, bits 96-111 in IPv6; instead of the keys below",
    )
    width: Annotated[int, Field(ge=1, le=32)] | None = Field(
        default=None, description="bits that vary; default: 16"
    )
    min: _FieldValue | None = Field(default=None, description="lowest value of them")
    max: _FieldValue | None = Field(default=None, description="highest value of them")
    ipv4_offset: Annotated[int, Field(ge=0, le=31)] | None = Field(
        default=None,
        description="first of these bits in an IPv4 address, 0 to 31 from the left; "
        "default: the last width bits",
    )
    ipv6_offset: Annotated[int, Field(ge=0, le=127)] | None = Field(
        default=None,
        description="first of these bits in an IPv6 address, 0 to 127 from the left; "
        "default: they end with bit 111",
    )

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        given = [key for key in _FORM if getattr(self, key) is not None]
        if self.mode == "fixed":
            if self.hosts or given:
                raise ValueError("mode fixed has no other keys: the address stays")
        elif self.hosts:
            if given:
                raise ValueError(f"hosts stands alone: take out {', '.join(given)}")
        else:
            self._check_field()
        return self

    def _check_field(self) -> None:
        if self.min is None or self.max is None:
            raise ValueError("needs min and max, or hosts: the number of addresses")
        if self.min > self.max:
            raise ValueError(
                f"the range is empty: min {self.min} is above max {self.max}"
            )
        if self.min == self.max:
            raise ValueError(
                f"mode {self.mode} needs more than one value, and {self.min} to "
                f"{self.max} is one; for one address write mode: fixed"
            )
        if self.max >= 2**self.bits:
            raise ValueError(
                f"max {self.max} does not fit {self.bits} bits, which hold at most "
                f"{2**self.bits - 1}; see width"
            )
        self._check_place("ipv4_offset", self.ipv4_offset, 32)
        self._check_place("ipv6_offset", self.ipv6_offset, 128)

    def _check_place(self, key: str, offset: int | None, length: int) -> None:
        if offset is not None and offset + self.bits > length:
            raise ValueError(
                f"{key} {offset} and width {self.bits} reach beyond the {length} bits "
                f"of the address: at most {length - self.bits}"
            )

    @property
    def bits(self) -> int:
        """Number of varying bits, where it is not chosen by ``hosts``."""
        return self.width or _WIDTH

    @property
    def ipv4_place(self) -> int:
        """First varying bit of an IPv4 address, likewise."""
        return 32 - self.bits if self.ipv4_offset is None else self.ipv4_offset

    @property
    def ipv6_place(self) -> int:
        """First varying bit of an IPv6 address, likewise."""
        return _IPV6_END - self.bits if self.ipv6_offset is None else self.ipv6_offset

    @property
    def count(self) -> int:
        """Number of addresses."""
        if self.mode == "fixed":
            return 1
        return self.hosts or (self.max or 0) - (self.min or 0) + 1

    def __str__(self) -> str:
        if self.mode == "fixed":
            return "fixed"
        if self.hosts:
            return f"{self.hosts:,} hosts, {self.mode}"
        first4, first6 = self.ipv4_place, self.ipv6_place
        return (
            f"{self.mode} {self.min}-{self.max} in {self.bits} bits, IPv4 bit {first4} "
            f"or IPv6 bit {first6} on"
        )


class Addresses(Strict):
    """Varying addresses of the two sides."""

    left: HostField | None = Field(
        default=None, description="hosts on the left; default: one"
    )
    right: HostField | None = Field(
        default=None, description="hosts on the right; default: one"
    )

    def of(self, side: Side) -> HostField | None:
        """How the addresses of ``side`` vary; None: not at all."""
        field = self.left if side == "left" else self.right
        return None if field is None or field.mode == "fixed" else field

    def count(self, side: Side) -> int:
        """Number of addresses of ``side``."""
        field = self.of(side)
        return field.count if field else 1


def _expand(hosts: int) -> dict[str, Any]:
    return {"left": {"hosts": hosts}, "right": {"hosts": hosts}}


HostAddresses = Annotated[
    Addresses,
    Short(int, _expand, {"type": "integer", "minimum": 2, "maximum": 65536}),
]
