"""Network namespaces: what is in them, and how their kernel is told and asked.

Nothing is ever done to the root namespace: each function names the one it is about.
"""

from __future__ import annotations

import errno
import ipaddress
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import lazy_loader

from dutperf.errors import SetupError
from dutperf.programs import feed, in_namespace

if TYPE_CHECKING:
    from dutperf.protocol.base import Side


NAMESPACES = ("tester", "dut", "dut2")
"""All that the nameless lab may have; a named one's are its device's: ``at``."""
TESTER, *CHAIN = NAMESPACES
"""The tester's, and those of the device's boxes, of which it has one or two."""
DUT, DUT2 = CHAIN
SIDES: tuple[Side, ...] = ("left", "right")

NETNS_DIRECTORY = Path("/run/netns")
ADDRESS_WITHOUT_DAD = 0x02  # IFA_F_NODAD, linux/if_addr.h
pyroute2 = lazy_loader.load("pyroute2")
"""Takes a quarter of a second to load: who only looks at a lab need not wait for it."""

Rtnetlink: TypeAlias = Any
"""An IPRoute; pyroute2 has no types."""

_WRITE_SETTINGS = """
while read -r path value; do
  echo "$value" >"$path" || { echo "cannot write $value to $path" >&2; exit 1; }
done
"""
_READ_SETTINGS = """
while read -r path; do
  value=$(head -n1 "$path") && echo "$path $value"
done
"""


def name_in_lab(namespace: str, name: str | None) -> str:
    """What a namespace is called in the lab of that name: dut, or dut-a."""
    return namespace if name is None else f"{namespace}-{name}"


def check_machine() -> None:
    """Raises SetupError unless this process can make namespaces here."""
    if os.geteuid() != 0:
        raise SetupError("a lab needs root: it makes network namespaces", "run as root")
    check_program("ip", "iproute2")
    if not Path("/proc/self/ns/net").exists():
        raise SetupError(
            "this kernel has no network namespaces",
            "use a kernel with CONFIG_NET_NS; all distributions' kernels have it",
        )


def check_program(name: str, package: str) -> None:
    """Raises SetupError, which names the Debian package, if the program is missing."""
    if shutil.which(name) is None:
        raise SetupError(
            f"the program {name} is missing",
            f"install {package}: apt-get install {package}",
        )


def existing(namespaces: Sequence[str]) -> list[str]:
    """Those of ``namespaces`` that exist, not merely a file left by a half-made one."""
    return [name for name in namespaces if os.path.ismount(NETNS_DIRECTORY / name)]


def leftovers(namespaces: Sequence[str]) -> list[str]:
    """Those of ``namespaces`` of which at least the file exists."""
    return [name for name in namespaces if (NETNS_DIRECTORY / name).exists()]


def clear(namespaces: Sequence[str]) -> None:
    """Removes the namespaces and their links, however little of them was made.

    Links go first: a process that still sits in a namespace would keep them alive.
    """
    with kernel_errors("remove the lab"):
        for name in existing(namespaces):
            with rtnetlink(name) as handle:
                _delete_links(handle)
        for name in leftovers(namespaces):
            pyroute2.netns.remove(name)


def _delete_links(handle: Rtnetlink) -> None:
    for link in handle.get_links(kind="veth"):
        try:
            handle.link("del", index=link["index"])
        except pyroute2.NetlinkError as error:
            # The kernel may be at it already, if the peer's namespace was deleted.
            if error.code != errno.ENODEV:
                raise


def write_settings(namespace: str, settings: Mapping[str, str]) -> None:
    """Writes values to files below /proc/sys and /sys as ``namespace`` shows them.

    ``ip netns exec`` mounts the namespace's own /sys, which setns alone does not.

    Raises:
        SetupError: names the first file that took no value.
    """
    lines = "".join(f"{path} {value}\n" for path, value in settings.items())
    refused = feed(in_namespace(namespace, "sh", "-c", _WRITE_SETTINGS), lines)
    if refused:
        raise SetupError(
            f"cannot configure namespace {namespace}: {refused}",
            "the lab needs a kernel with IPv4, IPv6 (no ipv6.disable=1) and RPS, and "
            "the right to mount /sys (CAP_SYS_ADMIN)",
        )


def read_settings(namespace: str, paths: Sequence[str]) -> dict[str, str]:
    """Their values, as ``namespace`` shows them; without those that it does not."""
    result = subprocess.run(
        in_namespace(namespace, "sh", "-c", _READ_SETTINGS),
        input="".join(f"{path}\n" for path in paths),
        capture_output=True,
        text=True,
        check=False,
    )
    lines = (line.partition(" ") for line in result.stdout.splitlines())
    return {path: value for path, _, value in lines}


