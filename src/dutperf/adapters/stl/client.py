"""TRex's stateless client: streams on ports, started, waited for, counted.

A start is a trial: its counts are exact, and there when it has ended. What it could not
tell (an invalid trial) is an error of ``wait_on_traffic``, not a count.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Self

from dutperf.adapters.in_background import Background, why_invalid
from dutperf.adapters.stl.streams import (
    PortStreams,
    STLFlowLatencyStats,
    STLProfile,
    STLStream,
    refused,
)
from dutperf.api.frames import Load, Loads, OpenFrames
from dutperf.api.tester import Tester
from dutperf.api.traffic import Trial
from dutperf.errors import DutperfError, InputError, SetupError
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import StreamResult

STLError = DutperfError
"""Of all that goes wrong; it has ``message`` and ``hint``."""

_WAYS: dict[int, DirectionName] = {0: "forward", 1: "reverse"}
_PORTS = tuple(_WAYS)
_FCS, _GAP = 4, 20
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}
_MULT = re.compile(r"([0-9.]+)(?:(k|m|g)?(pps|bpsl1|bpsl2|bps)|(%))?", re.IGNORECASE)

Json = dict[Any, Any]


class _MissingError(InputError, AttributeError):
    """So that ``hasattr`` tells it as well."""


class STLClient:
    """A tester as TRex's client sees it: port 0 is its left side, port 1 its right.

    Args:
        server: where TRex would be: the file of a testbed, ``lab:NAME`` or
            ``simulated:FPS``.
        username: and all other arguments of TRex's: not needed.
    """

    def __init__(self, username: str = "", server: str = "", **_more: object) -> None:
        del username
        self._tester = tester_at(server)
        self._streams: dict[int, PortStreams] = {p: PortStreams() for p in _PORTS}
        self._background = Background(self._tester)
        self._sent: list[dict[int, PortStreams]] = []
        """What each trial was of, those that have ended first."""
        self._active: tuple[int, ...] = ()
        self._connected = False

    def connect(self) -> None:
        """Bring a lab up, if it is one."""
        if not self._connected:
            self._tester.__enter__()
            self._connected = True

    def disconnect(self, **_more: object) -> None:
        """End what runs, and take it down."""
        self.stop()
        if self._connected:
            self._connected = False
            self._tester.__exit__()

    def __enter__(self) -> Self:
        """As ``connect``."""
        self.connect()
        return self

    def __exit__(self, *_error: object) -> None:
        """As ``disconnect``."""
        self.disconnect()

    def acquire(self, ports: Sequence[int] | None = None, **_more: object) -> None:
        """Ports are ours while a trial runs."""
        _ports(ports)

    release = acquire

    def get_all_ports(self) -> list[int]:
        """Both sides."""
        return list(_PORTS)

    get_acquired_ports = get_all_ports

    def reset(self, ports: Sequence[int] | int | None = None, **_more: object) -> None:
        """Stop, forget streams and counts."""
        self.stop()
        self.remove_all_streams(ports)
        self.clear_stats()

    def remove_all_streams(self, ports: Sequence[int] | int | None = None) -> None:
        """Of these ports."""
        for port in _ports(ports):
            self._streams[port] = PortStreams()

    def add_streams(
        self,
        streams: STLStream | STLProfile | Sequence[STLStream],
        ports: Sequence[int] | int | None = None,
    ) -> list[int]:
        """These streams on each of the ports; their numbers."""
        if isinstance(streams, STLProfile):
            streams = streams.get_streams()
        added = [streams] if isinstance(streams, STLStream) else list(streams)
        for port in _ports(ports):
            self._streams[port].streams += added
        return list(range(1, len(added) + 1))

    def clear_stats(self, ports: Sequence[int] | None = None, **_more: object) -> None:
        """Begin to count anew; of both ports at once."""
        _ports(ports)
        self._background.trials.clear()
        self._sent = []

    def start(
        self,
        ports: Sequence[int] | int | None = None,
        mult: str | float = "1",
        force: bool = False,
        duration: float = -1,
        total: bool = False,
        **_more: object,
    ) -> None:
        """Send what the ports have, in the background.

        Raises:
            STLError: that cannot be sent; nothing was.
        """
        del force
        if total:
            raise refused("start(total=True) is not there", "mult is of each port")
        if not self._connected:
            raise refused("the client is not connected", "connect() before")
        if self.is_traffic_active():
            raise refused("traffic is active", "start all ports at once, or stop first")
        chosen = [port for port in _ports(ports) if self._streams[port].streams]
        if not chosen:
            raise refused("no port has streams", "add_streams() before")
        of_ports = {
            port: PortStreams(list(self._streams[port].streams)) for port in chosen
        }
        asked = {
            _WAYS[port]: Load([s.packet.template() for s in of.streams], 1)
            for port, of in of_ports.items()
        }
        self._active = tuple(chosen)

        def ready(frames: OpenFrames) -> tuple[Loads, float | None]:
            line_bps = frames.max_rate_fps * (64 + _GAP) * 8.0
            loads = {
                _WAYS[port]: _multiplied(of, str(mult), line_bps)
                for port, of in of_ports.items()
            }
            return loads, _lasts_s(of_ports, loads, duration)

        self._background.start(asked, ready)
        self._sent.append(of_ports)

    def is_traffic_active(self, ports: Sequence[int] | None = None) -> bool:
        """Whether a trial runs."""
        asked = set(_ports(ports))
        return self._background.is_active and bool(asked & set(self._active))

    def wait_on_traffic(
        self,
        ports: Sequence[int] | int | None = None,
        timeout: float | None = None,
        **_more: object,
    ) -> None:
        """Until the trial has ended.

        Raises:
            STLError: it does not within ``timeout``; or it failed, or tells nothing of
                the device (see docs/verdicts.md).
        """
        _ports(ports)
        self._background.join(timeout)
        trials = self._background.trials
        if reasons := why_invalid(trials[-1]) if trials else ():
            raise SetupError(
                "STL: the trial tells nothing of the device: "
                + "; ".join(reason.message for reason in reasons),
                "; ".join(dict.fromkeys(r.hint for r in reasons if r.hint)),
            )

    def stop(self, ports: Sequence[int] | int | None = None, **_more: object) -> None:
        """Send no more, and count what was sent; of both ports at once."""
        _ports(ports)
        self._background.stop()

    def get_stats(self, ports: Sequence[int] | None = None, **_more: object) -> Json:
        """Counts since they were cleared, of trials that have ended.

        ``opackets``, ``ipackets``, ``obytes``, ``ibytes`` (without FCS), ``tx_pps``,
        ``rx_pps``, ``tx_bps``, ``rx_bps`` of each port and as ``total``; ``flow_stats``
        and ``latency`` (in us) by pg_id.
        """
        per_port: Json = {port: self._of_port(port) for port in _ports(ports)}
        total = {
            key: sum(each[key] for each in per_port.values())
            for key in next(iter(per_port.values()))
        }
        return {
            **per_port,
            "total": total,
            "global": {key: total[key] for key in ("tx_pps", "rx_pps", "tx_bps")},
            **self.get_pgid_stats(),
        }

    def get_pgid_stats(self, pgid_list: Iterable[int] | None = None) -> Json:
        """``flow_stats`` and ``latency`` of all packet groups, or of these."""
        wanted = None if pgid_list is None else set(pgid_list)
        flows: Json = {}
        latency: Json = {}
        for trial, of_ports in zip(self._background.trials, self._sent, strict=False):
            for port, of in of_ports.items():
                for stream, result in _results(trial, port, of):
                    group = stream.flow_stats
                    if group is None or (wanted and group.pg_id not in wanted):
                        continue
                    _add_flow(flows, group.pg_id, port, result)
                    if isinstance(group, STLFlowLatencyStats):
                        _add_latency(latency, group.pg_id, result)
        return {"flow_stats": flows, "latency": latency}

    def _of_port(self, port: int) -> Json:
        found = dict.fromkeys(
            ("opackets", "ipackets", "obytes", "ibytes", "oerrors", "ierrors"), 0
        )
        rates = dict.fromkeys(("tx_pps", "rx_pps", "tx_bps", "rx_bps"), 0.0)
        for trial in self._background.trials:
            for name, direction in trial.directions.items():
                sends = name == _WAYS[port]
                mean = _mean_bytes(trial, name)
                count = direction.sent if sends else direction.received
                prefix, kind = ("o", "tx") if sends else ("i", "rx")
                found[f"{prefix}packets"] += count
                found[f"{prefix}bytes"] += round(count * mean)
                rates[f"{kind}_pps"] = count / trial.duration_s
                rates[f"{kind}_bps"] = count * mean * 8 / trial.duration_s
        return {**found, **rates}

    def __getattr__(self, name: str) -> object:
        """What TRex's client has and this one has not."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise _MissingError(
            f"STL: STLClient.{name} is not there", "docs/python.md says what is", name
        )


