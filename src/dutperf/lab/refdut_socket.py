"""The known-answer device's control socket: tell it what to do, ask what it did.

The device (``dutperf-refdut``, see docs/known-answer.md) does to test frames exactly
what its behaviour says and gives account of it, trial by trial. Tests compare a
measurement with the account: they must agree to the frame.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from dutperf.config.encapsulation import BindingFile
from dutperf.errors import InputError, SetupError
from dutperf.lab.asking import ask
from dutperf.plain_files import read_plain
from dutperf.protocol.base import DirectionName

# How many frames wait in the known-answer device before it drops one: as it was told.
#
# Its port bridges thousands. A service with a short queue drops long before that, so a
# moment without its CPU costs frames that the port alone would have kept.


def note_queue(control: Path, behaviour: Mapping[str, Any]) -> None:
    """Keeps the shortest queue of ``behaviour`` beside the device's ``control`` socket.

    Args:
        control: where the device listens that does so now.
        behaviour: one that the device took.

    Raises:
        SetupError: there is no room for it, or the device's directory has gone.
    """
    shortest = min(_queues(behaviour), default=None)
    kept = _kept_in(control)
    written = kept.with_suffix(".new")
    try:
        written.write_text("" if shortest is None else str(shortest), "ascii")
        written.replace(kept)
    except OSError as error:
        raise SetupError(
            f"cannot keep what the device was told in {kept}: {error.strerror}",
            "make the lab anew: dutperf lab down; dutperf lab up known-answer",
        ) from error


def queue_told(control: Path) -> int | None:
    """The shortest queue of the device that listens there; None: its port's alone."""
    try:
        return int(_kept_in(control).read_text("ascii"))
    except (OSError, ValueError):
        return None


def _kept_in(control: Path) -> Path:
    return control.with_name("own-queue")


def _queues(behaviour: Mapping[str, Any]) -> Iterator[int]:
    """One that withholds drops nothing: what comes stays in the port."""
    for direction in ("forward", "reverse"):
        service = behaviour.get(direction, {}).get("service")
        if service and not service.get("withhold"):
            yield service["queue_frames"]


Behaviour = Mapping[str, Any]
"""What the device is told (docs/known-answer.md); it checks that itself."""
Cause = Literal[
    "rule",
    "queue",
    "routing",
    "nat",
    "too_big",
    "incomplete",
    "no_buffer",
    "refused",
]
Damage = Literal[
    "payload", "checksum", "truncation", "checksum_zero", "length", "number"
]


def control_socket(directory: Path) -> Path:
    """Where the device listens that has its files in ``directory``."""
    return directory / "control"


class _Stored(BaseModel):
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)


class Durations(_Stored):
    """A histogram of nanoseconds: lowest, highest and count of each bucket."""

    count: int
    min: int | None
    max: int | None
    sum: int
    buckets: tuple[tuple[int, int, int], ...]


class WitnessedTimes(_Stored):
    """How long frames were in the device, by CLOCK_MONOTONIC_RAW: exact sums."""

    frames: int
    sum_ns: int
    least_ns: int
    most_ns: int


class PlainReadings(_Stored):
    """Frames that the device also read byte by byte, one in 64, without shared code.

    Attributes:
        wrong_sums: whose checksums did not hold.
        other_tags: in which another number or stream stood than the shared code read.
    """

    read: int
    unreadable: int
    wrong_sums: int
    other_tags: int


class PieceAccount(_Stored):
    """Of the frames that left in pieces.

    Attributes:
        frames: with all their pieces; they are among those that left.
        left: pieces, of copies and of incomplete frames too.
        dropped: pieces that were to be lost.
    """

    frames: int = 0
    left: int = 0
    dropped: int = 0


