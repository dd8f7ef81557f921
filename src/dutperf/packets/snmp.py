"""SNMP version 2c: what a manager asks once a second, and what it is told (RFC 3416).

The variables are those of RFC 2544 C.2.4.3: how long the device runs, and the octets
and unicast packets of one interface, in and out.
"""

from __future__ import annotations

from typing import NamedTuple

PORT = 161

_VERSION_2C = 1
_INTEGER, _OCTETS, _NULL, _OBJECT, _SEQUENCE = 0x02, 0x04, 0x05, 0x06, 0x30
_COUNTER, _TIME_TICKS = 0x41, 0x43
_GET_REQUEST, _GET_RESPONSE = 0xA0, 0xA2
_UP_TIME = "1.3.6.1.2.1.1.3.0"
_INTERFACES = "1.3.6.1.2.1.2.2.1"
_IN_OCTETS, _IN_UNICAST, _OUT_OCTETS, _OUT_UNICAST = 10, 11, 16, 17


class Query(NamedTuple):
    """What a manager asks: its number, and the names of variables."""

    request_id: int
    variables: list[str]


class Response(NamedTuple):
    """An answer to a query.

    error: 0 is none. values: of the variables that have one, in order of the query.
    """

    request_id: int
    error: int
    values: dict[str, int]


def variables(interface: int) -> list[str]:
    """Names of those that are asked for; ``interface`` is its ifIndex."""
    columns = (_IN_OCTETS, _OUT_OCTETS, _IN_UNICAST, _OUT_UNICAST)
    return [_UP_TIME, *(f"{_INTERFACES}.{column}.{interface}" for column in columns)]


def get_request(request_id: int, community: str, interface: int) -> bytes:
    """The query, as UDP's payload; ``request_id`` is from 0 to 2^31 - 1."""
    nothing = _element(_NULL, b"")
    asked = [_object(name) + nothing for name in variables(interface)]
    return _message(_GET_REQUEST, request_id, community, asked)


def get_response(request_id: int, community: str, values: dict[str, int]) -> bytes:
    """The answer to it, as an agent with these ``values`` gives it."""
    told = [
        _object(name) + _number(value, _TIME_TICKS if name == _UP_TIME else _COUNTER)
        for name, value in values.items()
    ]
    return _message(_GET_RESPONSE, request_id, community, told)


def read_request(message: bytes) -> Query | None:
    """The query in UDP's payload; None: there is none that can be read."""
    found = _read(message, _GET_REQUEST)
    return Query(found[0], [name for name, _value in found[2]]) if found else None


def read_response(message: bytes) -> Response | None:
    """The answer in UDP's payload; None: there is none that can be read."""
    found = _read(message, _GET_RESPONSE)
    if found is None:
        return None
    values = {
        name: int.from_bytes(content, "big")
        for name, (tag, content) in found[2]
        if tag in (_COUNTER, _TIME_TICKS)
    }
    return Response(found[0], found[1], values)


def _message(kind: int, request_id: int, community: str, listed: list[bytes]) -> bytes:
    variables = b"".join(_element(_SEQUENCE, each) for each in listed)
    numbers = _number(request_id) + _number(0) + _number(0)
    query = _element(kind, numbers + _element(_SEQUENCE, variables))
    told = _element(_OCTETS, community.encode("ascii"))
    return _element(_SEQUENCE, _number(_VERSION_2C) + told + query)


def _read(
    message: bytes, kind: int
) -> tuple[int, int, list[tuple[str, tuple[int, bytes]]]] | None:
    """Number, error, and each variable's name with tag and content of its value."""
    try:
        whole, _ = _take(message, _SEQUENCE)
        _version, rest = _take(whole, _INTEGER)
        _community, rest = _take(rest, _OCTETS)
        query, _ = _take(rest, kind)
        request_id, rest = _take(query, _INTEGER)
        error, rest = _take(rest, _INTEGER)
        _index, rest = _take(rest, _INTEGER)
        listed, _ = _take(rest, _SEQUENCE)
        found = []
        while listed:
            variable, listed = _take(listed, _SEQUENCE)
            name, value = _take(variable, _OBJECT)
            content, _ = _take(value, value[0])
            found.append((_name(name), (value[0], content)))
    except (IndexError, ValueError):
        return None
    return _signed(request_id), _signed(error), found


def _signed(content: bytes) -> int:
    return int.from_bytes(content, "big", signed=True)


def _take(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of the first element, and what follows it (BER).

    Raises:
        ValueError, IndexError: the element is another one, or not whole.
    """
    if data[0] != tag:
        raise ValueError
    begin, length = 2, data[1]
    if length >= 0x80:
        begin += length - 0x80
        if len(data) < begin:
            raise ValueError
        length = int.from_bytes(data[2:begin], "big")
    if len(data) < begin + length:
        raise ValueError
    return data[begin : begin + length], data[begin + length :]


def _element(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    digits = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 + len(digits))) + digits + content


def _number(value: int, tag: int = _INTEGER) -> bytes:
    """Not negative; with a sign, so that a high bit is none."""
    size = value.bit_length() // 8 + 1
    return _element(tag, value.to_bytes(size, "big"))


def _object(name: str) -> bytes:
    first, second, *rest = map(int, name.split("."))
    content = bytes((40 * first + second,))
    return _element(_OBJECT, content + b"".join(map(_base_128, rest)))


def _base_128(value: int) -> bytes:
    digits = [value & 0x7F]
    while value := value >> 7:
        digits.append(0x80 | value & 0x7F)
    return bytes(reversed(digits))


def _name(content: bytes) -> str:
    numbers = [content[0] // 40, content[0] % 40]
    value = 0
    for byte in content[1:]:
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            numbers.append(value)
            value = 0
    return ".".join(map(str, numbers))