def run_ip(namespace: str, commands: Sequence[str]) -> None:
    """Runs all ``commands`` of ip(8) in ``namespace``, by one process.

    Raises:
        SetupError: says what the first that failed said; those before have worked.
    """
    batch = "".join(f"{command}\n" for command in commands)
    refused = feed(["ip", "-netns", namespace, "-batch", "-"], batch)
    if refused:
        raise SetupError(
            f"cannot set up namespace {namespace}: {refused}",
            "the lab needs CAP_NET_ADMIN and a kernel with IPv4 and IPv6",
        )


def rtnetlink(namespace: str) -> Rtnetlink:
    """A socket that asks and tells that namespace's kernel of links and addresses."""
    # Without flags=0 pyroute2 would make a namespace that does not exist.
    return pyroute2.IPRoute(netns=namespace, flags=0)


def add_wire(here: Rtnetlink, name: str, there: str, mtu: int) -> None:
    """A wire from here to namespace ``there``, whose ends have the same name."""
    # One queue: the tester's sockets bind to queue 0, and steering needs no more.
    queues = {"num_tx_queues": 1, "num_rx_queues": 1}
    same = {"ifname": name, "mtu": mtu, **queues}
    here.link("add", kind="veth", peer={**same, "net_ns_fd": there}, **same)


def add_addresses(here: Rtnetlink, wire: str, addresses: Sequence[str]) -> None:
    """Gives the wire's end here its addresses, with prefix length."""
    for own in map(ipaddress.ip_interface, addresses):
        here.addr(
            "add",
            index=index_of(here, wire),
            address=str(own.ip),
            prefixlen=own.network.prefixlen,
            flags=ADDRESS_WITHOUT_DAD if own.version == 6 else 0,
        )


def has_carrier(namespace: str, interface: str) -> bool:
    """Whether something is connected to the interface's other end."""
    with rtnetlink(namespace) as handle:
        link = handle.link("get", index=index_of(handle, interface))[0]
        return bool(link.get_attr("IFLA_CARRIER"))


def index_of(handle: Rtnetlink, name: str) -> int:
    """The number of the interface of that name there."""
    found: int = handle.link_lookup(ifname=name)[0]
    return found


def sysctl_path(key: str) -> str:
    """The file of a sysctl: net.ipv4.ip_forward -> /proc/sys/net/ipv4/ip_forward."""
    return "/proc/sys/" + key.replace(".", "/")


def steering_path(interface: str) -> str:
    """The file of the CPUs to which RPS steers what arrives there."""
    return f"/sys/class/net/{interface}/queues/rx-0/rps_cpus"


@contextmanager
def kernel_errors(action: str) -> Iterator[None]:
    """What the kernel refuses in the block becomes a SetupError."""
    try:
        yield
    except (pyroute2.NetlinkError, OSError, RuntimeError) as error:
        raise SetupError(
            f"cannot {action}: {error}",
            "needs CAP_SYS_ADMIN and CAP_NET_ADMIN (a container must be privileged) "
            "and a kernel with CONFIG_NET_NS and CONFIG_VETH",
        ) from error


# The kernel's packet filter in a namespace: load rules, count those that are there.


_NFT = ("nft", "-j", "-f", "-")


def load_ruleset(namespace: str, commands: Sequence[Mapping[str, Any]]) -> str:
    """Runs nftables' commands, all or none; what it complained of, or nothing."""
    return feed(
        in_namespace(namespace, *_NFT), json.dumps({"nftables": list(commands)})
    )


def replace_ruleset(namespace: str, commands: Sequence[Mapping[str, Any]]) -> str:
    """As ``load_ruleset``, and nothing else is left; no packet sees a state between."""
    return load_ruleset(namespace, [{"flush": {"ruleset": None}}, *commands])


def count_rules(namespace: str, table: str) -> dict[str, int]:
    """The number of rules in the tables of that name, by their family."""
    listed = subprocess.run(
        in_namespace(namespace, "nft", "-j", "list", "ruleset"),
        capture_output=True,
        text=True,
        check=False,
    )
    counts: dict[str, int] = {}
    if listed.returncode == 0:
        for item in json.loads(listed.stdout)["nftables"]:
            rule = item.get("rule")
            if rule and rule["table"] == table:
                counts[rule["family"]] = counts.get(rule["family"], 0) + 1
    return counts
