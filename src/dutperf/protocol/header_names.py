"""Headers between IP and UDP: names, and how many bytes they take.

As ``engine/src/net/extra_headers.cc`` writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field

Ipv6Header = Literal[
    "hop-by-hop",
    "destination-options",
    "routing",
    "fragment",
    "authentication",
    "mobility",
]
"""Extension headers (RFC 8200 4, RFC 4302, RFC 6275 6.1)."""
Ipv4Option = Literal["router-alert", "nop"]
"""Options (RFC 791 3.1, RFC 2113); ``nop`` is four of them."""
MAX_IPV6_HEADERS = 6
MAX_IPV4_OPTIONS = 10
"""As many as the header has room for."""

Ipv6Headers = Annotated[list[Ipv6Header], Field(max_length=MAX_IPV6_HEADERS)]
Ipv4Options = Annotated[list[Ipv4Option], Field(max_length=MAX_IPV4_OPTIONS)]

_BYTES: dict[str, int] = {
    "hop-by-hop": 8,
    "destination-options": 8,
    "routing": 24,
    "fragment": 8,
    "authentication": 24,
    "mobility": 8,
    "router-alert": 4,
    "nop": 4,
}


def header_bytes(names: Sequence[Ipv6Header | Ipv4Option]) -> int:
    """How much longer they make a packet."""
    return sum(_BYTES[name] for name in names)
