"""What a run and the workers tell each other, as JSON.

The run gives a worker a ``Ticket``: the jobs of one testbed. The worker tells what
happens, one message after the other; ``Begun`` and ``Finished`` wait for an answer,
without which nothing more is sent.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, TypeAdapter, ValidationError

from dutperf import __version__
from dutperf.config import Testbed
from dutperf.errors import InputError
from dutperf.protocol.trial_messages import TrialProgress
from dutperf.results import CellResult, Environment, TrialRecord
from dutperf.results.storage import parse_object
from dutperf.results.stored import Stored
from dutperf.run.jobs import Job

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


class Failure(Stored):
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


class Opened(Stored):
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


class Measured(Stored):
    """The result of a cell."""

    kind: Literal["measured"] = "measured"
    result: CellResult


class Ended(Stored):
    """Nothing more comes under this ticket."""

    kind: Literal["ended"] = "ended"
    failure: Failure | None = None
    log: str = Field(default="", description="the end of what the engine printed")


Message = (
    Begun
    | Finished
    | Opened
    | Told
    | OnCell
    | OnTrial
    | Moved
    | Narrowed
    | Measured
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
