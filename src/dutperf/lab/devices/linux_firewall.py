"""``linux-firewall``: ``linux-router`` behind N filters of nftables (RFC 2544 11.4).

The addresses are those of 11.4.1 with aa.ba = 198.18. Sources and destinations of the
first N - 1 filters are both on the left, so no test frame is ever between them, however
its addresses vary, in neither direction. The last filter lets all pass between the
networks for benchmarking (RFC 2544 has the two addresses of its test there; here they
may vary), and what it does not is dropped. For N = 4:

    deny   198.18.1.1     198.18.100.1        2001:2:0:1::1   2001:2:0:100::1
    deny   198.18.2.2     198.18.101.2        2001:2:0:2::2   2001:2:0:101::2
    deny   198.18.3.3     198.18.103.3        2001:2:0:3::3   2001:2:0:103::3
    allow  198.18.0.0/15  198.18.0.0/15       2001:2::/48     2001:2::/48
    deny   all else

After the 155th pair the host's number grows: 198.18.1.2 to 198.18.100.2, and so on.
Each packet meets the filters of its own IP version, one after the other, without sets
and without state. ARP and neighbour discovery are not forwarded, and meet none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dutperf.config.labs import DEFAULT_RULES
from dutperf.lab.devices.device import Box, LabDevice
from dutperf.lab.devices.linux_router import LINUX_ROUTER
from dutperf.lab.devices.ruleset import Command, Table, network

FILTERS = (Table("ip", "filters"), Table("ip6", "filters"))
"""One table for each IP version, with one chain."""
CHAIN = "forward"

_FORMATS = {"ip": "198.18.{}.{}", "ip6": "2001:2:0:{}::{}"}
_ALLOWED = {"ip": "198.18.0.0/15", "ip6": "2001:2::/48"}
_PAIRS = 155
"""With different third bytes: their destinations' go up to 255."""
_FAR = {1: 100, 2: 101}
"""Third bytes of the first destinations; from the third on they are 100 higher."""


def linux_firewall(rules: int = DEFAULT_RULES) -> LabDevice:
    """The device with so many filters."""
    return replace(
        LINUX_ROUTER,
        name="linux-firewall",
        boxes=(Box(ruleset=tuple(filters(rules))),),
        filters=rules,
    )


def filters(rules: int) -> Iterator[Command]:
    """Commands for nftables: ``rules`` filters of each IP version."""
    for table in FILTERS:
        yield table.added()
        yield table.chain(CHAIN, "filter", "forward", 0, policy="drop")
        for source, destination in denied(table, rules - 1):
            yield table.rule(
                CHAIN, [*table.between(source, destination), {"drop": None}]
            )
        everyone = network(_ALLOWED[table.family])
        yield table.rule(CHAIN, [*table.between(everyone, everyone), {"accept": None}])


def denied(table: Table, count: int) -> Iterator[tuple[str, str]]:
    """Source and destination of the first ``count`` filters."""
    text = _FORMATS[table.family]
    for number in range(count):
        higher, lower = divmod(number, _PAIRS)
        net = lower + 1
        host = net + higher
        far = _FAR.get(net, net + 100)
        yield text.format(net, host), text.format(far, host)
