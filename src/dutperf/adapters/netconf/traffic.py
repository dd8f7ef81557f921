"""Generators and analyzers of the two sides: what they send, and what they counted.

draft-ietf-bmwg-network-tester-cfg: a generator sends from when it is configured until
its ``total-frames`` are sent, or it is deleted; an analyzer counts from when it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dutperf.adapters.in_background import Background, why_invalid
from dutperf.adapters.netconf.datastore import Raw, RpcError, unsupported
from dutperf.api.frames import FrameTemplate, Load, Loads, OpenFrames
from dutperf.api.tester import Tester
from dutperf.api.traffic import Trial, check_duration
from dutperf.errors import DutperfError, InputError
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import StreamResult
from dutperf.protocol.stream_messages import RateStep

SIDES: dict[str, DirectionName] = {"left": "forward", "right": "reverse"}
"""Names of the interfaces, and what goes out by each."""
_ARRIVES: dict[str, DirectionName] = {"left": "reverse", "right": "forward"}
_INTERFACES = "ietf-interfaces:interfaces"
_TYPE = "iana-if-type:ethernetCsmacd"
GENERATOR = "ietf-traffic-generator:traffic-generator"
ANALYZER = "ietf-traffic-analyzer:traffic-analyzer"
_TESTFRAME = "dutperf-testframe:testframe"
_LEAST_BYTES, _GAP, _FCS = 64, 20, 4
_LEAST_S = 1e-6
_NO_MAC = "00:00:00:00:00:00"
_MOST_FRAMES_IN_TURN = 64
_MOST_BYTES = 65_535
_NS = 10**9
_LONGEST_NS = 2**47


@dataclass(frozen=True)
class _Stream:
    """Frames of one kind; octets are of the line, gaps included."""

    template: FrameTemplate
    path: str
    to_next: int
    """From a frame's begin to the next one's, but at the end of a burst."""
    burst: tuple[int, int] | None
    """How many frames, and the octets from a burst's begin to the next one's."""

    @classmethod
    def of(cls, told: Raw, path: str) -> _Stream:
        """One that the model describes by ``burst-data``.

        Raises:
            RpcError: that cannot be sent exactly.
        """
        kind = told.get("testframe-type", "ietf-traffic-generator:static")
        if kind != _TESTFRAME:
            raise unsupported(
                f"{path}/testframe-type",
                f"{kind.partition(':')[2]}: frames carry the tester's own payload; "
                f"give {_TESTFRAME}",
            )
        if told.get("modifiers"):
            raise unsupported(f"{path}/modifiers", "no field varies")
        size, gap = told["frame-size"], told["interframe-gap"]
        if size > _MOST_BYTES:
            raise unsupported(f"{path}/frame-size", f"{_MOST_BYTES} octets at most")
        if gap < _GAP:
            raise unsupported(f"{path}/interframe-gap", f"{_GAP} octets at least")
        return cls(
            _template(told, path), path, size + gap, _burst(told, size, gap, path)
        )


def _template(told: Raw, path: str) -> FrameTemplate:
    size, data = told["frame-size"], bytes.fromhex(told.get("frame-data", ""))
    path = f"{path}/frame-data"
    if len(data) > size - _FCS:
        raise unsupported(path, "has the FCS, which is the tester's; leave it out")
    try:
        found = FrameTemplate.of(data.ljust(size - _FCS, b"\0"), "frame-data")
    except InputError as error:
        said = f"{error.message}; {error.hint}" if error.hint else error.message
        raise unsupported(path, said) from None
    if found.frame_size != size:
        raise unsupported(
            path, f"is of {found.frame_size} octets with FCS by its own length"
        )
    macs = {
        key: None for key in ("src_mac", "dst_mac") if getattr(found, key) == _NO_MAC
    }
    return FrameTemplate(**{**vars(found), **macs})


def _burst(told: Raw, size: int, gap: int, path: str) -> tuple[int, int] | None:
    frames, after = told.get("frames-per-burst"), told.get("interburst-gap")
    if after is None or after == gap:
        return None
    if not frames:
        raise unsupported(f"{path}/interburst-gap", "without frames-per-burst")
    if after < gap:
        raise unsupported(f"{path}/interburst-gap", "is shorter than interframe-gap")
    return frames, frames * (size + gap) + after - gap


@dataclass(frozen=True)
class Generator:
    """What one side sends.

    Attributes:
        templates: the first one, and perhaps another between its frames.
        sizes: of the first in turn, if it has several.
        stream: whose gaps they have.
        total: after so many frames it ends; None: when it is deleted.
        path: where it is configured.
    """

    templates: Sequence[FrameTemplate]
    sizes: Sequence[int]
    stream: _Stream
    total: int | None
    path: str

    @classmethod
    def of(cls, told: Raw, path: str) -> Generator:
        """That of the container ``traffic-generator``.

        Raises:
            RpcError: that cannot be sent exactly.
        """
        total = int(told["total-frames"]) if "total-frames" in told else None
        if total == 0:
            raise unsupported(f"{path}/total-frames", "0: leave the generator out")
        if "streams" not in told:
            stream = _Stream.of(told, path)
            return cls([stream.template], (), stream, total, path)
        of_streams = sorted(told["streams"]["stream"], key=lambda each: each["id"])
        return cls(*_in_turn(of_streams, f"{path}/streams"), total, path)

    def load(self, line_octets: int) -> Load:
        """At so many octets a second, to the nearest whole frame a second."""
        rate = round(Fraction(line_octets, self.stream.to_next))
        if rate < 1:
            raise unsupported(self.path, "is less than a frame a second")
        steps: list[RateStep] = []
        if self.stream.burst:
            frames, octets = self.stream.burst
            burst_ns = round(Fraction(frames * _NS, rate))
            pause_ns = round(Fraction(octets * _NS, line_octets)) - burst_ns
            if not 1 <= pause_ns <= _LONGEST_NS or burst_ns > _LONGEST_NS:
                raise unsupported(
                    f"{self.path}/interburst-gap", "is no time that can be told"
                )
            steps = [
                RateStep(rate_fps=rate, duration_ns=burst_ns),
                RateStep(rate_fps=0, duration_ns=pause_ns),
            ]
        share = (1, len(self.templates))
        return Load(self.templates, rate, share=share, sizes=self.sizes, steps=steps)

    def lasts_s(self, load: Load) -> float | None:
        """Until ``total`` frames are sent; None: until it is deleted."""
        if self.total is None:
            return None
        rounds, left = 0, self.total
        if self.stream.burst:
            rounds, left = divmod(self.total, self.stream.burst[0])
        period_ns = sum(step.duration_ns for step in load.steps)
        return float(rounds * period_ns / _NS + Fraction(left, load.rate_fps))


def _in_turn(
    streams: Sequence[Raw], path: str
) -> tuple[Sequence[FrameTemplate], Sequence[int], _Stream]:
    """Streams of which each sends some frames, and then the next one does.

    Frames of a load begin evenly, so those of all streams have to.
    """
    sizes: list[int] = []
    found: list[_Stream] = []
    for told in streams:
        own = f"{path}/stream[id='{told['id']}']"
        stream, count = _Stream.of(told, own), told["frames-per-stream"]
        if stream.burst or told.get("frames-per-burst", count) != count:
            raise unsupported(
                f"{own}/frames-per-burst", "bursts in a stream of several"
            )
        if told["frame-size"] + told["interstream-gap"] != stream.to_next:
            raise unsupported(f"{own}/interstream-gap", "is not interframe-gap")
        if found and stream.to_next != found[0].to_next:
            raise unsupported(
                f"{own}/interframe-gap", "with frame-size differs from other streams'"
            )
        if not 1 <= count <= _MOST_FRAMES_IN_TURN - len(sizes):
            raise unsupported(
                f"{own}/frames-per-stream",
                f"1 to {_MOST_FRAMES_IN_TURN} of all streams together",
            )
        sizes += [told["frame-size"]] * count
        found.append(stream)
    first, *others = [stream.template for stream in found]
    if all(each.sized(first.frame_size) == first for each in others):
        return [first], sizes if others else (), found[0]
    if len(found) != 2 or len(sizes) != 2:
        raise unsupported(
            path,
            "streams that differ in more than frame-size: two, of one frame in turn",
        )
    return [first, *others], (), found[0]


class Sides:
    """Both interfaces of a tester, as their configuration makes them."""

    def __init__(self, tester: Tester) -> None:
        self._background = Background(tester)
        self._active: set[str] = set()
        self._since: dict[str, int] = {}
        """Of each analyzer: how many trials had ended before it was configured."""
        self._failed: DutperfError | None = None

    def apply(self, before: Raw, after: Raw) -> None:
        """Start and stop, as the change of the configuration says.

        Raises:
            RpcError, DutperfError: it cannot be done; nothing was changed.
        """
        old, new = _by_name(before), _by_name(after)
        generators = {
            name: Generator.of(told[GENERATOR], _path(name, GENERATOR))
            for name, told in new.items()
            if GENERATOR in told
        }
        changed = {
            name
            for name in SIDES
            if old.get(name, {}).get(GENERATOR) != new.get(name, {}).get(GENERATOR)
        }
        analyzers = {name for name, told in new.items() if ANALYZER in told}
        self._settle()
        if not (self._background.is_active or analyzers):
            self._background.trials.clear()
        trials = len(self._background.trials)
        starting = {name: generators[name] for name in changed & generators.keys()}
        if self._background.is_active:
            self._change_active(changed, generators, analyzers - self._since.keys())
        elif starting:
            self._start(starting)
        self._since = {name: self._since.get(name, trials) for name in analyzers}

    def _change_active(
        self,
        changed: set[str],
        generators: Mapping[str, Generator],
        added: set[str],
    ) -> None:
        """Traffic that runs can only be ended, as a whole."""
        for name in added:
            raise RpcError(
                "in-use",
                "traffic is active: analyzers come before it",
                _path(name, ANALYZER),
            )
        for name in changed & generators.keys() or changed - self._active:
            raise RpcError(
                "in-use",
                "traffic is active: delete it first; both sides start in one edit",
                _path(name, GENERATOR),
            )
        if not changed:
            return
        for name in self._active - changed:
            raise RpcError(
                "in-use", "both sides end in one edit", _path(name, GENERATOR)
            )
        self._background.stop()

    def _start(self, starting: Mapping[str, Generator]) -> None:
        asked = {
            SIDES[name]: Load(of.templates, 1, share=(1, len(of.templates)))
            for name, of in starting.items()
        }

        def ready(frames: OpenFrames) -> tuple[Loads, float | None]:
            line_octets = frames.max_rate_fps * (_LEAST_BYTES + _GAP)
            loads = {SIDES[n]: of.load(line_octets) for n, of in starting.items()}
            lasts = {of.lasts_s(loads[SIDES[n]]) for n, of in starting.items()}
            if len(lasts) > 1:
                raise unsupported(
                    _path("right", f"{GENERATOR}/total-frames"),
                    "both sides do not end at the same time",
                )
            (lasts_s,) = lasts
            try:
                check_duration(_LEAST_S if lasts_s is None else lasts_s, _LEAST_S)
            except InputError as error:
                (path, *_) = (f"{of.path}/total-frames" for of in starting.values())
                raise unsupported(path, f"{error.message}; {error.hint}") from None
            return loads, lasts_s

        self._background.start(asked, ready)
        self._failed, self._active = None, set(starting)

    def end(self) -> None:
        """Send no more."""
        self._background.stop()

    def join(self) -> None:
        """Until what is sent has an end."""
        self._background.join()

    def _settle(self) -> None:
        """Keep what a trial failed by, which its thread tells once."""
        if not self._background.is_active:
            self._active = set()
            try:
                self._background.join()
            except DutperfError as error:
                self._failed = error

    def state(self) -> dict[str, Raw]:
        """Of each analyzer the counts of the trials that have ended."""
        self._settle()
        return {
            name: _counted(self._trials(since), _ARRIVES[name])
            for name, since in self._since.items()
        }

    def why_unknown(self) -> str:
        """Why these are no counts of the device's; empty: they are."""
        if self._failed:
            return self._failed.message
        since = min(self._since.values(), default=0)
        reasons = [why for trial in self._trials(since) for why in why_invalid(trial)]
        return "; ".join(reason.message for reason in reasons)

    def _trials(self, since: int) -> Sequence[Trial]:
        return self._background.trials[since:]


