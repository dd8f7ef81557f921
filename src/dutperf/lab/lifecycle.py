"""Bringing a lab up, and above all down again.

A lab is made by ``session`` for as long as a block runs, or by ``up`` to be kept until
``down``. Labs that have names of their own may be up at once. What a killed process
left behind is removed by the next ``up`` or ``session`` of any lab, and by ``down``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dutperf import busy
from dutperf.config.campaign import LabKeys, lab_keys
from dutperf.config.testbed import Testbed
from dutperf.errors import BusyError, SetupError
from dutperf.lab import (
    device_cpu,
    machine,
    netns,
    presence,
    processes,
    topology,
)
from dutperf.lab.devices import device_of, find
from dutperf.lab.devices.device import LabDevice
from dutperf.lab.orders import check_limit
from dutperf.lab.presence import (
    in_use,
    is_in_use_elsewhere,
    is_there,
    is_usable,
    is_whole,
    others,
    present,
    running,
)
from dutperf.lab.processes import CpuPlan, Process, Programs, is_running, this_process
from dutperf.lab.state import LabState, StateFile, hand_over
from dutperf.lab.topology import testbed_of
from dutperf.programs import postponed_signals, terminate_as_interrupt

_INTERRUPTED = "interrupted: the lab is finished, then taken down; a moment"


def up(given: str | LabKeys, *, share: bool = False) -> Testbed:
    """Brings up a lab that is kept until ``down``.

    ``share``: also on CPUs that other labs or runs have.

    If the same lab is kept already and whole, its testbed is returned: a second
    ``up`` changes nothing but the behaviour (known-answer only) or the number of
    filters (linux-firewall only), if one is given.

    Raises:
        InputError: there is no device of that name, or it takes no such behaviour or
            no filters.
        SetupError: not root, another lab of that name is up, its CPUs or the names are
            taken, or the kernel cannot do it. Nothing of the new lab is left then.
    """
    keys = lab_keys(given)
    device = find(keys)
    file = StateFile(name=keys.own_name)
    netns.check_machine()

    def attempt() -> Testbed:
        with file.locked():
            there = _kept(file, device, keys)
            return _as_it_is(there or _bring_up(file, device, keys, share, keep=True))

    return busy.once_free(attempt)


def _kept(file: StateFile, device: LabDevice, keys: LabKeys) -> LabState | None:
    """The same lab if it is kept already and whole, now as asked for."""
    kept = file.read()
    if kept is None or kept.device != keys.device or kept.owner or not is_usable(kept):
        return None
    if keys.rules is not None:
        device.load_rules()
        named = {"name": keys.testbed_name}
        kept = replace(kept, testbed_keys=kept.testbed_keys | named)
        file.write(kept)
    if keys.behaviour is not None:
        device.tell(file.dut_directory, keys.behaviour)
    return kept


def attached(given: str | LabKeys) -> Testbed:
    """The testbed of a lab that is kept, as it is now; its device stays as it is.

    Raises:
        InputError: there is no device of that name, or it has no filters.
        SetupError: it is not kept, has not so many filters, or is to do as told.
    """
    keys = lab_keys(given)
    name = keys.name
    device = find(keys)
    file = StateFile(name=keys.own_name)
    state = file.read()
    if state is None or state.device != device.name or not is_whole(state):
        raise SetupError(
            f"lab {name} is not up any more", f"dutperf lab up {name}, or leave it out"
        )
    if state.receive_cpu is not None:
        renew_receiving(keys.own_name)
    _check_as_asked(keys, device)
    return _as_it_is(state)


def _gone(keys: LabKeys) -> SetupError:
    """What is said of a lab that is kept and broken."""
    return SetupError(
        f"the device of lab {keys.name}, which 'lab up' keeps, has gone: its process "
        "ended, or its network namespaces were deleted",
        f"make it anew: dutperf lab up {keys.name}, with --behaviour if it had one; or "
        f"{_taken_down(keys)}, and it is up for each run only",
    )


def _check_as_asked(keys: LabKeys, device: LabDevice) -> None:
    """A lab that is kept is not changed by who uses it."""
    name, rules = keys.name, keys.rules
    if (keys.behaviour, keys.connections, keys.label) != (None, None, None):
        raise SetupError(
            f"lab {name} is kept, and does what it was told when it was brought up",
            "take it down, and it is made for each run, to do as the campaign says: "
            f"{_taken_down(keys)}",
        )
    now = [] if rules is None else device.filters_now()
    if any(count != rules for count in now):
        has = " and ".join(map(str, dict.fromkeys(now)))
        raise SetupError(
            f"lab {name} is kept with {has} filters, not {rules}",
            f"change it: dutperf lab up {name} --rules {rules}; or take it down, and "
            f"it is made for each run: {_taken_down(keys)}",
        )


def _taken_down(keys: LabKeys) -> str:
    """The command that does it."""
    named = f" --name {keys.own_name}" if keys.own_name else ""
    return f"dutperf lab down{named}"


def renew_receiving(own_name: str | None = None) -> None:
    """Before another driver has the interfaces of a lab that is up: see ``move``."""
    file = StateFile(name=own_name)
    with file.locked():  # it tells its threads from those of no other lab
        state = file.read()
        if state is not None and state.receive_cpu is not None:
            device_cpu.move_receiving(device_of(state), state.receive_cpu)


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
    device = find(keys)
    file = StateFile(name=keys.own_name)
    netns.check_machine()

    def attempt() -> LabState:
        with file.locked():
            return _bring_up(file, device, keys, share=False, keep=False)

    with terminate_as_interrupt():
        try:
            state = busy.once_free(attempt)
            with presence.owned(file):
                yield _as_it_is(state)
        finally:
            with postponed_signals(), file.locked():
                _clear_if_owned(file)


def use(given: str | LabKeys) -> AbstractContextManager[Testbed]:
    """The lab, once it is there: the one that ``up`` keeps, or one of the block's own.

    One that is kept and broken is not replaced: the new device would not know what the
    user has told the old one, and nobody would see that another one is measured.

    Raises:
        InputError: as ``up``.
        SetupError: it cannot be brought up, or is kept and its device has gone or is
            not as it was asked for.
    """
    keys = lab_keys(given)
    own = keys.device, keys.own_name
    there = (s for s in running() if s.owner is None)
    kept = [s for s in there if (s.name, s.own_name) == own]
    if not kept:
        return session(given)
    if not all(status.alive for status in kept):
        raise _gone(keys)
    return _held(StateFile(name=keys.own_name), attached(given))


def check(given: str | LabKeys) -> None:
    """No lab that is kept is in the way of ``use``, which may come much later.

    Who ends by himself is waited for then, and is nobody's fault now.

    Raises:
        InputError: there is no device of that name.
        SetupError: one is.
    """
    keys = lab_keys(given)
    device = find(keys)
    file = StateFile(name=keys.own_name)
    there = file.read()
    if there is not None and there.owner is None and is_there(there):
        if there.device == device.name:
            if not is_usable(there):
                raise _gone(keys)
            _check_as_asked(keys, device)
            return
        if is_usable(there):
            raise in_use(there)
    if busy.choice() != "share":
        with suppress(BusyError):
            presence.choose(file)


@contextmanager
def _held(file: StateFile, testbed: Testbed) -> Iterator[Testbed]:
    """``testbed`` of a lab that is kept, with the CPUs of its device."""
    with presence.owned(file):
        yield testbed


def down(
    name: str | None = None, *, own_name: str | None = None, all_: bool = False
) -> list[str]:
    """Takes down a lab; returns what went, as people call it.

    Args:
        name: its device; None: whatever it is.
        own_name: its own name; None: the nameless one.
        all_: also from under a process that uses it; without names, all labs.

    Raises:
        InputError: there is no device of that name.
        SetupError: not root, or the lab belongs to a process that runs.
    """
    keys = None if name is None else LabKeys(name=name)
    if keys is not None:
        find(keys)
        own_name = own_name or keys.own_name
    netns.check_machine()
    with StateFile().locked():
        if all_ and keys is None and own_name is None:
            files = StateFile().all()
        else:
            files = [StateFile(name=own_name)]
        gone = [_taken_from(file, keys, force=all_) for file in files]
    return [title for title in gone if title is not None]


def _taken_from(file: StateFile, keys: LabKeys | None, *, force: bool) -> str | None:
    state = file.read()
    if state is None or (keys is not None and keys.device != state.device):
        return None
    if is_in_use_elsewhere(state) and not force:
        raise in_use(state)
    _clear(file, state)
    return state.title


def plan(given: str | LabKeys) -> Testbed:
    """The testbed that the lab would have here; brings nothing up and needs no root.

    Raises:
        InputError: there is no device of that name, or it has no filters, or does not
            understand its behaviour.
    """
    keys = lab_keys(given)
    device = find(keys)
    if keys.behaviour is not None:
        device.check_behaviour(keys.behaviour)
    return testbed_of(device, planned_cpus(keys.own_name), keys)


def planned_cpus(own_name: str | None = None) -> CpuPlan:
    """Those that a lab of that name would have now."""
    return presence.plan(StateFile(name=own_name))


def dut_alive(name: str) -> bool:
    """Whether the lab ``name`` is whole, as it was made; needs no root."""
    keys = LabKeys(name=name)
    state = StateFile(name=keys.own_name).read()
    return state is not None and state.device == keys.device and is_whole(state)


def _bring_up(
    file: StateFile, device: LabDevice, keys: LabKeys, share: bool, *, keep: bool
) -> LabState:
    """Makes the lab; call with the lock held.

    The maker owns the lab until it is ready, also one that is to be kept: if it dies
    half-way, the next one sees remains and not a lab.
    """
    share = share or busy.choice() == "share"
    _sweep()
    _make_room(file, device)
    cpus = presence.shared() if share else presence.choose(file)
    device.check_programs(cpus)
    check_limit(file, device.tracking)
    state = LabState(
        device=device.name,
        name=file.name,
        since=datetime.now(UTC),
        owner=this_process(),
        namespaces=(device.tester, *device.namespaces),
        links=topology.links(device),
        settings=machine.settings_to_raise(
            machine.NEIGHBOUR_LIMITS, machine.NEIGHBOURS
        ),
        shares_cpus=share,
        dut_cpu=cpus.dut,
        testbed_keys=testbed_of(device, cpus, keys).model_dump(mode="json"),
    )
    file.write(state)
    try:
        with terminate_as_interrupt(), postponed_signals(_INTERRUPTED):
            state = _build(file, device, cpus, state)
        if keys.behaviour is not None:
            device.tell(file.dut_directory, keys.behaviour)
        if keep:
            state = replace(state, owner=None)
            file.write(state)
    except BaseException:
        _clear(file, file.read() or state)
        raise
    return state


def _build(
    file: StateFile, device: LabDevice, cpus: CpuPlan, state: LabState
) -> LabState:
    """Makes what ``state`` announces; returns it with all that was added meanwhile."""

    def update(**fields: Any) -> None:  # noqa: ANN401 - as they are
        nonlocal state
        state = replace(state, **fields)
        file.write(state)

    def record(process: Process) -> None:
        update(processes=(*state.processes, process))

    file.make_dut_directory()
    machine.change_settings(state.settings)
    changes = device.changes(cpus)
    update(settings=(*state.settings, *changes.settings), priorities=changes.priorities)
    machine.apply_changes(changes)
    device.check_changes(changes)
    topology.build(device, cpus)
    if cpus.receive is not None and device.wired:
        moved = device_cpu.move_receiving(device, cpus.receive)
        update(receive_cpu=cpus.receive if moved else None)
    device.start(cpus, Programs(cpus.dut, file.dut_directory, record))
    return state


def _sweep() -> None:
    """Removes the labs of processes that have died: their devices may still work."""
    for file, state in list(present()):
        if state.owner is not None and not is_running(state.owner):
            _clear(file, state)


def _make_room(file: StateFile, device: LabDevice) -> None:
    before = file.read()
    if before is not None:
        if is_usable(before) or is_in_use_elsewhere(before):
            raise in_use(before)
        _clear(file, before)
    taken = netns.leftovers((device.tester, *device.namespaces))
    if taken:
        raise SetupError(
            f"network namespace {' and '.join(taken)} exists, not made by dutperf",
            "the lab needs these names; if nothing uses them: "
            + "; ".join(f"ip netns del {name}" for name in taken),
        )


def _clear(file: StateFile, state: LabState) -> None:
    with postponed_signals():
        state = hand_over(state, others(file))
        for process in state.processes:
            processes.end(process)
        netns.clear(state.namespaces)
        machine.restore_settings(state.settings)
        machine.restore_priorities(state.priorities)
        file.remove()


def _clear_if_owned(file: StateFile) -> None:
    state = file.read()
    if state is not None and state.owner == this_process():
        _clear(file, state)


def _as_it_is(state: LabState) -> Testbed:
    """The testbed of a lab that is up, with its device as it is now."""
    now = {"description": ", ".join(device_of(state).present(state))}
    return state.testbed.model_copy(update=now)
