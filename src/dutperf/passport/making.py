"""The passport that a run needs: what is kept, and what had to be measured for it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from dutperf import lab
from dutperf.config import PlannedTestbed, Testbed
from dutperf.errors import DutperfError, EngineError, StorageError
from dutperf.model.cell import Cell
from dutperf.model.traffic import Traffic
from dutperf.passport.keeping import (
    SOCKETS,
    Loop,
    check_loop,
    load_passport,
    loop_of,
    owner_of,
    save_passport,
)
from dutperf.passport.measuring import (
    FULL,
    OPENED_AT_FPS,
    SHORT,
    EntryMeasuring,
    Thoroughness,
    cell_of,
)
from dutperf.procedures.passport_use import MOST_CONNECTIONS, costly, features, sent_by
from dutperf.protocol.base import IpVersion
from dutperf.results.environment import collect_environment
from dutperf.results.passport import Passport, PassportEntry, Sent
from dutperf.results.units import duration, in_unit
from dutperf.run.engine_session import (
    EngineOpener,
    main_core,
    open_ports,
    prepare_engine,
    resolve_neighbours,
)
from dutperf.run.trial_runner import TrialRunner

Notify = Callable[[str], None]
_SHORT_HOLDS = timedelta(days=1)
_EACH_S = 8
"""What a few trials of each kind of frames take."""
Opener = Callable[[PlannedTestbed], AbstractContextManager[Testbed]]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True)
class Maker:
    """Makes passports.

    directory: where passports are kept.
    open_testbed: a lab is up inside the context.
    open_engine: see ``EngineOpener``.
    pace: how thoroughly what is missing is measured.
    now: the time of day.
    """

    directory: Path
    open_testbed: Opener
    open_engine: EngineOpener = prepare_engine
    pace: Thoroughness = SHORT
    now: Callable[[], datetime] = _now

    def __call__(
        self, planned: PlannedTestbed, cells: Sequence[Cell], notify: Notify
    ) -> Passport | None:
        """What is known of the cells' frames; what is not is measured.

        Of ports that only a cable connects it is what the user measured with one. What
        goes wrong is told and costs the passport alone, not the run.
        """
        needed = list(
            {s.model_dump_json(): s for c in cells for s in sent_by(c)}.values()
        )
        try:
            loop = loop_of(planned)
            if loop is None:
                return self._measured_by_cable(planned)
            passport = load_passport(owner_of(loop), self.directory)
            missing = [sent for sent in needed if not self._holds(passport.entry(sent))]
            if missing and (busy := _in_the_way(loop)):
                notify(busy)
                return passport
            if missing:
                notify(_told_before(missing))
                self.made(loop, missing, notify)
                passport = load_passport(passport.owner, self.directory)
        except DutperfError as error:
            notify(f"no passport of the tester: {error.message}")
            return None
        return passport

    def _holds(self, entry: PassportEntry | None) -> bool:
        """Whether it need not be measured now: a few trials may have met a bad moment.

        What ``selftest`` measured holds, and so does what is of the last day.
        """
        if entry is None or entry.trials >= FULL.trials:
            return entry is not None
        age = self.now() - datetime.fromisoformat(entry.made_at)
        return timedelta(0) <= age < _SHORT_HOLDS

    def _measured_by_cable(self, planned: PlannedTestbed) -> Passport | None:
        """None: the ports were never measured."""
        loop = check_loop(loop_of(planned, cabled=True))
        passport = load_passport(owner_of(loop), self.directory)
        return passport if passport.entries else None

    def made(self, loop: Loop, wanted: Sequence[Sent], notify: Notify) -> Passport:
        """Entries of all that is ``wanted``, measured anew; each is kept at once.

        A kind of frames that cannot be measured is told, and costs no other.

        Raises:
            DutperfError: the loop cannot be measured, or no kind could.
        """
        owner = owner_of(loop)
        made = Passport(owner=owner)
        failure: DutperfError | None = None
        with self._loop(loop) as measure:
            # Those that open connections first: the others open them as fast.
            for sent in sorted(wanted, key=lambda sent: not sent.opens):
                kept = load_passport(owner, self.directory)
                try:
                    entry = measure(sent, kept)
                except (EngineError, StorageError):
                    raise
                except DutperfError as error:
                    notify(f"passport: {describe(sent)}: {error.message}")
                    failure = error
                    continue
                save_passport(kept.with_entry(entry), self.directory)
                made = made.with_entry(entry)
                notify(told(entry))
        if failure and not made.entries:
            raise failure
        return made

    @contextmanager
    def _loop(self, loop: Loop) -> Iterator[Callable[[Sent, Passport], PassportEntry]]:
        """An engine on the loop; what it gives measures one entry."""
        SOCKETS.mkdir(mode=0o700, exist_ok=True)
        with (
            self.open_testbed(loop.planned) as testbed,
            tempfile.TemporaryDirectory(prefix="dutperf-passport-") as directory,
            self.open_engine(testbed, _ignore)(Path(directory) / "log") as engine,
        ):
            opened = open_ports(engine, testbed, _ignore)
            ports = collect_environment(
                engine.hello(),
                opened,
                testbed.cores,
                main_core(testbed),
                0,
                namespace=testbed.namespace,
            ).ports
            runner = TrialRunner(engine, testbed, journal=_ignore, on_event=_ignore)

            def measure(sent: Sent, known: Passport) -> PassportEntry:
                cell = cell_of(sent, testbed, self.pace, opened_at_fps(sent, known))
                resolve_neighbours(engine, testbed, [cell], _ignore)
                return EntryMeasuring(
                    runner,
                    cell,
                    sent,
                    self.pace,
                    ports,
                    len(testbed.cores),
                    loop.device_cpu,
                    None if loop.receive_cpu is None else _apart_of(loop),
                ).entry()

            yield measure


def _apart_of(loop: Loop) -> Callable[[], AbstractContextManager[None]]:
    """What leaves the tester's receive work to the device's CPU for a while."""
    keys = loop.planned.lab
    return partial(lab.left_to_the_device, keys.own_name if keys else None)


def opened_at_fps(sent: Sent, known: Passport) -> int:
    """How fast connections are opened before they are used: safely, if it is known.

    Half as fast as a few trials found safe: it is another rate that is to be found.
    """
    opening = (e for e in known.entries if e.sent.opens and e.sent.ip == sent.ip)
    safe = [entry.safe_rate_fps for entry in opening if entry.safe_rate_fps]
    return max(1, min(safe) // 2) if safe else OPENED_AT_FPS


def told(entry: PassportEntry) -> str:
    """An entry in one line."""
    of = describe(entry.sent)
    if entry.safe_rate_fps is None:
        return f"passport: {of}: no rate is safe ({entry.why_not or 'none passed'})"
    return (
        f"passport: {of}: safe at {in_unit(entry.safe_rate_fps, 'fps')} per direction, "
        f"{entry.trials} of {entry.trials} trials{_apart(entry)}"
    )


def _apart(entry: PassportEntry) -> str:
    """What a receiving CPU of the tester's own spares a lab's device."""
    own_ns, shared_ns = entry.device_ns_per_frame, entry.device_ns_if_shared
    if own_ns is None or shared_ns is None:
        return ""
    return (
        f"; of the device's CPU {duration(own_ns)} a frame, {duration(shared_ns)} "
        "if it received for the tester, too"
    )


def describe(sent: Sent) -> str:
    """Which frames."""
    sizes = ", ".join(map(str, sent.frame_sizes))
    return f"IPv{sent.ip}, {sizes} bytes, {sent.direction}, {sent.features}"


def _told_before(missing: Sequence[Sent]) -> str:
    steps = "1 step" if len(missing) == 1 else f"{len(missing)} steps"
    return (
        f"calibrating the tester (once per machine): {steps}, about "
        f"{_EACH_S * len(missing)} s"
    )


def _in_the_way(loop: Loop) -> str:
    """Why the loop cannot be made now; or nothing."""
    keys = loop.planned.lab
    there = lab.running() if keys else []
    # What a killed run left behind goes when the loop is made.
    kept = [
        status.name
        for status in there
        if status.alive and keys and status.own_name == keys.own_name
    ]
    if not kept:
        return ""
    return (
        f"lab {kept[0]} is kept, so the tester cannot be measured without a device; "
        "'dutperf selftest --lab NAME' does it once the lab is down"
    )


def _ignore(_anything: object) -> None:
    pass


# What ``dutperf selftest`` measures where no campaign says it.
#
# Everything that costs the tester something, each alone with the smallest frames in
# both directions; the default profile also one way, and with the largest frames.


_SMALLEST: dict[IpVersion, int] = {4: 64, 6: 84}
_LARGEST = 1518
_PROFILES: tuple[dict[str, Any], ...] = (
    {"ports": {"source": "fixed", "destination": "fixed"}},
    {},
    {"ports": {"source": "increasing", "destination": "increasing"}},
    {"addresses": 256},
    {"ignore_checksums": True},
)


def default_grid(versions: Sequence[IpVersion]) -> Iterator[Sent]:
    """Of each IP version."""
    for ip in versions:
        for profile in _PROFILES:
            yield _sent(ip, _SMALLEST[ip], "both", profile)
        yield _sent(ip, _SMALLEST[ip], "forward", {})
        yield _sent(ip, _LARGEST, "both", {})
        yield from _connections(ip)


def _sent(ip: IpVersion, size: int, direction: str, profile: dict[str, Any]) -> Sent:
    traffic = Traffic.model_validate(profile)
    return Sent.model_validate(
        {
            "ip": ip,
            "frame_sizes": [size],
            "direction": direction,
            "traffic": costly(traffic),
            "features": features(traffic),
        }
    )


def _connections(ip: IpVersion) -> Iterator[Sent]:
    """Opened, and used when they are open (RFC 9693 4.2 and 4.7)."""
    for opens in (True, False):
        way = "opened" if opens else "open"
        yield Sent(
            ip=ip,
            frame_sizes=[_SMALLEST[ip]],
            direction="forward" if opens else "both",
            traffic={},
            features=f"{MOST_CONNECTIONS:,} connections {way}",
            connections=MOST_CONNECTIONS,
            opens=opens,
        )
