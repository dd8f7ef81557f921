"""Sets of addresses against a twin that lists them all."""

from __future__ import annotations

import ipaddress
import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from dutperf.model.hosts import AddressSet, BitField, number, overlap, text

seeded = settings(derandomize=True, deadline=None, database=None, max_examples=200)


@st.composite
def fields(draw: st.DrawFn, bits: int) -> BitField:
    width = draw(st.integers(1, 6))
    offset = draw(st.integers(0, bits - width))
    low = draw(st.integers(0, 2**width - 1))
    high = draw(st.integers(low, 2**width - 1))
    return BitField(offset, width, low, high, "random")


@st.composite
def sets(draw: st.DrawFn) -> AddressSet:
    bits = draw(st.sampled_from([32, 128]))
    one = draw(fields(bits))
    other = draw(fields(bits))
    chosen = (one,) if overlap(one, other) else (one, other)
    base = draw(st.integers(2**100 if bits == 128 else 0, 2**bits - 1))
    return AddressSet(text(base, 4 if bits == 32 else 6), chosen)


def listed(addresses: AddressSet) -> list[int]:
    ranges = [range(field.min, field.max + 1) for field in addresses.fields]
    found = [addresses.with_values(list(v)) for v in itertools.product(*ranges)]
    return sorted(number(address) for address in found)


@seeded
@given(sets(), st.data())
def test_reaching_is_being_in_the_list(
    addresses: AddressSet, data: st.DataObject
) -> None:
    every = listed(addresses)
    last_bits = data.draw(st.integers(0, addresses.bits))
    near = data.draw(st.sampled_from(every)) ^ data.draw(
        st.sampled_from([0, 1, 2, 256])
    )
    mask = 2**last_bits - 1
    assert addresses.reaches(near) == (near in every)
    expected = any(address & mask == near & mask for address in every)
    assert addresses.reaches(near, last_bits) == expected


@seeded
@given(sets())
def test_lowest_and_highest_are_the_ends_of_the_list(addresses: AddressSet) -> None:
    every = listed(addresses)
    assert (number(addresses.lowest), number(addresses.highest)) == (
        every[0],
        every[-1],
    )


@seeded
@given(sets(), st.integers(0, 32))
def test_within_a_network_means_all_of_them(addresses: AddressSet, length: int) -> None:
    network = ipaddress.ip_network(f"{addresses.base}/{length}", strict=False)
    every = [
        ipaddress.ip_address(text(a, addresses.version)) for a in listed(addresses)
    ]
    assert addresses.within(network) == all(address in network for address in every)


def test_values_go_into_their_bits_only() -> None:
    hosts = BitField(24, 8, 2, 254, "random")
    networks = BitField(16, 8, 0, 255, "random")
    addresses = AddressSet("198.18.7.9", (hosts, networks))
    assert addresses.with_values([254, 3]) == "198.18.3.254"
    assert addresses.value(networks) == 7
