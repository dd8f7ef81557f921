"""The addresses that a base address and its varying fields make: arithmetic only.

Nothing here lists addresses: sets of 2^32 are as cheap as sets of two.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Literal, NamedTuple

from dutperf.protocol import FieldVariation, IpVersion

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
