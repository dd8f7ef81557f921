"""Which labs there are, whether they are whole, and whose they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from dutperf.busy import WAITING
from dutperf.errors import BusyError, SetupError
from dutperf.lab import topology, tracking
from dutperf.lab.devices import LABS
from dutperf.lab.state import (
    LabState,
    StateFile,
    is_running,
    this_process,
)


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
    namespaces = tuple(topology.existing(state.namespaces))
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
            "tester": state.testbed.cores,
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
    namespaces = topology.existing(state.namespaces)
    return len(namespaces) == len(state.namespaces) and all(
        map(is_running, state.processes)
    )


def is_usable(state: LabState) -> bool:
    """Whether it is whole, and its owner lives, if it has one."""
    return is_whole(state) and (state.owner is None or is_running(state.owner))


def is_there(state: LabState) -> bool:
    """Whether any of it is there, and may work: a broken lab's device may spin."""
    return bool(topology.existing(state.namespaces)) or any(
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


def check_limit(file: StateFile, connections: int) -> None:
    """The machine has one limit of connections, for the gateways of all labs.

    Raises:
        SetupError: another lab's gateway would get this one, too.
    """
    gateways = [s.title for _, s in others(file) if LABS[s.device].tracking]
    if gateways and tracking.limit(connections):
        raise SetupError(
            f"the kernel has one limit of connections for all labs, and lab "
            f"{gateways[0]} would get {connections:,}, too",
            "take that one down first, see 'dutperf lab status'",
        )
