"""siitperf.conf files of the kinds that its papers describe, in our own addresses."""

from __future__ import annotations

from pathlib import Path

from dutperf.compat.conf import NAME, Conf, read_conf
from dutperf.compat.requests import Requests
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.simulation.fake_engine import DUT_MAC

ROUTER = {
    "IP-L-Vers": "4",
    "IP-R-Vers": "4",
    "IPv4-L-Real": "198.18.0.2",
    "IPv4-R-Real": "198.19.0.2",
    "IPv6-L-Real": "2001:2::2",
    "IPv6-R-Real": "2001:2:0:8000::2",
    "MAC-L-Tester": "02:00:00:00:00:01",
    "MAC-R-Tester": "02:00:00:00:00:02",
    "MAC-L-DUT": DUT_MAC,
    "MAC-R-DUT": DUT_MAC,
}
"""An IPv4 router; background frames are possible."""
ROUTER6 = ROUTER | {"IP-L-Vers": "6", "IP-R-Vers": "6"}
SIIT = ROUTER | {
    "IP-L-Vers": "6",
    "IPv4-L-Virt": "198.18.0.2",
    "IPv6-R-Virt": "2001:2:0:1000::2",
}
"""Stateless NAT64: IPv6 on the left, IPv4 on the right (paper 000)."""
RANDOM_PORTS = {
    f"{word}-var-{end}port": "3" for word in ("Fwd", "Rev") for end in ("s", "d")
}
NAT44 = ROUTER | {
    "IPv4-L-Real": "10.0.0.2",
    "IPv4-L-Virt": "198.19.0.1",
    "Stateful": "1",
    "Enumerate-ports": "3",
    "Responder-tuples": "3",
    **RANDOM_PORTS,
    "Fwd-sport-min": "10000",
    "Fwd-sport-max": "10099",
    "Fwd-dport-min": "80",
    "Fwd-dport-max": "119",
}
"""4,000 connections by ports (paper 002)."""
ROUND44 = NAT44 | {"Enumerate-ports": "1", "Fwd-sport-max": "10009"}
"""400 connections, one after the other: phase 1 goes round."""
NAT64 = NAT44 | {"IP-L-Vers": "6", "IPv6-R-Virt": "64:ff9b::c613:2"}
README64 = {key: v for key, v in NAT64.items() if key != "IPv4-L-Virt"} | {
    "IPv4-R-Real": "0.0.0.0",  # noqa: S104 - an address of the file
    "Forward": "0",
}
"""As siitperf's README has it: no address that no frame uses."""
HOSTS44 = {
    key: value
    for key, value in NAT44.items()
    if key != "Enumerate-ports" and "port-m" not in key and "var" not in key
} | {
    "Enumerate-ips": "3",
    "IP-L-var": "3",
    "IP-R-var": "3",
    "IP-L-min": "2",
    "IP-L-max": "65534",
    "IP-R-min": "0",
    "IP-R-max": "65534",
    "IPv4-L-offset": "2",
    "IPv4-R-offset": "2",
}
"""Connections by addresses (paper 003, its Fig. 8)."""
HOSTS4 = ROUTER | {
    "IP-L-var": "3",
    "IP-R-var": "3",
    "IP-L-min": "2",
    "IP-L-max": "65534",
    "IP-R-min": "2",
    "IP-R-max": "65534",
}
"""A router of IPv4, and in ``HOSTS6`` of IPv6, with many addresses (paper 003)."""
HOSTS6 = HOSTS4 | {
    "IP-L-Vers": "6",
    "IP-R-Vers": "6",
    "IP-L-var": "1",
    "IPv6-L-offset": "12",
    "IPv6-R-offset": "12",
}
FEW_HOSTS44 = HOSTS44 | {"IP-L-max": "401", "IP-R-min": "2", "IP-R-max": "254"}
"""Of which a gateway with one network on its right knows all."""
HOSTS64 = FEW_HOSTS44 | {
    "IP-L-Vers": "6",
    "IPv6-R-Virt": "64:ff9b::c613:2",
    "IP-L-min": "0",
    "IP-L-max": "252",
    "IPv6-L-offset": "12",
    "IPv6-R-offset": "14",
}
"""Through NAT64 the last bits of an IPv6 address are those of the IPv4 one."""
TRIAL = "84 1000 1 300 1 1"
PHASE1 = "2000 2000 4000 300 900"
EXAMPLES = {
    "ipv4-router": (ROUTER, TRIAL),
    "ipv4-router-addresses": (HOSTS4, TRIAL),
    "ipv6-router-addresses": (HOSTS6, TRIAL),
    "stateless-nat64": (SIIT, "128 1000 1 300 2 1"),
    "nat44-ports": (NAT44, f"{TRIAL} {PHASE1}"),
    "nat44-few-ports": (ROUND44, f"{TRIAL} {PHASE1}"),
    "nat44-addresses": (FEW_HOSTS44, f"{TRIAL} {PHASE1}"),
    "nat64-ports": (NAT64, f"{TRIAL} {PHASE1}"),
    "nat64-addresses": (HOSTS64, f"{TRIAL} {PHASE1}"),
}
"""Of each kind that siitperf's papers describe: a file, and a trial with it."""


def text_of(keys: dict[str, str]) -> str:
    """The file's text."""
    return "".join(f"{key} {value}\n" for key, value in keys.items())


def write(folder: Path, keys: dict[str, str]) -> Path:
    """The file in ``folder``."""
    path = folder / NAME
    path.write_text(text_of(keys))
    return path


def main_of(requests: Requests) -> TrialRequest:
    """The trial after phase 1, if there is one."""
    assert requests.main
    return requests.main


def read(folder: Path, keys: dict[str, str]) -> Conf:
    """The file, read."""
    return read_conf(write(folder, keys))
