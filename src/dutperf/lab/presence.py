"""Which labs there are, whether they are whole, and whose they are."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from dutperf import busy
from dutperf.busy import WAITING, owned_cpus, owners_of_cpus
from dutperf.errors import BusyError, SetupError
from dutperf.lab import netns
from dutperf.lab.processes import CpuPlan, is_running, plan_cpus, this_process
from dutperf.lab.state import LabState, StateFile

if TYPE_CHECKING:
    from dutperf.config.testbed import Testbed


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
        own_name: of the lab, of several at once; None: the nameless one.
        cpus: its CPUs: ``device``, ``receive``, ``tester``, where it has them.
        shares_cpus: it was brought up though others had them.
    """

    name: str
    since: datetime
    owner: int | None
    alive: bool
    namespaces: tuple[str, ...]
    links: tuple[str, ...]
    own_name: str | None = None
    cpus: Mapping[str, Sequence[int]] = field(default_factory=dict)
    shares_cpus: bool = False


def running() -> list[LabStatus]:
    """All labs that are up or left behind; needs no root.

    Raises:
        SetupError: one is of another version.
    """
    return [_status(state) for _, state in present(all_=True)]


def _status(state: LabState) -> LabStatus:
    namespaces = tuple(netns.existing(state.namespaces))
    return LabStatus(
        name=state.device,
        since=state.since,
        owner=state.owner.pid if state.owner else None,
        alive=is_usable(state),
        namespaces=namespaces,
        links=tuple(n for n in state.links if n.partition("/")[0] in namespaces),
        own_name=state.name,
        cpus={
            "device": []
            if state.dut_cpu is None
            else [state.dut_cpu, *state.more_dut_cpus],
            "receive": [] if state.receive_cpu is None else [state.receive_cpu],
            "tester": state.tester_cores,
        },
        shares_cpus=state.shares_cpus,
    )


def present(*, all_: bool = False) -> Iterator[tuple[StateFile, LabState]]:
    """The labs that there are, up or left behind; the nameless one first.

    Those that another version of dutperf made are left out, unless all are asked for.

    Raises:
        SetupError: one cannot be read, and all are asked for.
    """
    for file in StateFile().all():
        try:
            state = file.read()
        except SetupError:
            if all_:
                raise
            continue
        if state is not None:
            yield file, state


def others(than: StateFile, *, all_: bool = False) -> list[tuple[StateFile, LabState]]:
    """The other labs of which something is there; see ``present``."""
    return [
        (file, state)
        for file, state in present(all_=all_)
        if file.name != than.name and is_there(state)
    ]


def is_whole(state: LabState) -> bool:
    """Whether all of it is there, as it was made."""
    namespaces = netns.existing(state.namespaces)
    return len(namespaces) == len(state.namespaces) and all(
        map(is_running, state.processes)
    )


def is_usable(state: LabState) -> bool:
    """Whether it is whole, and its owner lives, if it has one."""
    return is_whole(state) and (state.owner is None or is_running(state.owner))


def is_there(state: LabState) -> bool:
    """Whether any of it is there, and may work: a broken lab's device may spin."""
    return bool(netns.existing(state.namespaces)) or any(
        map(is_running, state.processes)
    )


def is_in_use_elsewhere(state: LabState) -> bool:
    """Whether it belongs to another process, which runs."""
    return (
        state.owner is not None
        and is_running(state.owner)
        and state.owner != this_process()
    )


def in_use(state: LabState) -> SetupError:
    """What is said to whoever wants another lab in its place."""
    owner = state.owner
    if owner is None:
        named = f" --name {state.name}" if state.name else ""
        return SetupError(
            f"lab {state.title} is up and kept, since {state.since:%F %T} UTC",
            f"take it down first: dutperf lab down{named}; or have another one beside "
            "it: dutperf lab up DEVICE --name NAME, and use DEVICE@NAME",
        )
    return BusyError(
        f"lab {state.title} is in use by process {owner.pid}, "
        f"since {state.since:%F %T} UTC",
        f"wait for it, or stop it (kill {owner.pid}); it takes its lab down itself; "
        f"{WAITING}",
    )


