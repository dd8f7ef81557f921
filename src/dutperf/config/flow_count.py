"""A number of network flows (RFC 8219 10): how the frames are spread over them.

A flow is a four-tuple of addresses and ports. Frame k belongs to flow k mod n, so each
of the n flows of a direction gets every n-th frame; the rate is that of all together.
The frames of the reverse direction are the answers: addresses and ports are swapped.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

MOST_FLOWS = 64_512
"""Source ports of RFC 4814 4.5: from 1024 on."""
FlowCount = Annotated[int, Field(ge=1, le=MOST_FLOWS)]
FlowsBy = Literal["ports", "addresses"]

_FIRST_PORT = 1024
_CLIENT_PORT, _SERVER_PORT = 0xC020, 7  # RFC 2544 C.2.6.4


def spread_over(flows: int, by: FlowsBy) -> dict[str, Any]:
    """Keys of a traffic profile whose frames make ``flows`` flows in each direction.

    ports: of one host on each side, of which one has ``flows`` ports. addresses: host k
    of one side to host k of the other, by the ports of RFC 2544.
    """
    if by == "ports":
        return {"ports": _ports(_each_of(flows, _FIRST_PORT))}
    keys: dict[str, Any] = {"ports": _ports(_fixed(_CLIENT_PORT))}
    if flows > 1:
        hosts = {"mode": "increasing", "hosts": flows}
        keys["addresses"] = {"left": hosts, "right": hosts}
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
