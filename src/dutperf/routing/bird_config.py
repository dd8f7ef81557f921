"""What BIRD is told: its configuration as a text.

Each session has a table of its own, so that nothing goes from one side to the other.
Nothing is learnt from the device, and no route reaches the kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dutperf.config.testbed import Testbed
from dutperf.packets.rip import Network
from dutperf.protocol import Side
from dutperf.routing.sessions import Session, Told

_WITHOUT_IPV4: dict[Side, str] = {"left": "192.0.2.1", "right": "192.0.2.2"}
"""Router ids of a tester that has no IPv4 address (RFC 5737: nobody has these)."""


def configuration(
    testbed: Testbed, sessions: Sequence[Session], told: Told, number: int
) -> str:
    """BIRD's file for ``sessions``, of which each tells what ``told`` has for it.

    ``number`` marks the routes of OSPF: with another one all of them are told again.
    """
    lines = [
        f"router id {_router_id(testbed, 'left')};",
        "log stderr all;",
        "debug protocols { states, events };",
        "protocol device {}",
    ]
    for session in sessions:
        lines += _tables(session, told.get(session, ()))
        if session.protocol == "ospf":
            lines += _ospf(testbed, session, number)
        else:
            lines += _bgp(testbed, session)
    return "\n".join([*lines, ""])


def _tables(session: Session, networks: Sequence[Network]) -> Iterator[str]:
    table = _table(session)
    yield f"ipv{session.version} table {table};"
    yield f"protocol static {session.name}_routes {{"
    yield f"  ipv{session.version} {{ table {table}; }};"
    for network in networks:
        yield f"  route {network} blackhole;"
    yield "}"


def _ospf(testbed: Testbed, session: Session, number: int) -> Iterator[str]:
    ospf = testbed.routing.ospf
    yield f"protocol ospf {'v2' if session.version == 4 else 'v3'} {session.name} {{"
    yield f"  router id {_router_id(testbed, session.side)};"
    yield f"  ipv{session.version} {{"
    yield f"    table {_table(session)}; import none;"
    yield f"    export filter {{ ospf_tag = {number}; accept; }};"
    yield "  };"
    yield f"  area {ospf.area} {{"
    yield f'    interface "{session.side}" {{'
    yield f"      hello {ospf.hello_s}; dead {ospf.dead_s};"
    yield "    };"
    yield "  };"
    yield "}"


def _bgp(testbed: Testbed, session: Session) -> Iterator[str]:
    bgp = testbed.routing.bgp
    own = testbed.sides[session.side].ip(session.version)
    assert own  # noqa: S101 - who has frames of a version has an address of it
    yield f"protocol bgp {session.name} {{"
    yield f"  router id {_router_id(testbed, session.side)};"
    yield f"  local {own.address} as {bgp.tester_as};"
    yield f"  neighbor {own.gateway} as {bgp.device_as};"
    yield f"  hold time {bgp.hold_s};"
    yield "  connect delay time 1; connect retry time 2; error wait time 1, 2;"
    yield f"  ipv{session.version} {{"
    yield f"    table {_table(session)}; import none; export all; next hop self;"
    yield "  };"
    yield "}"


def _table(session: Session) -> str:
    return f"{session.name}_table"


def _router_id(testbed: Testbed, side: Side) -> str:
    own = testbed.sides[side].ip(4)
    return own.address if own else _WITHOUT_IPV4[side]
