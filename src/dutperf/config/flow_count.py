"""A number of network flows (RFC 8219 10): how the frames are spread over them.

A flow is a four-tuple of addresses and ports. Frame k belongs to flow k mod n, so each
of the n flows of a direction gets every n-th frame, and all of them begin at once. The
rate is that of all together, or n times that of one.
The frames of the reverse direction are the answers: addresses and ports are swapped.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

MOST_FLOWS = 64_512
"""Source ports of RFC 4814 4.5: from 1024 on."""


def _check_count(flows: int) -> int:
    if flows > MOST_FLOWS:
        raise ValueError(
            f"must be at most {MOST_FLOWS}, as many as there are ports from "
            f"{_FIRST_PORT} on, not {flows}"
        )
    return flows


FlowCount = Annotated[
    int,
    Field(ge=1, json_schema_extra={"maximum": MOST_FLOWS}),
    AfterValidator(_check_count),
]
FlowsBy = Literal["ports", "addresses", "sources"]

_FIRST_PORT = 1024
_CLIENT_PORT, _SERVER_PORT = 0xC020, 7  # RFC 2544 C.2.6.4


def spread_over(flows: int, by: FlowsBy) -> dict[str, Any]:
    """Keys of a traffic profile whose frames make ``flows`` flows in each direction.

    ports: of one host on each side, of which one has ``flows`` ports. addresses: host k
    of one side to host k of the other, by the ports of RFC 2544. sources: host k of the
    left side to the one host of the right, so a device that translates sources has as
    many.
    """
    if by == "ports":
        return {"ports": _ports(_each_of(flows, _FIRST_PORT))}
    keys: dict[str, Any] = {"ports": _ports(_fixed(_CLIENT_PORT))}
    if flows > 1:
        hosts = {"mode": "increasing", "hosts": flows}
        sides = ("left",) if by == "sources" else ("left", "right")
        keys["addresses"] = dict.fromkeys(sides, hosts)
    return keys


def _ports(client: dict[str, Any]) -> dict[str, Any]:
    server = _fixed(_SERVER_PORT)
    answers = {"source": server, "destination": client}
    return {"source": client, "destination": server, "reverse": answers}


def _fixed(port: int) -> dict[str, Any]:
    return {"mode": "fixed", "value": port}


def _each_of(count: int, first: int) -> dict[str, Any]:
    if count == 1:
        return _fixed(first)
    return {"mode": "increasing", "min": first, "max": first + count - 1}
