"""What a lab's device is, for reports: as it would be, and as it is now.

Whoever has a lab that is kept may change its device at any time, so all that can
change is read from the kernel when a measurement begins.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING

from dutperf.config.campaign import LabKeys
from dutperf.config.testbed import DeviceFacts, Testbed
from dutperf.lab import netns
from dutperf.lab.presence import others
from dutperf.lab.processes import CpuPlan, cpus_of_mask
from dutperf.lab.state import LabState, StateFile

if TYPE_CHECKING:
    from dutperf.lab.devices.device import LabDevice


def facts(device: LabDevice, cpus: CpuPlan) -> DeviceFacts:
    """Its parameters (RFC 9693 6): it shares the tester's computer."""
    from dutperf.results.environment import computer  # noqa: PLC0415 - takes a while

    this = computer()
    kind = "virtual machine" if this.virtual else "the tester's own computer"
    links = "veth pairs of the kernel" if device.wired else "shared memory"
    shared = "1, the tester's" if cpus.dut is None else f"1, CPU {cpus.dut}"
    return DeviceFacts(
        computer=kind,
        cpu=this.cpu_model,
        cores=shared,
        memory=f"{this.memory_mb} MiB",
        nic=f"none: {links}",
        link="direct",
        os=this.os,
        kernel=this.kernel,
        nat=device.description,
    )


def shared(state: LabState) -> Iterator[str]:
    """With which other labs it shares CPUs, its tester's among them."""
    own = state.device_cpus | state.tester_cpus
    for _, other in others(StateFile(name=state.name)):
        shared = sorted(own & other.device_cpus)
        if shared:
            yield f"CPU {_listed(shared)} shared with lab {other.title}"


def of_processes(state: LabState) -> Iterator[str]:
    """The CPUs of its processes."""
    for process in state.processes:
        try:
            cpus = sorted(os.sched_getaffinity(process.pid))
        except OSError:
            continue
        if state.dut_cpu is None:
            yield f"on the tester's own CPU {_listed(cpus)} (no other is usable)"
        else:
            yield f"on CPU {_listed(cpus)}"


def receiving(cpu: int | None) -> list[str]:
    """What takes in for the tester what it sends, if that is not its own CPU."""
    return [] if cpu is None else [f"what it sends is taken in by CPU {cpu}"]


def steering(device: LabDevice, state: LabState) -> str:
    """To which CPUs RPS steers what arrives on each wire."""
    steered: dict[str, str] = {}
    for namespace, wires in device.interfaces.items():
        paths = {wire: netns.steering_path(wire) for wire in wires}
        shown = netns.read_settings(namespace, list(paths.values()))
        for wire, path in paths.items():
            cpus = _listed(cpus_of_mask(shown.get(path, "0")))
            end = wire if wire in device.homes else f"{wire} of {namespace}"
            steered[end] = cpus
    if not any(steered.values()):
        return f"on the tester's own CPU {_listed(state.tester_cores)}"
    if len(set(steered.values())) == 1:
        return f"steered to CPU {steered['left']} by RPS"
    told = (
        f"{end} {f'to CPU {cpus}' if cpus else 'not'}" for end, cpus in steered.items()
    )
    return f"steered by RPS: {', '.join(told)}"


def _listed(cpus: list[int]) -> str:
    return ", ".join(map(str, cpus))


# The testbed that a lab is, with its device as the lab makes it.


def testbed_of(device: LabDevice, cpus: CpuPlan, keys: LabKeys) -> Testbed:
    """As it will be; what may change of its device is read once it is up."""
    return Testbed(
        name=keys.testbed_name,
        description=", ".join(device.planned(cpus)),
        device=device.facts(cpus),
        namespace=device.tester,
        cores=[cpus.worker],
        main_core=cpus.main,
        left=device.side("left", keys.behaviour),
        right=device.side("right", keys.behaviour),
        translates=device.translates,
        hops=device.hops,
        translated_hops=device.translated_hops,
        hooks=device.hooks,
        routing=device.routing,
    )