def _path(name: str, member: str) -> str:
    return f"/{_INTERFACES}/interface[name='{name}']/{member}"


def _by_name(data: Raw) -> dict[str, Raw]:
    """The configured interfaces, each as far as there is one.

    Raises:
        RpcError: it asks for what there is not.
    """
    found: dict[str, Raw] = {}
    for told in data.get(_INTERFACES, {}).get("interface", []):
        name = told["name"]
        path = _path(name, "")
        if name not in SIDES:
            raise unsupported(f"{path}name", "interfaces are left and right")
        if told["type"] != _TYPE:
            raise unsupported(f"{path}type", "both are ethernetCsmacd")
        if told.get("enabled") is False:
            raise unsupported(f"{path}enabled", "no interface can be disabled")
        found[name] = told
    return found


def with_state(data: Raw, sides: Mapping[str, Raw], since: str) -> Raw:
    """The configuration with the state of both interfaces.

    Args:
        data: the configuration.
        sides: of each analyzer its state.
        since: the date and time from which on everything is counted.
    """
    configured = {told["name"]: told for told in _interfaces(data)}
    shown = []
    for name in SIDES:
        own = dict(configured.get(name, {"name": name, "type": _TYPE}))
        own |= {"oper-status": "unknown", "statistics": {"discontinuity-time": since}}
        if name in sides:
            own[ANALYZER] = {**own[ANALYZER], "state": sides[name]}
        shown.append(own)
    return {**data, _INTERFACES: {"interface": shown}}