class ClassAccount(_Stored):
    """One direction's foreground or background frames; originals, if not copies.

    Attributes:
        left: the corrupted ones included, the incomplete ones not.
        dropped_too_big: longer than the MTU of the link that they leave by, and not to
            be fragmented.
        incomplete: a piece of them was to be lost; the others left.
        displaced: left behind as many later frames as they were told to.
        displaced_less: behind fewer: too few came in time, or some of these were lost,
            delayed or displaced themselves.
        out_of_order: intact ones that left behind one of their stream with a higher
            number, whatever the reason.
        failed_no_buffer: lost for want of buffers; nobody told the device to.
        failed_refused: the port did not take them.
        residence_ns: of each frame, from arrival to departure.
        witnessed: the same by another clock.
    """

    seen: int
    left: int
    copies_left: int
    dropped_by_rule: int
    dropped_by_queue: int
    dropped_by_routing: int
    dropped_by_nat: int
    dropped_too_big: int = 0
    incomplete: int = 0
    delayed: int
    displaced: int
    displaced_less: int
    out_of_order: int
    corrupted_left: dict[Damage, int]
    corrupted_copies_left: dict[Damage, int]
    pieces: PieceAccount = PieceAccount()
    failed_no_buffer: int
    failed_refused: int
    residence_ns: Durations
    witnessed: WitnessedTimes

    @property
    def failures(self) -> int:
        """Frames for which the device did something that it was not told to."""
        return self.failed_no_buffer + self.failed_refused


class RuleAccount(_Stored):
    """How many frames a rule was asked about, and how many it chose."""

    reached: int
    chosen: int


class QueueAccount(_Stored):
    """How many frames a receive queue served, and for how many it had no room."""

    served: int
    dropped: int


class DeviceLossRun(_Stored):
    """Frames ``first`` to ``first + count - 1`` of a stream, lost in a row."""

    stream: int
    cause: Cause
    first: int
    count: int
    from_ns: int
    to_ns: int


class DirectionAccount(_Stored):
    """What happened to one direction's frames.

    Attributes:
        own_error_ns: how much later than told each frame left.
        poll_gap_ns: for each frame, how long before its arrival the device had last
            looked: it may have waited at the port for so long.
        queues: of a service with several; empty where there is one.
    """

    foreground: ClassAccount
    background: ClassAccount
    readings: PlainReadings
    own_error_ns: Durations
    poll_gap_ns: Durations
    rules: tuple[RuleAccount, ...]
    queues: tuple[QueueAccount, ...] = ()
    losses: tuple[DeviceLossRun, ...]
    loss_runs_left_out: int

    @property
    def classes(self) -> tuple[ClassAccount, ClassAccount]:
        """Foreground and background."""
        return self.foreground, self.background


class TrialAccount(_Stored):
    """What the device did in one trial; ``run`` counts the trials it has seen."""

    run: int
    trial_id: int
    lasted_ns: int
    forward: DirectionAccount
    reverse: DirectionAccount

    @property
    def directions(self) -> dict[DirectionName, DirectionAccount]:
        """Both directions by name."""
        return {"forward": self.forward, "reverse": self.reverse}


class OtherFrames(_Stored):
    """A direction's frames beside those of trials, since the device was started.

    Attributes:
        other_frames: that the device decided to forward.
        other_dropped: by routing or gateway, or for its VLAN tags; counted nowhere
            else.
        other_dropped_of_nobody: of ``other_dropped``, by a border relay: no customer
            edge has their address and port.
        other_dropped_of_another: likewise, an edge has them that did not send them.
        other_dropped_by_rule: of ``other_frames``.
        other_dropped_by_queue: of ``other_frames``, where these take service.
        other_dropped_too_big: of ``other_frames`` and copies.
        other_incomplete: of ``other_frames``; a piece of them was to be lost.
        other_copies: that rules added.
        other_left: copies included.
        other_failed: for want of buffers, or refused by the port.
        other_pieces: of ``other_left`` and ``other_incomplete``.
        other_rules: whom the rules met since they were given; rules for test frames
            meet none of these.
        other_failures: ``other_failed``, and test frames of trials that are forgotten.
        held: frames of all kinds that wait.
    """

    other_frames: int
    other_dropped: int
    other_dropped_of_nobody: int = 0
    other_dropped_of_another: int = 0
    other_dropped_by_rule: int = 0
    other_dropped_by_queue: int = 0
    other_dropped_too_big: int = 0
    other_incomplete: int = 0
    other_copies: int = 0
    other_left: int = 0
    other_failed: int = 0
    other_pieces: PieceAccount = PieceAccount()
    other_rules: tuple[RuleAccount, ...] = ()
    other_failures: int
    held: int