# Which CPUs a lab gets, and who has the others.
#
# a run          holds locks: its engine's CPUs, and those of its lab's device
# a lab in use   is its owner's with all of its CPUs
# a lab kept     has its device's CPUs; its tester's are anybody's while it is idle


_LEAST = 2
"""One for the tester, one for its device; a machine that has but one shares it."""


@dataclass(frozen=True)
class Holder:
    """Who has a CPU; ``ends``: a process, which gives it back when it ends."""

    who: str
    ends: bool


def holders(file: StateFile, *, all_: bool = False) -> dict[int, Holder]:
    """The CPUs that others have than the lab of ``file``; ``all_``: see ``present``."""
    found: dict[int, Holder] = {}
    for _, state in others(file, all_=all_):
        whose = f"process {state.owner.pid}" if state.owner else "kept"
        holder = Holder(f"lab {state.title} ({whose})", state.owner is not None)
        found |= dict.fromkeys(state.device_cpus | state.tester_cpus, holder)
    runs = owners_of_cpus().items()
    return found | {cpu: Holder(owner, ends=True) for cpu, owner in runs}


def runs() -> dict[str, list[int]]:
    """The processes that measure now, and their CPUs."""
    return _by_owner(owners_of_cpus())


def _by_owner(owners: Mapping[int, str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for cpu in sorted(owners):
        found.setdefault(owners[cpu], []).append(cpu)
    return found


def choose(file: StateFile) -> CpuPlan:
    """The CPUs of a lab that is to be made.

    Raises:
        BusyError: others have too many, until they end.
        SetupError: others have too many, or there is a lab of another version.
    """
    usable = os.sched_getaffinity(0)
    had = holders(file, all_=True)
    free = usable - had.keys()
    least = min(_LEAST, len(usable))
    if len(free) < least:
        raise _too_few(file, free, {c: had[c] for c in sorted(usable & had.keys())})
    return plan_cpus(free)


def plan(file: StateFile) -> CpuPlan:
    """As ``choose``; where others have too many, as if there were no others."""
    usable = os.sched_getaffinity(0)
    least = min(_LEAST, len(usable))
    if busy.choice() == "share":
        return shared()
    free = usable - holders(file).keys()
    return plan_cpus(free if len(free) >= least else usable)


def shared() -> CpuPlan:
    """As if there were no others."""
    return plan_cpus(os.sched_getaffinity(0))


def check_cpus(testbed: Testbed) -> None:
    """Of a testbed that is no lab: no lab's device works where it sends and receives.

    One that a process uses has locks on these CPUs, too, which the engine meets.

    Raises:
        SetupError: one does.
    """
    if busy.choice() == "share":
        return
    for _, state in present():
        taken = set(testbed.cores) & state.device_cpus
        if taken and is_there(state) and state.namespaces[0] != testbed.namespace:
            named = f" --name {state.name}" if state.name else ""
            raise SetupError(
                f"testbed {testbed.name} sends on CPU {min(taken)}, where the device "
                f"of lab {state.title} works",
                f"take the lab down: dutperf lab down{named}; or give other cores",
            )


def owned(file: StateFile) -> AbstractContextManager[None]:
    """The CPUs of the lab's device are nobody else's in the context.

    Those that are the tester's, too, the engine takes when it starts.

    Raises:
        BusyError: another process has one.
    """
    state = file.read()
    return owned_cpus(state.device_cpus - state.tester_cpus if state else ())


def _too_few(
    file: StateFile, free: Collection[int], had: Mapping[int, Holder]
) -> SetupError:
    named = "the lab" if file.name is None else f"lab {file.name}"
    whose = _by_owner({cpu: holder.who for cpu, holder in had.items()})
    told = "; ".join(
        f"CPU {', '.join(map(str, cpus))}: {who}" for who, cpus in whose.items()
    )
    message = (
        f"{named} needs {_LEAST} CPUs that nobody else has, one for the tester and one "
        f"for its device; free: {', '.join(map(str, sorted(free))) or 'none'}; {told}"
    )
    sharing = "share them, and results say so: dutperf lab up NAME --share-cpus"
    if any(holder.ends for holder in had.values()):
        return BusyError(message, f"{busy.WAITING}; or {sharing}")
    return SetupError(message, f"take another lab down, see 'lab status'; or {sharing}")
