"""What a lab's device is, for reports: as it would be, and as it is now.

Whoever has a lab that is kept may change its device at any time, so all that can
change is read from the kernel when a measurement begins.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from typing import Any

from dutperf.config.encapsulation import SideEncapsulation
from dutperf.config.labs import LabKeys
from dutperf.config.map_rule import MapRule
from dutperf.config.side import SideConfig
from dutperf.config.testbed import DeviceFacts, Testbed
from dutperf.lab import machine, netns
from dutperf.lab.cpus import CpuPlan, cpus_of_mask
from dutperf.lab.devices import (
    LabDevice,
    device_of,
    nftables,
    two_boxes,
    virtual_machine,
)
from dutperf.lab.devices.nftables import FILTERS
from dutperf.lab.presence import others
from dutperf.lab.state import LabState, StateFile
from dutperf.protocol import Encapsulation, Side, VlanTag


def planned(device: LabDevice, cpus: CpuPlan) -> str:
    """The device as the lab would make it; nothing is up."""
    place = cpus.describe() if device.is_kernel else cpus.describe_process()
    filters = [] if device.filters is None else [_filters([device.filters])]
    tracked = [nftables.planned_tracking(device.tracking)] if device.tracking else []
    cpu = cpus.receive if device.wired else None
    received = [] if cpu is None else [_receiving(cpu)]
    return ", ".join(
        [device.description, *filters, _kernel(device), *received, place, *tracked]
    )


def present(state: LabState) -> str:
    """The device of the lab that is up, as it is now."""
    device = device_of(state)
    return ", ".join(
        [device.description, *_filtered(device), _kernel(device), *_now(state)]
    )


def facts(device: LabDevice, cpus: CpuPlan) -> DeviceFacts:
    """Its parameters (RFC 9693 6): it shares the tester's computer."""
    from dutperf.results.environment import computer  # noqa: PLC0415 - takes a while

    this = computer()
    if device.guest:
        return virtual_machine.facts(this.cpu_model, cpus.dut)
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


def filters_now(device: LabDevice) -> list[int]:
    """How many filters the firewall has, for each IP version."""
    counts = netns.count_rules(device.namespaces[0], FILTERS[0].name)
    return [counts.get(table.family, 0) for table in FILTERS]


def _kernel(device: LabDevice) -> str:
    if device.guest:
        return virtual_machine.describe()
    return f"kernel {platform.release()}"


def _filtered(device: LabDevice) -> list[str]:
    return [] if device.filters is None else [_filters(filters_now(device))]


def _filters(counts: list[int]) -> str:
    """``counts``: for all IP versions, or one for each."""
    if len(set(counts)) > 1:
        ipv4, ipv6 = counts
        return f"nftables, {ipv4} filters for IPv4 and {ipv6} for IPv6"
    if not counts[0]:
        return "nftables without filters"
    filters = "1 filter" if counts[0] == 1 else f"{counts[0]} filters"
    return f"nftables, {filters}, the last one matches"


def _now(state: LabState) -> Iterator[str]:
    device = device_of(state)
    yield from two_boxes.ways_now(device)
    yield from _shared(state)
    if state.receive_cpu is not None:
        yield _receiving(state.receive_cpu)
    if not device.is_kernel:
        yield from _process(state)
        return
    yield _steering(state)
    if device.tracking:
        shown = netns.read_settings(device.namespaces[-1], nftables.SHOWN)
        yield nftables.present_tracking(shown)
    yield machine.describe_queue(state.dut_cpu, state.settings, state.priorities)


def _shared(state: LabState) -> Iterator[str]:
    """With which other labs it shares CPUs, its tester's among them."""
    own = state.device_cpus | state.tester_cpus
    for _, other in others(StateFile(name=state.name)):
        shared = sorted(own & other.device_cpus)
        if shared:
            yield f"CPU {_listed(shared)} shared with lab {other.title}"


def _process(state: LabState) -> Iterator[str]:
    for process in state.processes:
        try:
            cpus = sorted(os.sched_getaffinity(process.pid))
        except OSError:
            continue
        if state.dut_cpu is None:
            yield f"on the tester's own CPU {_listed(cpus)} (no other is usable)"
        else:
            yield f"on CPU {_listed(cpus)}"


def _receiving(cpu: int) -> str:
    return f"what it sends is taken in by CPU {cpu}"


def _steering(state: LabState) -> str:
    """To which CPUs RPS steers what arrives on each wire."""
    device = device_of(state)
    steered: dict[str, str] = {}
    for namespace, wires in device.interfaces.items():
        paths = {wire: netns.steering_path(wire) for wire in wires}
        shown = netns.read_settings(namespace, list(paths.values()))
        for wire, path in paths.items():
            cpus = _listed(cpus_of_mask(shown.get(path, "0")))
            end = wire if wire in device.homes else f"{wire} of {namespace}"
            steered[end] = cpus
    if not any(steered.values()):
        return f"on the tester's own CPU {_listed(state.testbed.cores)}"
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
        description=planned(device, cpus),
        device=facts(device, cpus),
        namespace=device.tester,
        cores=[cpus.worker],
        main_core=cpus.main,
        left=_tagged("left", device.left, keys),
        right=_tagged("right", device.right, keys),
        translates=device.translates,
        hops=device.hops,
        translated_hops=device.translated_hops,
        hooks=device.hooks,
        routing=device.routing,
    )


def _tagged(name: Side, side: SideConfig, keys: LabKeys) -> SideConfig:
    """With the VLAN tags and outer headers that the device is told to have there."""
    told = keys.behaviour or {}
    tags = [VlanTag.model_validate(tag) for tag in told.get("vlan", {}).get(name, [])]
    tunnel = told.get("encapsulation", {}).get(name)
    update: dict[str, Any] = {"vlan": tags} if tags else {}
    if tunnel:
        devices = Encapsulation.model_validate(tunnel)
        rule = told.get("map", {}).get(name)
        update["encapsulation"] = SideEncapsulation.at_other_end(
            devices, MapRule.model_validate(rule) if rule else None
        )
    return side.model_copy(update=update)
