"""What is stored of each trial, in ``journal.jsonl`` and in ``results.json``."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from dutperf.catalogue import ProcedureName
from dutperf.protocol.base import IpVersion, RoutingDaemonProtocol, Side
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results.device_log import DeviceLog
from dutperf.results.power_results import Metered
from dutperf.results.units import Stored

StreamName = Literal["foreground", "background"]

TrialRole = Literal[
    "trial", "first_frames", "probe", "phase1", "validation", "damage", "cache"
]

HookMoment = Literal[
    "before_campaign",
    "bulk_delete",
    "before_trial",
    "during_trial",
    "table_count",
    "teardown",
    "after_trial",
    "is_alive",
    "restart",
    "meter",
]


NOT_KEPT = "bytes more, which are not kept"
"""What a hook's output ends with, if it was longer than is stored."""


class HookRun(Stored):
    """One hook of the testbed: its last attempt."""

    moment: HookMoment
    command: list[str]
    host: str | None = Field(description="over ssh; null: the tester's machine")
    attempts: int = Field(ge=1)
    exit_code: int | None = Field(description="null: it did not end by itself")
    ended: str = Field(description="how, in words")
    output: str = Field(description="what it printed, errors included; the beginning")
    duration_s: float
    after_s: float | None = Field(
        default=None,
        description="when it began; teardown-rate: seconds after the trial's end; "
        "during_trial: after the first frame was due; null: not known",
    )

    @property
    def succeeded(self) -> bool:
        """Whether it did what it should."""
        return self.exit_code == 0


class DeviceCpu(Stored):
    """The CPU time that others took from a lab's device in one trial."""

    taken_ns: int = Field(
        description="how long other processes, or the host of a virtual machine, had "
        "its CPU while it wanted to run"
    )
    queue_frames: int = Field(description="that wait for it without being lost")
    bridged_ns: int = Field(
        description="in which so many arrive, at the trial's rate, all directions"
    )


class DeviceDrops(Stored):
    """What a lab's device dropped in one trial, where its kernel counts it.

    They decide nothing: what was lost is lost wherever it was.
    """

    input_queue: int = Field(description="its CPU's input queue had no room")
    interfaces: dict[str, dict[str, int]] = Field(
        description="its interfaces' counters, those that rose"
    )


class RoutingSession(Stored):
    """The routing daemon beside the tester and the device, after a trial."""

    port: Side
    ip_version: IpVersion = Field(description="of the routes")
    protocol: RoutingDaemonProtocol
    open: bool = Field(description="the device is its neighbour")
    falls: int = Field(ge=0, description="how often the device was none any more")


class Earlier(Stored):
    """What a device may have known when a test began whose table no hook empties."""

    connections: int = Field(description="of earlier tests, not timed out yet")
    waited_s: float = Field(description="until it had forgotten enough of them")


class TrialRecord(Stored):
    """One finished trial; appended to the journal before the next one starts."""

    number: int = Field(ge=1, description="1-based position in the campaign")
    cell: str = Field(description="id of the test case it was run for")
    procedure: ProcedureName | None = Field(default=None, description="the test case's")
    place: str | None = Field(
        default=None,
        description="name of the test case's lab or testbed",
    )
    stands_in: str | None = Field(
        default=None,
        description="name of the equal testbed that it was measured at in place of "
        "the test case's; trials of one before the last change of it do not count; "
        "null: at the test case's own",
    )
    repeat: int = Field(ge=1, description="1-based repeat within the cell")
    attempt: int = Field(ge=1, description="2 and up: an invalid trial run again")
    load_fps: int = Field(description="intended load, per direction")
    started_at: str = Field(description="ISO 8601, UTC")
    stored_at: str | None = Field(
        default=None,
        description="ISO 8601, UTC, by the clock of the machine that stored it, where "
        "that is not the one that measured it",
    )
    request: TrialRequest
    result: TrialResult
    hooks: list[HookRun] = Field(
        default=[],
        description="what ran before and after; the first of a run, or of a part that "
        "was resumed, has the campaign's",
    )
    role: TrialRole = Field(
        default="trial",
        description="first_frames tell whether the device forwards at all; a probe "
        "what the tester's ports can offer: to a MAC address that nobody has, so its "
        "verdict says nothing; of stateful tests: phase1 opens connections for the "
        "trial that follows, validation tells which were left after it; damage: of the "
        "second search, for which damaged frames count as received; cache: asks a DNS "
        "server for what is to be in its cache; none of these is one of the test "
        "case's trials itself",
    )
    device_cpu: DeviceCpu | None = Field(
        default=None,
        description="null: nobody knows where the device works",
    )
    device_drops: DeviceDrops | None = Field(default=None, description="null: no lab")
    earlier: Earlier | None = Field(
        default=None,
        description="of phase 1 if no hook empties the table: it opened other "
        "connections than these; null: a hook does",
    )
    routing: list[RoutingSession] = Field(
        default=[], description="where a daemon tells the device routes"
    )
    log: DeviceLog | None = Field(
        default=None, description="nat-log: what the device logged of its mappings"
    )
    metered: list[Metered] = Field(
        default=[], description="what the power meter said, before and meanwhile"
    )
    environment: str | None = Field(
        default=None,
        description="SHA-256 of what environment.json held when this trial began: of "
        "the first trial of a run, or of a part that was resumed, at each testbed; "
        "null: as before",
    )