def tester_at(server: str) -> Tester:
    """Where an adapter is told to measure: a testbed's file, a lab, or nowhere.

    Raises:
        InputError: that is none.
    """
    kind, _, what = server.partition(":")
    if kind == "lab":
        return Tester(lab=what)
    if kind == "simulated":
        try:
            return Tester(simulated_fps=float(what))
        except ValueError:
            raise refused(f"server {server!r}", "simulated:120000") from None
    if not server:
        raise refused(
            "STLClient(server=...) says where to measure",
            "the file of a testbed, lab:NAME or simulated:FPS",
        )
    return Tester(testbed=Path(server))


def _ports(ports: Sequence[int] | int | None) -> list[int]:
    chosen = _PORTS if ports is None else ports
    given = [chosen] if isinstance(chosen, int) else list(chosen)
    for port in given:
        if port not in _PORTS:
            raise refused(f"port {port!r}", "0, the left side, or 1, the right one")
    return list(dict.fromkeys(given))


def _multiplied(of: PortStreams, mult: str, line_bps: float) -> Load:
    """The port's load as ``mult`` says: a factor, or what it is to be."""
    found = _MULT.fullmatch(mult.strip())
    if not found or not _is_number(found[1]):
        raise refused(f"mult {mult!r}", "such as 1, 10kpps, 1gbps, 50%")
    value, scale, unit, percent = found.groups()
    asked = Fraction(value) * _UNITS[(scale or "").lower()]
    if unit is None and percent is None:
        return of.load(asked, line_bps)
    packets, wire_bits, frame_bits = _alone(of, line_bps)
    wanted = {
        "pps": packets,
        "bpsl1": wire_bits,
        "bpsl2": frame_bits,
        "bps": frame_bits,
    }
    if percent:
        return of.load(Fraction(line_bps) * asked / 100 / wire_bits, line_bps)
    return of.load(asked / wanted[unit.lower()], line_bps)


