"""DNS64 servers (RFC 6147): Unbound and BIND 9, of one thread.

    tester, clients      2001:2::2   left  ------- left  2001:2::1/64, is asked
    tester, authority   198.19.0.2   right ------- right 198.19.0.1/24, asks

Each is an IPv6 router, too. Its server knows one zone, ``dutperf.test``, whose
authority the tester is, and puts 64:ff9b:: before addresses of names without AAAA.
Nothing else is ever asked: there is no root, no DNSSEC and no minimisation of names,
which would be more questions than RFC 8219 9.1 has. What a trial's names were is of no
use to the next one, which has others.

Unbound remembers for a quarter of an hour which servers did not answer in time, and
asks them less: one trial that was too fast would spoil those after it. So it forgets
that, and the zone, before each trial, and counts anew.
"""

from __future__ import annotations

from dataclasses import replace

from dutperf.config.side import InterfacePort, SideConfig
from dutperf.config.testbed import Hook
from dutperf.lab.devices.daemons import Daemon
from dutperf.lab.devices.device import (
    LEFT_IPV6,
    RIGHT_IPV4,
    RIGHT_IPV6,
    LabDevice,
    lab_side,
)
from dutperf.lab.devices.linux import ROUTER_SYSCTLS, inside, kernel_hooks
from dutperf.lab.netns import DUT
from dutperf.lab.state import StateFile

_SETTINGS = """\
server:
  directory: "{directory}"
  pidfile: "{running}"
  username: ""
  chroot: ""
  use-syslog: no
  interface: 2001:2::1
  access-control: ::/0 allow
  num-threads: 1
  outgoing-range: 8192
  num-queries-per-thread: 4096
  qname-minimisation: no
  module-config: "dns64 iterator"
  dns64-prefix: 64:ff9b::/96
  local-zone: "test." nodefault
remote-control:
  control-enable: yes
  control-use-cert: no
  control-interface: "{directory}/unbound.control"
stub-zone:
  name: "dutperf.test"
  stub-addr: 198.19.0.2
"""
_UNBOUND = Daemon(
    name="Unbound",
    program="unbound",
    package="unbound",
    arguments=("-d", "-c", "{settings}"),
    settings=_SETTINGS,
    hint="it needs its module dns64, which Debian's package has",
)
_BIND = Daemon(
    name="BIND 9",
    program="named",
    package="bind9",
    arguments=("-f", "-n", "1", "-c", "{settings}"),
    settings="""\
options {
  directory "{directory}";
  pid-file "{running}";
  listen-on { none; };
  listen-on-v6 { 2001:2::1; };
  allow-query { any; };
  recursion yes;
  allow-recursion { any; };
  recursive-clients 100000;
  dnssec-validation no;
  qname-minimization off;
  empty-zones-enable no;
  minimal-responses yes;
  max-cache-size 512m;
  dns64 64:ff9b::/96 { clients { any; }; };
};
controls { };
logging { category default { null; }; };
zone "dutperf.test" {
  type static-stub;
  server-addresses { 198.19.0.2; };
};
""",
    hint="on Debian the package bind9",
)


def _told(*order: str) -> Hook:
    settings = StateFile().dut_directory / "unbound.conf"
    return inside(DUT, "unbound-control", "-c", str(settings), *order)


_BEFORE = [_told("flush_infra", "all"), _told("flush_zone", "dutperf.test")]
_KERNEL = kernel_hooks()

UNBOUND_DNS64 = LabDevice(
    name="unbound-dns64",
    description="Unbound, a DNS64 server of one thread",
    addresses={
        "left": ("2001:2::1/64", "fe80::1/64"),
        "right": ("198.19.0.1/24", "2001:2:0:8000::1/64", "fe80::1/64"),
    },
    left=SideConfig(port=InterfacePort(interface="left", mtu=1500), ipv6=LEFT_IPV6),
    right=lab_side("right", RIGHT_IPV4, RIGHT_IPV6),
    sysctls=ROUTER_SYSCTLS,
    daemons=(_UNBOUND,),
    hooks=_KERNEL.model_copy(
        update={
            "before_trial": [*_BEFORE, *_KERNEL.before_trial],
            "after_trial": [_told("stats"), *_KERNEL.after_trial],
        }
    ),
)
BIND_DNS64 = replace(
    UNBOUND_DNS64,
    name="bind-dns64",
    description="BIND 9, a DNS64 server of one thread",
    daemons=(_BIND,),
    hooks=_KERNEL,
)
