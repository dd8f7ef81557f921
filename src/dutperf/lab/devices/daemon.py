"""Programs beside the DUT's kernel: how they are started, and when they run.

BIRD takes routes from the tester by RIP, for the kernel. Those that nobody told again
for three minutes are given up (RFC 2453 3.8).

snmpd, Net-SNMP's agent, answers management queries (RFC 2544 11.2).
"""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Daemon:
    """One of them.

    Attributes:
        name: as people call it.
        program: that runs it.
        package: of Debian, which has it.
        arguments: with ``{settings}`` and ``{running}`` for the paths of two files, and
            ``{directory}`` for where they are.
        settings: what is in the first; the second is there once it runs.
        hint: what else may be wrong.
        table: how many routes of each IP version it has beside its settings, and puts
            into the kernel's table (``routing_table``).
    """

    name: str
    program: str
    package: str
    arguments: tuple[str, ...]
    settings: str
    hint: str
    table: int = 0


BIRD_TABLES = """\
router id 198.18.0.1;
protocol device {}
protocol kernel {
  ipv4 { import none; export all; };
}
protocol kernel {
  ipv6 { import none; export all; };
}
"""
"""What it learns is for the kernel."""

BIRD = Daemon(
    name="BIRD",
    program="bird",
    package="bird2",
    arguments=("-f", "-c", "{settings}", "-s", "{running}"),
    settings=BIRD_TABLES
    + """\
protocol rip {
  ipv4 { import all; export none; };
  interface "left", "right" { version 2; mode multicast; passive yes; };
}
protocol rip ng {
  ipv6 { import all; export none; };
  interface "left", "right" { mode multicast; passive yes; };
}
""",
    hint="it needs version 2 (on Debian the package bird2)",
)


def bird_with(routes: int) -> Daemon:
    """BIRD that learns nothing, and has so many routes."""
    return replace(BIRD, settings=BIRD_TABLES, table=routes)


SNMPD = Daemon(
    name="snmpd",
    program="snmpd",
    package="snmpd",
    arguments=("-f", "-C", "-c", "{settings}", "-Lo", "-p", "{running}", "-I", "-smux"),
    settings="""\
agentaddress udp:161,udp6:161
rocommunity public
rocommunity6 public
""",
    hint="it is Net-SNMP's (on Debian the package snmpd)",
)