def _alone(of: PortStreams, line_bps: float) -> tuple[Fraction, Fraction, Fraction]:
    """Packets and bits a second, on the wire and without, as the streams say it."""
    packets, wire_bits, frame_bits = Fraction(0), Fraction(0), Fraction(0)
    for stream in of.streams:
        size = stream.packet.template().frame_size
        rate = Fraction(stream.mode.rate_fps(size, line_bps))
        packets += rate
        wire_bits += rate * (size + _GAP) * 8
        frame_bits += rate * size * 8
    return packets, wire_bits, frame_bits


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal() and float(text) > 0


def _lasts_s(
    of_ports: Mapping[int, PortStreams], loads: Loads, duration: float
) -> float | None:
    """As long as is asked for, or as the bursts last: alike on both ports."""
    bursts = {
        port: [stream.mode.total_pkts for stream in of.streams]
        for port, of in of_ports.items()
    }
    if not any(count for counts in bursts.values() for count in counts):
        return duration if duration > 0 else None
    times = set()
    for port, counts in bursts.items():
        if len(counts) > 1 or counts[0] is None:
            raise refused("a burst beside another stream", "one stream a port")
        times.add(Fraction(counts[0], loads[_WAYS[port]].rate_fps))
    if len(times) > 1:
        raise refused("bursts of two ports that do not end at once", "start one port")
    lasts_s = float(times.pop())
    if 0 < duration < lasts_s:
        raise refused(f"a duration of {duration} s for a burst of {lasts_s:g} s")
    return lasts_s


def _mean_bytes(trial: Trial, name: str) -> float:
    """Without FCS, of a direction's frames."""
    request = trial.record.request
    (direction,) = (each for each in request.directions if each.name == name)
    frames = request.frames(direction)
    total = sum(
        direction.frames_of(i, frames) * sum(s.frame_sizes) / len(s.frame_sizes)
        for i, s in enumerate(direction.streams)
    )
    return total / frames - _FCS


def _results(
    trial: Trial, port: int, of: PortStreams
) -> Iterable[tuple[STLStream, StreamResult]]:
    """Each stream with its counts; those that differ in size only have no own."""
    for direction in trial.record.result.directions:
        if direction.name == _WAYS[port]:
            return zip(of.streams, direction.streams, strict=False)
    return ()


def _add_flow(flows: Json, pg_id: int, port: int, result: StreamResult) -> None:
    flow = flows.setdefault(
        pg_id,
        {key: dict.fromkeys((*_PORTS, "total"), 0) for key in ("tx_pkts", "rx_pkts")},
    )
    for key, where, count in (
        ("tx_pkts", port, result.sent),
        ("rx_pkts", 1 - port, result.received + result.duplicate),
    ):
        flow[key][where] += count
        flow[key]["total"] += count


def _add_latency(latency: Json, pg_id: int, result: StreamResult) -> None:
    group = latency.setdefault(
        pg_id,
        {
            "latency": {"total_min": None, "total_max": None},
            "err_cntrs": {"dropped": 0, "out_of_order": 0, "dup": 0},
        },
    )
    errors, delays = group["err_cntrs"], group["latency"]
    errors["dropped"] += result.lost
    errors["out_of_order"] += result.reordered
    errors["dup"] += result.duplicate
    for key, pick, value in (
        ("total_min", min, result.delay_ns.min),
        ("total_max", max, result.delay_ns.max),
    ):
        if value is not None:
            own = value / 1000
            delays[key] = own if delays[key] is None else pick(delays[key], own)
