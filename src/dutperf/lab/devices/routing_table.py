"""A routing table of so many networks more, which BIRD puts into the DUT's kernel.

They are of nobody: networks of RFC 1918 and RFC 6598 (/24 to /28), and of RFC 4193
(/48), as if drawn by lot, the same each time; half of them behind each side of the
tester. No test frame goes there: what is seen is how the size of the table tells on
all others.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator

_NEXT_HOPS = {
    4: ("198.18.0.2", "198.19.0.2"),
    6: ("2001:2::2", "2001:2:0:8000::2"),
}
_IPV4_SPACE = ((0x0A000000, 8), (0xAC100000, 12), (0x64400000, 10))
_LONGEST = range(24, 29)


def static_routes(routes: int) -> str:
    """What BIRD is told of ``routes`` networks of each IP version."""
    draw = random.Random(routes)  # noqa: S311 - the same each time
    lines = []
    for version, networks in ((4, _ipv4(draw)), (6, _ipv6(draw))):
        lines += ["protocol static {", f"  ipv{version};"]
        hops = _NEXT_HOPS[version]
        for number, network in zip(range(routes), networks, strict=False):
            lines.append(f"  route {network} via {hops[number % 2]};")
        lines.append("}")
    return "\n".join([*lines, ""])


def _ipv4(draw: random.Random) -> Iterator[str]:
    seen: set[str] = set()
    while True:
        base, base_bits = draw.choice(_IPV4_SPACE)
        bits = draw.choice(_LONGEST)
        own = draw.getrandbits(bits - base_bits) << (32 - bits)
        network = f"{socket.inet_ntoa((base | own).to_bytes(4, 'big'))}/{bits}"
        if network not in seen:
            seen.add(network)
            yield network


def _ipv6(draw: random.Random) -> Iterator[str]:
    seen: set[int] = set()
    while True:
        own = draw.getrandbits(40)
        if own not in seen:
            seen.add(own)
            text = f"fd{own:010x}"
            yield f"{text[:4]}:{text[4:8]}:{text[8:]}::/48"
