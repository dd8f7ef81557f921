"""Whether the workers' cores are on the NUMA node of the NICs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from dutperf.protocol import PortsResult

_NODES = Path("/sys/devices/system/node")


def far_cores(
    ports: PortsResult, cores: Sequence[int], nodes: Path = _NODES
) -> Iterator[str]:
    """A notice for each port that is on another node than a core which serves it.

    Args:
        ports: the open ports; one that is on no node (a virtual one) is near all cores.
        cores: CPUs of the workers.
        nodes: where the kernel lists its nodes; another one in tests.
    """
    node_of = _nodes_of_cores(nodes)
    for port in ports.ports:
        far = [core for core in cores if node_of.get(core) != port.numa_node]
        known = [core for core in far if core in node_of]
        if port.numa_node is None or not known:
            continue
        listed = ", ".join(f"{core} (node {node_of[core]})" for core in known)
        yield (
            f"the {port.label} port is on NUMA node {port.numa_node}, but not these "
            f"cores: {listed}; frames cross between nodes, which costs speed: choose "
            f"cores of node {port.numa_node} (testbed key cores)"
        )


def _nodes_of_cores(nodes: Path) -> dict[int, int]:
    """CPU -> node, as far as the kernel says."""
    found: dict[int, int] = {}
    for node in nodes.glob("node[0-9]*"):
        try:
            cpus = (node / "cpulist").read_text()
        except OSError:
            continue
        number = int(node.name.removeprefix("node"))
        found |= dict.fromkeys(_listed(cpus), number)
    return found


def _listed(cpus: str) -> Iterator[int]:
    """The CPUs of a list like ``0-3,8``."""
    for part in cpus.strip().split(","):
        first, _, last = part.partition("-")
        if first:
            yield from range(int(first), int(last or first) + 1)
