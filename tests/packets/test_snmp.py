"""SNMP messages: scapy reads what is made, and makes what is read."""

from __future__ import annotations

import random

from scapy.asn1.asn1 import ASN1_COUNTER32, ASN1_NULL, ASN1_TIME_TICKS
from scapy.layers.snmp import SNMP, SNMPresponse, SNMPvarbind

from dutperf import packets

NAMES = [
    "1.3.6.1.2.1.1.3.0",
    "1.3.6.1.2.1.2.2.1.10.7",
    "1.3.6.1.2.1.2.2.1.16.7",
    "1.3.6.1.2.1.2.2.1.11.7",
    "1.3.6.1.2.1.2.2.1.17.7",
]


def test_the_query_asks_for_the_variables_of_the_rfc() -> None:
    """RFC 2544 C.2.4.3."""
    message = SNMP(packets.get_request(300, "lab", 7))
    assert (message.version.val, message.community.val) == (1, b"lab")
    assert message.PDU.id.val == 300
    found = message.PDU.varbindlist
    assert [each.oid.val for each in found] == NAMES
    assert all(isinstance(each.value, ASN1_NULL) for each in found)
    assert packets.read_request(bytes(message)) == packets.Query(300, NAMES)


def test_numbers_of_all_sizes_and_interfaces_go_there_and_back() -> None:
    for number in (1, 127, 128, 255, 256, 65_535, 2**31 - 1):
        message = packets.get_request(number, "c" * 32, number)
        assert SNMP(message).PDU.id.val == number
        found = packets.read_request(message)
        assert found == packets.Query(number, packets.variables(number))


def answer(values: dict[str, object], error: int = 0) -> bytes:
    """A value of None is a variable's that has none."""
    listed = [
        SNMPvarbind(oid=name) if value is None else SNMPvarbind(oid=name, value=value)
        for name, value in values.items()
    ]
    pdu = SNMPresponse(id=9, error=error, varbindlist=listed)
    return bytes(SNMP(version=1, community="public", PDU=pdu))


def test_values_are_read_whatever_their_size() -> None:
    told: dict[str, object] = {
        NAMES[0]: ASN1_TIME_TICKS(2**32 - 1),
        NAMES[1]: ASN1_COUNTER32(0),
        NAMES[2]: ASN1_COUNTER32(200),
    }
    values = {NAMES[0]: 2**32 - 1, NAMES[1]: 0, NAMES[2]: 200}
    assert packets.read_response(answer(told)) == packets.SnmpResponse(9, 0, values)
    assert packets.read_response(packets.get_response(9, "public", values)) == (
        9,
        0,
        values,
    )


def test_what_has_no_value_is_not_among_them() -> None:
    told: dict[str, object] = {NAMES[0]: ASN1_TIME_TICKS(5), NAMES[1]: None}
    found = packets.read_response(answer(told, error=2))
    assert found == packets.SnmpResponse(9, 2, {NAMES[0]: 5})


def test_anything_else_is_none() -> None:
    whole = answer({name: ASN1_COUNTER32(1) for name in NAMES})
    rng = random.Random(1)  # noqa: S311 - repeatable
    for size in range(len(whole)):
        assert packets.read_response(whole[:size]) is None
    for _ in range(5_000):
        damaged = bytearray(whole)
        for _ in range(3):
            damaged[rng.randrange(len(whole))] = rng.randrange(256)
        packets.read_response(bytes(damaged))
    assert packets.read_response(packets.get_request(1, "public", 1)) is None
    assert packets.read_request(whole) is None
