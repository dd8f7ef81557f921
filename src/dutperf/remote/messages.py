"""What a run and the workers tell each other, as JSON.

The run gives a worker a ``Ticket``: the jobs of one testbed. The worker tells what
happens, one message after the other; ``Begun`` and ``Finished`` wait for an answer,
without which nothing more is sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from dutperf import __version__
from dutperf.config import PlannedTestbed, Testbed
from dutperf.errors import DutperfError, InputError
from dutperf.protocol.trial_messages import TrialProgress
from dutperf.results import CellResult, Environment, TrialRecord
from dutperf.results.environment import differences, listed
from dutperf.results.storage import parse_object
from dutperf.results.units import Stored
from dutperf.run import Job

TICKET_VERSION = 1
"""Rises with whatever an older worker would measure wrongly, or not at all."""
GONE = "gone"
"""What a worker answers to a ticket whose end it could not tell."""


class Ticket(Stored):
    """The jobs of one testbed, for the worker that owns it.

    ``before``: how many jobs of other testbeds come before them, ``count`` in all.
    """

    version: int = TICKET_VERSION
    dutperf_version: str = __version__
    run: str
    key: str = Field(description="of this attempt; another one has another")
    testbed: str = Field(description="name of the testbed that is used")
    stands_in: str | None = Field(
        default=None, description="it is not that of the jobs"
    )
    before: int
    count: int
    jobs: list[Job]


class Claim(Stored):
    """What a worker says of itself."""

    version: int = TICKET_VERSION
    dutperf_version: str = __version__
    host: str
    is_root: bool
    is_simulated: bool
    time_s: float = Field(description="since 1970, by the clock of its host")
    testbeds: list[Testbed]
    labs: list[str]

    @property
    def names(self) -> list[str]:
        """Of all that it owns."""
        return [*(testbed.name for testbed in self.testbeds), *self.labs]


class WorkerFailure(Stored):
    """An error, as it would be shown."""

    message: str
    hint: str = ""
    exit_code: int = 3
    left: bool = Field(
        default=False, description="the worker stops; another one may go on"
    )


class Begun(Stored):
    """The worker has taken the ticket, and asks for what is stored."""

    kind: Literal["begun"] = "begun"


class Finished(Stored):
    """A trial, to be stored."""

    kind: Literal["finished"] = "finished"
    record: TrialRecord


class TestbedOpened(Stored):
    """Where it takes place, to be stored."""

    kind: Literal["opened"] = "opened"
    environment: Environment


class Told(Stored):
    """A notice."""

    kind: Literal["told"] = "told"
    text: str


class OnCell(Stored):
    """A cell begins."""

    kind: Literal["cell"] = "cell"
    cell: str
    index: int
    safe_fps: int | None


class OnTrial(Stored):
    """A trial begins."""

    kind: Literal["trial"] = "trial"
    cell: str
    repeat: int
    attempt: int
    rate_fps: int
    planned_s: float


class Moved(Stored):
    """A trial is so far."""

    kind: Literal["moved"] = "moved"
    progress: TrialProgress


class Narrowed(Stored):
    """A search has come closer."""

    kind: Literal["narrowed"] = "narrowed"
    lower_fps: float
    upper_fps: float


class OnResult(Stored):
    """The result of a cell."""

    kind: Literal["measured"] = "measured"
    result: CellResult


class Ended(Stored):
    """Nothing more comes under this ticket."""

    kind: Literal["ended"] = "ended"
    failure: WorkerFailure | None = None
    log: str = Field(default="", description="the end of what the engine printed")


Message = (
    Begun
    | Finished
    | TestbedOpened
    | Told
    | OnCell
    | OnTrial
    | Moved
    | Narrowed
    | OnResult
    | Ended
)


class Envelope(Stored):
    """A message; ``number`` is what its answer is told by."""

    key: str
    number: int
    message: Annotated[Message, Field(discriminator="kind")]


class Known(Stored):
    """Answer to ``Begun``: what is stored of the testbed; ``stop``: it is unwanted."""

    stop: bool = False
    records: list[TrialRecord] = Field(default=[])
    environment: Environment | None = None
    trials: int = Field(default=0, description="of the whole run")


class Numbered(Stored):
    """Answer to ``Finished``: the trial as it was stored; ``stop``: it was not."""

    stop: bool = False
    number: int = 0
    stored_at: str = ""


class Mail(NamedTuple):
    """What came from one worker; each answer goes by its envelope's number."""

    worker: str
    envelopes: list[Envelope]


_ENVELOPES: TypeAdapter[list[Envelope]] = TypeAdapter(list[Envelope])


def envelopes_of(text: str, who: str) -> list[Envelope]:
    """What ``who`` sent.

    Raises:
        InputError: this dutperf does not understand it.
    """
    found: list[Envelope] = _understood(_ENVELOPES, text, who)
    return found


def text_of(envelopes: list[Envelope]) -> str:
    """As it is sent."""
    return _ENVELOPES.dump_json(envelopes).decode()


def claim_of(text: str, who: str) -> Claim:
    """What the worker ``who`` says of itself.

    Raises:
        InputError: its dutperf is another one, with other keys.
    """
    data = parse_object(text, who)
    check_same_version(data.get("dutperf_version"), who)
    claim: Claim = _understood(TypeAdapter(Claim), text, who)
    return claim


def ticket_of(text: str, who: str) -> Ticket:
    """Jobs that came from the run ``who``.

    Raises:
        InputError: they are of a newer version, or this dutperf cannot read them.
    """
    data = parse_object(text, who)
    version = data.get("version")
    if not isinstance(version, int) or version > TICKET_VERSION:
        raise InputError(
            f"{who} sent jobs of version {version} (dutperf "
            f"{data.get('dutperf_version')}); this worker's dutperf {__version__} "
            f"knows jobs up to version {TICKET_VERSION}",
            "install the same dutperf on all hosts, and start the worker again",
        )
    check_same_version(data.get("dutperf_version"), who)
    ticket: Ticket = _understood(TypeAdapter(Ticket), text, who)
    return ticket


def check_same_version(version: object, who: str) -> None:
    """Results of a run are made by one dutperf.

    Raises:
        InputError: ``who`` has another one.
    """
    if version != __version__:
        raise InputError(
            f"versions differ: {who} has dutperf {version}, this is {__version__}",
            "install the same dutperf on all hosts, and start its worker again",
        )


def _understood(adapter: TypeAdapter[Any], text: str, who: str) -> Any:  # noqa: ANN401
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise InputError(
            f"{who} sent what this dutperf does not understand: {key}: {first['msg']}",
            "install the same dutperf on all hosts",
        ) from error


# Which worker measures at which testbed: its owner, or that of an equal one.


_ITS_OWN = {
    "name",
    "description",
    "equal_to",
    "namespace",
    "main_core",
    "hugepages",
    "memory_mb",
    "hooks",
    "nat_log",
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