class NatAccount(_Stored):
    """What the device did as a gateway, since it became that one.

    Attributes:
        connections: in the table now.
        refused: not made, because the table was full.
        evicted: removed to make room for others.
        removed: by a clear or delete.
        unknown: frames from outside that belonged to no connection.
        too_fast: frames dropped because connections were asked for too fast.
        forgotten: the same, but forwarded.
        no_public_endpoint: frames dropped for want of a public address and port.
        endpoints_grown: how often it made room for more than four million endpoints;
            its ring may have overflowed meanwhile.
    """

    connections: int
    created: int
    refused: int
    evicted: int
    expired: int
    removed: int
    unknown: int
    too_fast: int
    forgotten: int
    no_public_endpoint: int
    endpoints_grown: int
    public_endpoints_in_use: int


class AgentAccount(_Stored):
    """Queries to the device's SNMP agent, since it was told its addresses."""

    answered: int
    unanswered: int


class Report(_Stored):
    """The device's account of the last trials, the oldest first.

    Attributes:
        agent: None: the device is a wire, which has none.
    """

    schema_version: Literal[1]
    trials: tuple[TrialAccount, ...]
    device: dict[DirectionName, OtherFrames]
    agent: AgentAccount | None = None
    nat: NatAccount | None = None

    def trial(self, trial_id: int) -> TrialAccount:
        """The last trial with that id.

        Raises:
            InputError: the device has not seen it, or has forgotten it.
        """
        for trial in reversed(self.trials):
            if trial.trial_id == trial_id:
                return trial
        kept = ", ".join(str(t.trial_id) for t in self.trials) or "none"
        raise InputError(
            f"the known-answer device has no account of trial {trial_id}",
            f"it keeps those of the last trials: {kept}",
        )


class KnownAnswer:
    """A client of the device that listens on ``path``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def configure(self, behaviour: Behaviour) -> None:
        """Makes the device do as ``behaviour`` says from the next frame on.

        Raises:
            InputError: the behaviour is not one; the device goes on as before.
            SetupError: the device does not answer.
        """
        self._ask({"do": "configure", "behaviour": with_tables(behaviour)})
        note_queue(self.path, behaviour)

    def report(self, trial_id: int | None = None) -> Report:
        """What it did: in the last trials, or in those with ``trial_id`` only.

        Raises:
            SetupError: the device does not answer.
        """
        only = {} if trial_id is None else {"trial": trial_id}
        return self._report({"do": "report", **only})

    def stop(self) -> Report:
        """Ends the device; its last report.

        Raises:
            SetupError: the device does not answer.
        """
        return self._report({"do": "stop"})

    def _report(self, message: Mapping[str, Any]) -> Report:
        answer = self._ask(message)
        try:
            return Report.model_validate(answer)
        except ValidationError as error:
            raise SetupError(
                f"the device at {self.path} gives no account that this version knows",
                "build dutperf-refdut and install dutperf from the same source",
            ) from error

    def _ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        try:
            content = ask(str(self.path), message)
        except OSError as error:
            raise self._silent(str(error)) from error
        if "error" in content:
            raise InputError(content["error"]["message"], content["error"]["hint"])
        return content

    def _silent(self, reason: str) -> SetupError:
        return SetupError(
            f"the known-answer device at {self.path} does not answer: {reason}",
            "is it up? dutperf lab up known-answer",
        )


def with_tables(behaviour: Behaviour) -> dict[str, Any]:
    """As the program takes it: with the rows of binding tables that are files.

    Raises:
        InputError: a table cannot be read; names file and line.
    """
    told = dict(behaviour)
    tables = told.get("binding_table")
    if isinstance(tables, dict):
        told["binding_table"] = {
            side: {"bindings": BindingFile(**table).table().encoded}
            if isinstance(table, dict) and set(table) == {"file"}
            else table
            for side, table in tables.items()
        }
    return told


def read_behaviour(path: Path) -> dict[str, Any]:
    """The behaviour in a JSON file; the device checks what it says.

    Raises:
        InputError: no such file, or it is no JSON object.
    """
    try:
        content = json.loads(read_plain(path))
    except OSError as error:
        raise InputError(
            f"cannot read {path}: {error.strerror}",
            "examples/known-answer has some to start from",
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not JSON: {error}", "correct the file") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} must hold a JSON object", "see docs/known-answer.md")
    return content