def _interfaces(data: Raw) -> list[Raw]:
    found: list[Raw] = data.get(_INTERFACES, {}).get("interface", [])
    return found


# Counts as the analyzer has them; a leaf that is not known exactly is left out.


def _counted(trials: Sequence[Trial], way: DirectionName) -> Raw:
    results: list[StreamResult] = []
    sizes: list[Sequence[int]] = []
    for trial in trials:
        asked = {each.name: each for each in trial.record.request.directions}
        for direction in trial.record.result.directions:
            if direction.name == way:
                results += direction.streams
                sizes += [each.received_frame_sizes for each in asked[way].streams]
    came = [result.received + result.duplicate for result in results]
    stats: Raw = {"testframe-pkts": str(sum(came))}
    found: Raw = {"pkts": str(sum(came))}
    if all(len(set(each)) == 1 for each in sizes):
        octets = sum(n * each[0] for n, each in zip(came, sizes, strict=True))
        found["octets"] = str(octets)
    corrupt = sum(result.corrupt for result in results)
    found["errors"] = str(corrupt)
    errors = [_sequence_errors(result) for result in results]
    if None not in errors:
        stats["sequence-errors"] = str(sum(filter(None, errors)))
    if not corrupt:
        stats["payload-errors"] = "0"
    return {**found, "testframe-stats": {**stats, "latency": _latency(results)}}


def _sequence_errors(result: StreamResult) -> int | None:
    """Frames behind a gap: those of each run of lost frames, but one at the end."""
    if result.reordered or result.duplicate or result.unplaced or result.corrupt:
        return None
    if not result.lost:
        return 0
    if result.last_loss is None:
        return None
    return result.loss_runs.count - (result.last_loss.end_ns is None)


def _latency(results: Sequence[StreamResult]) -> Raw:
    delays = [result.delay_ns for result in results if result.delay_ns.count]
    found: dict[str, Any] = {"samples": str(sum(each.count for each in delays))}
    least = [each.min for each in delays if each.min is not None]
    most = [each.max for each in delays if each.max is not None]
    if least and most:
        found |= {"min": str(min(least)), "max": str(max(most))}
    return found
