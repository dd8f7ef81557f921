"""Bringing a lab up, and above all down again.

A lab is made by ``session`` for as long as a block runs, or by ``up`` to be kept until
``down``. There is one lab on a machine at a time. What a killed process left behind is
removed by the next ``up``, ``session`` or ``down``.
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from dutperf.config.encapsulation import SideEncapsulation
from dutperf.config.labs import LabKeys, lab_keys
from dutperf.config.map_rule import MapRule
from dutperf.config.testbed import SideConfig, Testbed
from dutperf.errors import InputError, SetupError
from dutperf.interruption import postponed_signals, terminate_as_interrupt
from dutperf.lab import (
    chain,
    daemons,
    description,
    input_queue,
    machine,
    open_vswitch,
    processes,
    receive_cpu,
    refdut,
    topology,
    tracking,
    translator,
    virtual_machine,
)
from dutperf.lab.cpus import CpuPlan, plan_cpus
from dutperf.lab.devices import LABS, LabDevice, linux_firewall
from dutperf.lab.devices.known_answer import KNOWN_ANSWER
from dutperf.lab.refdut_socket import Behaviour
from dutperf.lab.state import (
    LabState,
    Process,
    StateFile,
    is_running,
    this_process,
)
from dutperf.protocol import (
    Encapsulation,
    Side,
    VlanTag,
)

_INTERRUPTED = "interrupted: the lab is finished, then taken down; a moment"


@dataclass(frozen=True)
class LabStatus:
    """A lab that is up, or what is left of one.

    Attributes:
        name: the device.
        since: when it was made.
        owner: the number of the process it belongs to; None if it is kept.
        alive: False if it is a remainder, which the next ``up`` or ``down`` removes.
        namespaces: those that exist.
        links: the lab's links in those namespaces, as namespace/interface.
    """

    name: str
    since: datetime
    owner: int | None
    alive: bool
    namespaces: tuple[str, ...]
    links: tuple[str, ...]


def up(given: str | LabKeys) -> Testbed:
    """Brings up a lab that is kept until ``down``.

    If the same lab is kept already and whole, its testbed is returned: a second
    ``up`` changes nothing but the behaviour (known-answer only) or the number of
    filters (linux-firewall only), if one is given.

    Raises:
        InputError: there is no device of that name, or it takes no such behaviour or
            no filters.
        SetupError: not root, another lab is up, the names are taken, or the kernel
            cannot do it. Nothing of the new lab is left then.
    """
    keys = lab_keys(given)
    device = _device(keys)
    topology.check_machine()
    with StateFile().locked():
        present = StateFile().read()
        if (
            present
            and present.device == keys.name
            and not present.owner
            and _usable(present)
        ):
            if keys.rules is not None:
                topology.load_rules(device)
                named = {"name": keys.testbed_name}
                testbed = present.testbed.model_copy(update=named)
                present = present.model_copy(update={"testbed": testbed})
                StateFile().write(present)
            _tell(keys.behaviour)
            return _as_it_is(present)
        return _as_it_is(_bring_up(device, keys, keep=True))


def attached(given: str | LabKeys) -> Testbed:
    """The testbed of a lab that is kept, as it is now; its device stays as it is.

    Raises:
        InputError: there is no device of that name, or it has no filters.
        SetupError: it is not kept, has not so many filters, or is to do as told.
    """
    keys = lab_keys(given)
    name, rules = keys.name, keys.rules
    _device(keys)
    state = StateFile().read()
    if state is None or state.device != name or not is_whole(state):
        raise SetupError(
            f"lab {name} is not up any more", f"dutperf lab up {name}, or leave it out"
        )
    if state.receive_cpu is not None:
        receive_cpu.move(LABS[name].homes, state.receive_cpu)
    if keys.behaviour is not None or keys.label is not None:
        raise SetupError(
            f"lab {name} is kept, and does what it was told when it was brought up",
            "take it down, and it is made for each run, to do as the campaign says: "
            "dutperf lab down",
        )
    now = [] if rules is None else description.filters_now()
    if any(count != rules for count in now):
        has = " and ".join(map(str, dict.fromkeys(now)))
        raise SetupError(
            f"lab {name} is kept with {has} filters, not {rules}",
            f"change it: dutperf lab up {name} --rules {rules}; or take it down, and "
            "it is made for each run: dutperf lab down",
        )
    return _as_it_is(state)


@contextmanager
def session(given: str | LabKeys) -> Iterator[Testbed]:
    """A lab of the block's own: down on its end, error, Ctrl-C, SIGTERM and SIGHUP.

    In the block, SIGTERM and SIGHUP raise KeyboardInterrupt unless the program has
    handlers of its own. If the process is killed, the next ``up`` cleans up.

    Raises:
        InputError: as ``up``.
        SetupError: as ``up``; also if the same lab is kept by ``up``.
    """
    keys = lab_keys(given)
    device = _device(keys)
    topology.check_machine()
    with terminate_as_interrupt():
        try:
            with StateFile().locked():
                state = _bring_up(device, keys, keep=False)
            yield _as_it_is(state)
        finally:
            with postponed_signals(), StateFile().locked():
                _clear_if_owned()


def use(given: str | LabKeys) -> AbstractContextManager[Testbed]:
    """The lab, once it is there: the one that ``up`` keeps, or one of the block's own.

    One that is kept and broken is not replaced: the new device would not know what the
    user has told the old one, and nobody would see that another one is measured.

    Raises:
        InputError: as ``up``.
        SetupError: it cannot be brought up, or is kept and its device has gone or is
            not as it was asked for.
    """
    name = lab_keys(given).name
    kept = [s for s in running() if s.name == name and s.owner is None]
    if not kept:
        return session(given)
    if not all(status.alive for status in kept):
        raise SetupError(
            f"the device of lab {name}, which 'lab up' keeps, has gone: its process "
            "ended, or its network namespaces were deleted",
            f"make it anew: dutperf lab up {name}, with --behaviour if it had one; or "
            "dutperf lab down, and it is up for each run only",
        )
    return contextlib.nullcontext(attached(given))


def down(name: str | None = None, *, all_: bool = False) -> list[str]:
    """Takes down the lab ``name``, or whichever is up; returns the names.

    ``all_`` takes it down even from under a process that uses it.

    Raises:
        InputError: there is no device of that name.
        SetupError: not root, or the lab belongs to a process that runs.
    """
    if name is not None:
        _device(LabKeys(name=name))
    topology.check_machine()
    with StateFile().locked():
        state = StateFile().read()
        if state is None or name not in (None, state.device):
            return []
        if _in_use_elsewhere(state) and not all_:
            raise _in_use(state)
        _clear(state)
        return [state.device]


def plan(given: str | LabKeys) -> Testbed:
    """The testbed that the lab would have here; brings nothing up and needs no root.

    Raises:
        InputError: there is no device of that name, or it has no filters, or does not
            understand its behaviour.
    """
    keys = lab_keys(given)
    device = _device(keys)
    if keys.behaviour is not None:
        refdut.check(keys.behaviour)
    return _testbed(device, plan_cpus(), keys)


def running() -> list[LabStatus]:
    """The lab that is up or left behind, if any; needs no root."""
    state = StateFile().read()
    if state is None:
        return []
    namespaces = tuple(topology.existing(state.namespaces))
    return [
        LabStatus(
            name=state.device,
            since=state.since,
            owner=state.owner.pid if state.owner else None,
            alive=_usable(state),
            namespaces=namespaces,
            links=tuple(n for n in state.links if n.partition("/")[0] in namespaces),
        )
    ]


def dut_alive(name: str) -> bool:
    """Whether the lab ``name`` is whole, as it was made; needs no root."""
    state = StateFile().read()
    return state is not None and state.device == name and is_whole(state)


def _device(keys: LabKeys) -> LabDevice:
    name, rules = keys.name, keys.rules
    if name in LABS:
        device = LABS[name]
        if keys.behaviour is not None and not device.answers:
            raise InputError(
                f"lab {name} takes no behaviour: it does what it does",
                f"the lab that does as told is {KNOWN_ANSWER.name}",
            )
        if rules is None:
            return device
        if device.filters is None:
            filtered = [each.name for each in LABS.values() if each.filters is not None]
            raise InputError(
                f"lab {name} has no filters whose number could be chosen",
                f"leave rules out, or take the lab {', '.join(filtered)}",
            )
        return linux_firewall(rules)
    near = difflib.get_close_matches(name, LABS, n=1)
    raise InputError(
        f"there is no lab named {name!r}",
        f"did you mean {near[0]!r}?" if near else f"labs: {', '.join(LABS)}",
    )


def _bring_up(device: LabDevice, keys: LabKeys, *, keep: bool) -> LabState:
    """Makes the lab; call with the lock held.

    The maker owns the lab until it is ready, also one that is to be kept: if it dies
    half-way, the next one sees remains and not a lab.
    """
    _check_programs(device)
    _make_room(device)
    cpus = plan_cpus()
    state = LabState(
        device=device.name,
        since=datetime.now(UTC),
        owner=this_process(),
        namespaces=(topology.TESTER, *device.namespaces),
        links=topology.links(device),
        settings=machine.settings_to_raise(
            machine.NEIGHBOUR_LIMITS, machine.NEIGHBOURS
        ),
        dut_cpu=cpus.dut,
        testbed=_testbed(device, cpus, keys),
    )
    StateFile().write(state)
    try:
        with terminate_as_interrupt(), postponed_signals(_INTERRUPTED):
            state = _build(device, cpus, state)
        _tell(keys.behaviour)
        if keep:
            state = state.model_copy(update={"owner": None})
            StateFile().write(state)
    except BaseException:
        _clear(StateFile().read() or state)
        raise
    return state


def _build(device: LabDevice, cpus: CpuPlan, state: LabState) -> LabState:
    """Makes what ``state`` announces; returns it with all that was added meanwhile."""

    def update(**fields: object) -> None:
        nonlocal state
        state = state.model_copy(update=fields)
        StateFile().write(state)

    def record(process: Process) -> None:
        update(processes=(*state.processes, process))

    StateFile().make_dut_directory()
    if device.tracking:
        update(settings=(*state.settings, *tracking.limit(device.tracking.connections)))
    machine.change_settings(state.settings)
    if device.is_kernel:
        changes = input_queue.plan(cpus.dut)
        update(
            settings=(*state.settings, *changes.settings),
            priorities=changes.priorities,
        )
        input_queue.apply(changes)
    topology.build(device, cpus)
    if len(device.boxes) > 1:
        chain.join(device, cpus)
    if cpus.receive is not None and device.wired:
        moved = receive_cpu.move(device.homes, cpus.receive)
        update(receive_cpu=cpus.receive if moved else None)
    for home, each in device.translators.items():
        translator.start(each, home, cpus.dut, StateFile().dut_directory, record)
    for daemon in device.daemons:
        daemons.start(daemon, cpus.dut, StateFile().dut_directory, record)
    if device.rules:
        pages = open_vswitch.pages_to_reserve()
        update(settings=(*state.settings, *pages))
        machine.change_settings(pages)
        open_vswitch.check_pages(pages)
        cpu = cpus.worker if cpus.dut is None else cpus.dut
        open_vswitch.start(device, cpu, StateFile().dut_directory, record)
    if device.guest:
        virtual_machine.start(device, cpus.dut, StateFile().dut_directory, record)
    if device.answers:
        refdut.start(device, cpus, StateFile().dut_directory, record)
    return state


def _tell(behaviour: Behaviour | None) -> None:
    if behaviour is not None:
        refdut.tell(StateFile().dut_directory, behaviour)


def _check_programs(device: LabDevice) -> None:
    if device.translators:
        topology.check_program("tayga", "tayga")
    for daemon in device.daemons:
        topology.check_program(daemon.program, daemon.package)
    if device.daemons or (device.wired and plan_cpus().receive is not None):
        topology.check_program("ethtool", "ethtool")
    if device.rules:
        open_vswitch.check_programs()
    if device.guest:
        virtual_machine.check()
    if device.answers:
        refdut.check_program()


def _make_room(device: LabDevice) -> None:
    present = StateFile().read()
    if present is not None:
        if _usable(present) or _in_use_elsewhere(present):
            raise _in_use(present)
        _clear(present)
    taken = topology.leftovers((topology.TESTER, *device.namespaces))
    if taken:
        raise SetupError(
            f"network namespace {' and '.join(taken)} exists, not made by dutperf",
            "the lab needs these names; if nothing uses them: "
            + "; ".join(f"ip netns del {name}" for name in taken),
        )


def _clear(state: LabState) -> None:
    with postponed_signals():
        for process in state.processes:
            processes.end(process)
        topology.clear(state.namespaces)
        machine.restore_settings(state.settings)
        input_queue.restore_priorities(state.priorities)
        StateFile().remove()


def _clear_if_owned() -> None:
    state = StateFile().read()
    if state is not None and state.owner == this_process():
        _clear(state)


def _in_use(state: LabState) -> SetupError:
    owner: Process | None = state.owner
    if owner is None:
        return SetupError(
            f"lab {state.device} is up and kept, since {state.since:%F %T} UTC",
            "take it down first: dutperf lab down",
        )
    return SetupError(
        f"lab {state.device} is in use by process {owner.pid}, "
        f"since {state.since:%F %T} UTC",
        f"wait for it, or stop it (kill {owner.pid}); it takes its lab down itself",
    )


def _in_use_elsewhere(state: LabState) -> bool:
    return (
        state.owner is not None
        and is_running(state.owner)
        and state.owner != this_process()
    )


def is_whole(state: LabState) -> bool:
    """Whether all of it is there, as it was made."""
    namespaces = topology.existing(state.namespaces)
    return len(namespaces) == len(state.namespaces) and all(
        map(is_running, state.processes)
    )


def _usable(state: LabState) -> bool:
    return is_whole(state) and (state.owner is None or is_running(state.owner))


def _testbed(device: LabDevice, cpus: CpuPlan, keys: LabKeys) -> Testbed:
    return Testbed(
        name=keys.testbed_name,
        description=description.planned(device, cpus),
        device=description.facts(device, cpus),
        namespace=topology.TESTER,
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


def _as_it_is(state: LabState) -> Testbed:
    """The testbed of a lab that is up, with its device as it is now."""
    now = {"description": description.present(state)}
    return state.testbed.model_copy(update=now)
