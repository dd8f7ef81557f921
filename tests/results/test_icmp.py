"""ICMP messages in words, and where they say to look."""

from __future__ import annotations

import pytest

from dutperf.protocol.result_messages import IcmpMessages
from dutperf.results.device_words import (
    icmp_counts,
    icmp_name,
    icmp_words,
    places_to_look,
)


def messages(version: int, kind: int, code: int, frames: int = 1) -> IcmpMessages:
    return IcmpMessages.model_validate(
        {"ip_version": version, "type": kind, "code": code, "frames": frames}
    )


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ((4, 11, 0), "ICMP TTL exceeded in transit"),
        ((4, 3, 13), "ICMP administratively prohibited"),
        ((4, 3, 12), "ICMP destination unreachable"),
        ((4, 42, 7), "ICMP type 42, code 7"),
        ((6, 2, 0), "ICMPv6 packet too big"),
        ((6, 1, 0), "ICMPv6 no route"),
        ((6, 143, 0), "ICMPv6 multicast listener report"),
        ((6, 255, 255), "ICMPv6 type 255, code 255"),
    ],
)
def test_the_words_are_those_of_the_rfcs(
    numbers: tuple[int, int, int], name: str
) -> None:
    assert icmp_name(messages(*numbers)) == name


def test_what_says_the_same_is_counted_together_and_the_most_comes_first() -> None:
    both_ports = [
        messages(4, 3, 9, 2),
        messages(6, 3, 0, 7),
        messages(4, 3, 13, 3),
        messages(4, 3, 9, 1),
    ]
    assert list(icmp_counts(both_ports).items()) == [
        ("ICMPv6 hop limit exceeded in transit", 7),
        ("ICMP administratively prohibited", 6),
    ]
    assert icmp_words(both_ports) == (
        "7 ICMPv6 hop limit exceeded in transit, 6 ICMP administratively prohibited"
    )
    assert icmp_words([]) == ""


def test_each_place_to_look_is_told_once_and_none_for_what_is_no_error() -> None:
    said = [
        messages(4, 3, 9),
        messages(6, 1, 1),
        messages(6, 133, 0),
        messages(4, 3, 4),
    ]
    assert places_to_look(said) == [
        "the device's filter, which forbids these frames;",
        "the device's MTU;",
    ]
