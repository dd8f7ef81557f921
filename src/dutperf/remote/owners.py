"""Which worker measures at which testbed: its owner, or that of an equal one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dutperf.config import PlannedTestbed, Testbed
from dutperf.errors import DutperfError, InputError
from dutperf.remote.messages import Claim
from dutperf.results.environment import differences, listed

_ITS_OWN = {
    "name",
    "description",
    "equal_to",
    "namespace",
    "main_core",
    "hugepages",
    "memory_mb",
    "hooks",
    "device",
    "snmp",
    "cores",
    "left",
    "right",
}
"""Keys that may differ between equal testbeds; of the sides the devices of ports."""


@dataclass(frozen=True)
class Owner:
    """A worker: its claim, or why it cannot be used; ``ahead_s``: of its clock."""

    address: str
    claim: Claim | None
    ahead_s: float = 0.0
    trouble: str = ""

    @property
    def shown(self) -> str:
        """For messages."""
        return f"{self.claim.host} ({self.address})" if self.claim else self.address


@dataclass(frozen=True)
class Place:
    """A testbed of a worker; ``stands_in``: it is not the one that was asked for."""

    owner: Owner
    testbed: str
    stands_in: bool = False


def place_for(planned: PlannedTestbed, owners: Iterable[Owner]) -> Place | None:
    """Where to measure at ``planned``, now; None: nobody there can.

    Raises:
        InputError: two workers own it; or its owner has another testbed of that name,
            or another dutperf, or no root; or what is said to be equal is not.
    """
    owners = list(owners)
    found = [
        Place(owner, name)
        for owner in owners
        if owner.claim
        for name in owner.claim.names
        if _is_of(planned, name, owner)
    ]
    if len(found) > 1:
        who = " and ".join(place.owner.shown for place in found)
        raise InputError(
            f"testbed {planned.name} is owned by two workers: {who}",
            "a testbed has one owner: end one of them, or rename its testbed",
        )
    if found:
        _check(planned, found[0])
        return found[0]
    for owner in owners:
        for testbed in owner.claim.testbeds if owner.claim else ():
            if testbed.equal_to == planned.name and planned.lab is None:
                place = Place(owner, testbed.name, stands_in=True)
                _check_equal(planned.testbed, testbed, owner)
                _check_root(place)
                return place
    return None


def nobody_owns(planned: PlannedTestbed, owners: Sequence[Owner]) -> InputError:
    """Why no worker measures at ``planned``, and which ones there are."""
    for owner in owners:
        if owner.trouble:
            message, _, hint = owner.trouble.partition("\n")
            return InputError(f"{planned.name}: {message}", hint)
    names = sorted({name for o in owners if o.claim for name in o.claim.names})
    known = f"those there own {', '.join(names)}" if names else "there is none"
    return InputError(
        f"no worker owns testbed {planned.name}: {known}",
        "on its host: dutperf worker ADDRESS --testbed FILE (of a lab: --lab NAME)",
    )


def _is_of(planned: PlannedTestbed, name: str, owner: Owner) -> bool:
    """Whether ``name`` is the testbed, or the one whose active cores it chooses."""
    if name == planned.name:
        return True
    assert owner.claim  # noqa: S101 - see place_for
    if planned.lab:
        return name in owner.claim.labs and planned.lab.name == name
    return any(
        _with_cores(testbed, planned) == planned.testbed
        for testbed in owner.claim.testbeds
        if testbed.name == name and planned.name.startswith(f"{name}-")
    )


def _with_cores(testbed: Testbed, planned: PlannedTestbed) -> Testbed | None:
    number = planned.name.removeprefix(f"{testbed.name}-").removesuffix("cores")
    if not number.isdecimal():
        return None
    try:
        return PlannedTestbed(testbed=testbed).with_cores(int(number)).testbed
    except DutperfError:
        return None


def _check(planned: PlannedTestbed, place: Place) -> None:
    claim = place.owner.claim
    assert claim  # noqa: S101 - see place_for
    for testbed in claim.testbeds if planned.lab is None else ():
        if testbed.name == planned.name:
            changes = differences(
                testbed.model_dump(mode="json"), planned.testbed.model_dump(mode="json")
            )
            if changes:
                raise InputError(
                    f"testbed {planned.name} of the worker on {place.owner.shown} is "
                    f"not that of the campaign:\n{listed(changes, 5)}",
                    "give both the same file",
                )
    _check_root(place)


def _check_root(place: Place) -> None:
    claim = place.owner.claim
    if claim and not claim.is_root and not claim.is_simulated:
        raise InputError(
            f"the worker on {place.owner.shown} is not root, so it cannot measure at "
            f"{place.testbed}",
            "start it with sudo",
        )


def _check_equal(asked: Testbed, other: Testbed, owner: Owner) -> None:
    """All that decides what is sent, and what a result may be, is the same."""
    changes = differences(_deciding(other), _deciding(asked))
    if changes:
        raise InputError(
            f"testbed {other.name} on {owner.shown} says equal_to: {asked.name}, but "
            f"is not:\n{listed(changes, 5)}",
            "equal testbeds have equal addresses, kinds of ports and numbers of cores; "
            "correct it, or take equal_to out",
        )


def _deciding(testbed: Testbed) -> dict[str, object]:
    deciding = testbed.model_dump(mode="json", exclude=_ITS_OWN)
    deciding["number of cores"] = len(testbed.cores)
    for name, side in testbed.sides.items():
        deciding[name] = {
            "vlan": [tag.model_dump(mode="json") for tag in side.vlan],
            "mpls": [label.model_dump(mode="json") for label in side.mpls],
            "ports": [
                each.model_dump(mode="json", include={"ipv4", "ipv6"})
                | {"kind": type(each.port).__name__, "mtu": each.port.mtu}
                for each in side.ports
            ],
        }
    return deciding
