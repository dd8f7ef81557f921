"""FRR beside the DUT's kernel: a router that takes routes from the tester.

zebra makes routes of what the other three learn. Each protocol waits for the tester's
daemon (``routes: ospf``, ``routes: bgp``); the one that nobody speaks is idle. Hellos
and keepalives come every second, so that a lab is ready, and notices, soon.

The programs stay root, in the group that their control sockets belong to: the DUT's
directory is nobody else's.
"""

from __future__ import annotations

from dutperf.config.testbed import Bgp, Ospf, Routing
from dutperf.lab.devices.daemon import Daemon

FRR_ROUTING = Routing(
    ospf=Ospf(hello_s=1, dead_s=4), bgp=Bgp(tester_as=65001, device_as=65000, hold_s=6)
)

_SIDES = ("left", "right")
_ROUTER_ID = "198.18.0.1"
_TESTER = ("198.18.0.2", "198.19.0.2", "2001:2::2", "2001:2:0:8000::2")


def _daemon(program: str, *settings: str) -> Daemon:
    return Daemon(
        name=f"FRR's {program}",
        program=f"/usr/lib/frr/{program}",
        package="frr",
        arguments=(
            *("-f", "{settings}", "-i", "{running}", "-z", "{directory}/zserv.api"),
            *("--vty_socket", "{directory}", "-P", "0", "-u", "root", "-g", "frrvty"),
        ),
        settings="\n".join(("hostname dut", "log stdout", *settings, "")),
        hint="it is FRR's (on Debian the package frr)",
    )


def _ospf(program: str, command: str) -> Daemon:
    ospf = FRR_ROUTING.ospf
    router = "ospf" if program == "ospfd" else "ospf6"
    interfaces = [
        line
        for side in _SIDES
        for line in (
            f"interface {side}",
            f" {command} area {ospf.area}",
            f" {command} hello-interval {ospf.hello_s}",
            f" {command} dead-interval {ospf.dead_s}",
        )
    ]
    of_router = (f"router {router}", f" {router} router-id {_ROUTER_ID}")
    return _daemon(program, *interfaces, *of_router)


def _bgp() -> Daemon:
    bgp = FRR_ROUTING.bgp
    neighbours = [f" neighbor {ip} remote-as {bgp.tester_as}" for ip in _TESTER]
    active = {
        version: [f"  neighbor {ip} activate" for ip in _TESTER if (":" in ip) == six]
        for version, six in (("ipv4", False), ("ipv6", True))
    }
    return _daemon(
        "bgpd",
        f"router bgp {bgp.device_as}",
        f" bgp router-id {_ROUTER_ID}",
        " no bgp ebgp-requires-policy",
        " no bgp default ipv4-unicast",
        f" timers bgp {bgp.hold_s // 3} {bgp.hold_s}",
        *neighbours,
        *(
            line
            for version, lines in active.items()
            for line in (f" address-family {version} unicast", *lines, " exit")
        ),
    )


FRR = (
    _daemon("zebra"),
    _ospf("ospfd", "ip ospf"),
    _ospf("ospf6d", "ipv6 ospf6"),
    _bgp(),
)
