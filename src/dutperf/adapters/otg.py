"""A part of OTG, the Open Traffic Generator API, as a local server: for ``snappi``.

    POST /config            ports and flows of raw packets      -> ready
    POST /control/state     traffic.flow_transmit start, stop   -> a trial in a thread
    POST /monitor/metrics   of flows or ports                   -> the last one's counts

What the model asks for beside what is here is refused by its path, as it would be by a
validation of OTG. Metrics are those of trials that have ended.
"""

from __future__ import annotations

import ipaddress
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from dutperf import __version__
from dutperf.adapters.in_background import Background, why_invalid
from dutperf.adapters.stl.client import tester_at
from dutperf.api.frames import FrameTemplate, Load, Loads, OpenFrames
from dutperf.api.tester import Tester
from dutperf.api.traffic import Trial
from dutperf.errors import DutperfError, InputError
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import StreamResult
from dutperf.protocol.stream_messages import FieldName, FieldVariation, VariationMode
from dutperf.serve import listen, settings

Json = dict[str, Any]

_SIDES: dict[str, DirectionName] = {"left": "forward", "right": "reverse"}
_OTHER = {"left": "right", "right": "left"}
_LEAST_BYTES, _GAP, _FCS = 64, 20, 4
_MOST_FLOWS = 2
_TOKEN_BYTES = 24
_MOST_BODY_BYTES = 1_000_000
_UNITS = {"bps": 1, "kbps": 10**3, "mbps": 10**6, "gbps": 10**9}
_MODES: dict[str, VariationMode] = {
    "increment": "increasing",
    "decrement": "decreasing",
}
_GAP_BYTES = 12
"""Between packets, as OTG has it if nothing is said."""
_GOOD = ("auto", "generated")
"""Of lengths and checksums: as the packet wants them."""
_ETHER_TYPES = (0x0800, 0x86DD)


def _refused(path: str, what: str, hint: str = "") -> InputError:
    return InputError(f"OTG: {path}: {what}", hint, path)


class Reading:
    """An object of the model, read key by key; what is left over is refused."""

    def __init__(self, told: object, path: str) -> None:
        if not isinstance(told, Mapping):
            raise _refused(path, "must be an object")
        self.path = path
        self._told = dict(told)

    def take(self, key: str, default: object = None) -> Any:  # noqa: ANN401 - of JSON
        """The value there."""
        return self._told.pop(key, default)

    def needed(self, key: str) -> Any:  # noqa: ANN401 - of JSON
        """The same of one that must be there."""
        if key not in self._told:
            raise _refused(f"{self.path}.{key}", "is missing")
        return self._told.pop(key)

    def inner(self, key: str) -> Reading | None:
        """An object in it; None: there is none."""
        told = self._told.pop(key, None)
        return None if told is None else Reading(told, f"{self.path}.{key}")

    def each(self, key: str) -> Iterator[Reading]:
        """The objects of a list in it."""
        for number, told in enumerate(self._told.pop(key, None) or []):
            yield Reading(told, f"{self.path}.{key}[{number}]")

    def chosen(self, *known: str) -> str:
        """Which of its alternatives it has, one of those that are ``known``."""
        choice = self.take("choice")
        if choice is None:
            choice = next((key for key in known if key in self._told), None)
        if choice not in known:
            raise _refused(self.path, f"{choice!r} is not there", ", ".join(known))
        return str(choice)

    def end(self) -> None:
        """Nothing else is asked for."""
        for key, value in self._told.items():
            if value not in (None, False, [], {}):
                raise _refused(f"{self.path}.{key}", "is not there")


# Flows: packets whose fields are fixed or vary, how fast and how long.


class Flow:
    """One flow of a configuration."""

    def __init__(self, told: Reading, sides: Mapping[str, str]) -> None:
        self.path = told.path
        self.name = str(told.needed("name"))
        self.tx, self.rx = _way(told, sides)
        self.side = sides[self.tx]
        self.template = _packet(told)
        self._rate = told.inner("rate")
        self.rate = _rate(self._rate, f"{told.path}.rate")
        self.packets, self.seconds = _duration(told.inner("duration"))
        metrics = told.inner("metrics")
        self.counted = bool(metrics and metrics.take("enable"))
        if metrics:
            metrics.take("loss")
            latency = metrics.inner("latency")
            if latency:
                latency.take("enable")
                latency.take("mode")
                latency.end()
            metrics.end()
        told.end()

    def rate_fps(self, line_bps: float) -> float:
        """Frames a second on such a line."""
        return self.rate(self.template.frame_size, line_bps)


def _way(told: Reading, sides: Mapping[str, str]) -> tuple[str, str]:
    tx_rx = told.inner("tx_rx")
    if tx_rx is None:
        raise _refused(f"{told.path}.tx_rx", "is missing")
    tx_rx.chosen("port")
    port = tx_rx.inner("port")
    if port is None:
        raise _refused(f"{tx_rx.path}.port", "is missing")
    tx = port.needed("tx_name")
    names = port.take("rx_names") or [port.take("rx_name")]
    port.take("rx_name")
    port.end()
    tx_rx.end()
    if tx not in sides or any(name not in sides for name in names):
        raise _refused(port.path, "names a port that the configuration has not")
    if len(names) != 1 or sides[names[0]] == sides[tx]:
        raise _refused(port.path, "one flow goes from one side to the other")
    return str(tx), str(names[0])


Rate = Callable[[int, float], float]
"""Frames a second of frames of a size with FCS, on a line of so many bit/s."""


def _rate(told: Reading | None, path: str) -> Rate:
    if told is None:
        return lambda _size, _line_bps: 1000.0
    choice = told.chosen("pps", "percentage", *_UNITS)
    value = _number(told.needed(choice), f"{path}.{choice}")
    told.end()
    if value <= 0:
        raise _refused(f"{path}.{choice}", f"{value:g} is no rate")
    if choice == "pps":
        return lambda _size, _line_bps: value
    if choice == "percentage":
        return lambda size, line: line * value / 100 / ((size + _GAP) * 8)
    return lambda size, _line_bps: value * _UNITS[choice] / ((size + _GAP) * 8)


def _duration(told: Reading | None) -> tuple[int | None, float | None]:
    """Packets, or seconds; neither: until it is stopped."""
    if told is None:
        return None, None
    choice = told.chosen("continuous", "fixed_packets", "fixed_seconds")
    inner = told.inner(choice)
    told.end()
    if inner is None:
        return None, None
    if inner.take("gap", _GAP_BYTES) != _GAP_BYTES:
        raise _refused(f"{inner.path}.gap", "is not there", f"{_GAP_BYTES}")
    packets, seconds = inner.take("packets"), inner.take("seconds")
    inner.end()
    if packets is not None:
        return int(_number(packets, inner.path)), None
    return None, None if seconds is None else _number(seconds, inner.path)


def _number(told: object, path: str) -> float:
    try:
        return float(told)  # type: ignore[arg-type] # what is none raises
    except (TypeError, ValueError):
        raise _refused(path, f"{told!r} is no number") from None


def _packet(told: Reading) -> FrameTemplate:
    headers = list(told.each("packet"))
    kinds = [each.chosen("ethernet", "ipv4", "ipv6", "udp") for each in headers]
    if kinds not in (["ethernet", ip, "udp"] for ip in ("ipv4", "ipv6")):
        raise _refused(
            f"{told.path}.packet",
            f"{', '.join(kinds) or 'nothing'}",
            "ethernet, ipv4 or ipv6, and udp, in this order",
        )
    inner = [
        each.inner(kind) or Reading({}, f"{each.path}.{kind}")
        for each, kind in zip(headers, kinds, strict=True)
    ]
    for each in headers:
        each.end()
    version = 4 if kinds[1] == "ipv4" else 6
    size = told.inner("size")
    frame_size = _LEAST_BYTES
    if size:
        size.chosen("fixed")
        frame_size = int(_number(size.needed("fixed"), size.path))
        size.end()
    ethernet, ip, udp = inner
    vary: list[FieldVariation] = []
    keys: Json = {
        "src_mac": _fixed(ethernet, "src"),
        "dst_mac": _fixed(ethernet, "dst"),
        "src_ip": _address(ip, "src", version, vary),
        "dst_ip": _address(ip, "dst", version, vary),
        "src_port": _port(udp, "src_port", vary),
        "dst_port": _port(udp, "dst_port", vary),
    }
    if _fixed(ethernet, "ether_type") not in (None, *_ETHER_TYPES):
        raise _refused(f"{ethernet.path}.ether_type", "is another than the packet's")
    if version == 4:
        keys["ttl"] = int(_fixed(ip, "time_to_live") or 64)
        keys["df"] = bool(int(_fixed(ip, "dont_fragment") or 0))
        keys["dscp"] = _dscp(ip)
        for key in ("total_length", "header_checksum"):
            _check_good(ip, key)
    else:
        keys["ttl"] = int(_fixed(ip, "hop_limit") or 64)
        keys["flow_label"] = int(_fixed(ip, "flow_label") or 0)
        keys["dscp"] = _without_ecn(ip, int(_fixed(ip, "traffic_class") or 0))
        _check_good(ip, "payload_length")
    for key in ("length", "checksum"):
        _check_good(udp, key)
    for each in inner:
        each.end()
    return FrameTemplate(
        frame_size=frame_size,
        ip_version=4 if version == 4 else 6,
        vary=tuple(vary),
        **keys,
    )


def _check_good(of: Reading, key: str) -> None:
    pattern = of.inner(key)
    if pattern is None:
        return
    if pattern.chosen(*_GOOD) == "generated" and pattern.take("generated") != "good":
        raise _refused(pattern.path, "a bad one is not there")
    pattern.take("auto")
    pattern.end()


def _without_ecn(ip: Reading, octet: int) -> int:
    if octet & 3:
        raise _refused(ip.path, "has ECN bits, which are sent as 00")
    return octet >> 2


def _dscp(ip: Reading) -> int:
    priority = ip.inner("priority")
    if priority is None:
        return 0
    if priority.chosen("dscp", "raw") == "raw":
        raw = int(_fixed(priority, "raw") or 0)
        priority.end()
        return _without_ecn(priority, raw)
    dscp = priority.inner("dscp")
    priority.end()
    found = int(_fixed(dscp, "phb") or 0) if dscp else 0
    if dscp:
        if _fixed(dscp, "ecn"):
            raise _refused(f"{dscp.path}.ecn", "is not there")
        dscp.end()
    return found


def _fixed(of: Reading, key: str) -> Any:  # noqa: ANN401 - of JSON
    """A pattern that has one value; None: it is left to the tester."""
    pattern = of.inner(key)
    if pattern is None:
        return None
    choice = pattern.chosen("value", "values", "auto")
    value, values = pattern.take("value"), pattern.take("values")
    pattern.take("auto")
    pattern.end()
    if choice == "auto":
        return None
    if choice == "values":
        if not isinstance(values, list) or len(values) != 1:
            raise _refused(f"{of.path}.{key}", "a list of several values")
        return values[0]
    return value


def _address(ip: Reading, key: str, version: int, vary: list[FieldVariation]) -> str:
    field: FieldName = "src_ip" if key == "src" else "dst_ip"
    found = _pattern(ip, key, field, 32 if version == 4 else 128, vary, _as_number)
    if found is None:
        raise _refused(f"{ip.path}.{key}", "is missing")
    return str(ipaddress.ip_address(found.to_bytes(4 if version == 4 else 16, "big")))


def _port(udp: Reading, key: str, vary: list[FieldVariation]) -> int:
    field: FieldName = "src_port" if key == "src_port" else "dst_port"
    found = _pattern(udp, key, field, 16, vary, int)
    if found is None:
        raise _refused(f"{udp.path}.{key}", "is missing")
    return found


def _as_number(told: object) -> int:
    return int(ipaddress.ip_address(str(told)))


def _pattern(
    of: Reading,
    key: str,
    field: FieldName,
    bits: int,
    vary: list[FieldVariation],
    read: Callable[[Any], int],
) -> int | None:
    """A field's first value; what it does then is added to ``vary``."""
    pattern = of.inner(key)
    if pattern is None:
        return None
    path = pattern.path
    try:
        choice = pattern.chosen("value", "values", "increment", "decrement", "random")
        if choice in ("value", "values"):
            value, values = pattern.take("value"), pattern.take("values")
            pattern.end()
            if choice == "value":
                return read(value)
            if not isinstance(values, list) or len(values) != 1:
                raise _refused(path, "a list of several values is not there")
            return read(values[0])
        inner = pattern.inner(choice)
        pattern.end()
        if inner is None:
            raise _refused(f"{path}.{choice}", "is missing")
        if choice == "random":
            first, varied = _random(inner, field, bits, read)
        else:
            first, varied = _counting(inner, choice, field, bits, read)
        inner.end()
    except ValueError as error:
        if isinstance(error, DutperfError):
            raise
        raise _refused(path, str(error)) from None
    vary.append(varied)
    return first


def _random(
    inner: Reading, field: FieldName, bits: int, read: Callable[[Any], int]
) -> tuple[int, FieldVariation]:
    least, most = read(inner.needed("min")), read(inner.needed("max"))
    count = int(inner.take("count", 1) or 1)
    inner.take("seed")
    width = min(bits, 32)
    if least >> width != most >> width or least > most:
        raise _refused(
            inner.path, "min and max differ in more than 32 bits, or are none"
        )
    if count < most - least + 1:
        raise _refused(
            f"{inner.path}.count",
            f"{count} random values that come again are not there",
            f"{most - least + 1} or more: each packet draws its own",
        )
    mask = (1 << width) - 1
    return least, FieldVariation(
        field=field,
        offset=bits - width,
        width=width,
        min=least & mask,
        max=most & mask,
        mode="random",
    )


def _counting(
    inner: Reading, choice: str, field: FieldName, bits: int, read: Callable[[Any], int]
) -> tuple[int, FieldVariation]:
    start, step = read(inner.needed("start")), read(inner.take("step") or 1)
    count = int(inner.take("count", 1) or 1)
    if step < 1 or step & (step - 1):
        raise _refused(f"{inner.path}.step", "must be a power of two")
    low = step.bit_length() - 1
    first = start >> low
    last = first + count - 1 if choice == "increment" else first - count + 1
    least, most = sorted((first, last))
    width = min(32, bits - low)
    if least < 0 or least >> width != most >> width or most >> (bits - low):
        raise _refused(inner.path, "goes beyond the field, or over more than 32 bits")
    mask = (1 << width) - 1
    return start, FieldVariation(
        field=field,
        offset=bits - low - width,
        width=width,
        min=least & mask,
        max=most & mask,
        mode=_MODES[choice],
    )


# The server: one configuration, one trial at a time.


class OtgTester:
    """What the server's methods do; one call at a time."""

    def __init__(self, tester: Tester) -> None:
        self._background = Background(tester)
        self._told: Json = {}
        self._ports: dict[str, str] = {}
        self._flows: list[Flow] = []
        self._lock = threading.Lock()

    def configure(self, told: object) -> Json:
        """``POST /config``: all of it is read before anything of it counts."""
        with self._lock:
            whole = Reading(told, "config")
            ports = {str(p.needed("name")): _side(p) for p in whole.each("ports")}
            flows = [Flow(each, ports) for each in whole.each("flows")]
            whole.take("options")
            whole.end()
            _check(flows)
            self._background.stop()
            self._background.trials.clear()
            self._told = dict(told) if isinstance(told, Mapping) else {}
            self._ports, self._flows = ports, flows
        return {"warnings": []}

    def end(self) -> None:
        """Send no more."""
        self._background.stop()

    def configured(self) -> Json:
        """``GET /config``."""
        return self._told

    def control(self, told: object) -> Json:
        """``POST /control/state``."""
        whole = Reading(told, "state")
        whole.chosen("traffic")
        traffic = whole.inner("traffic")
        whole.end()
        if traffic is None:
            raise _refused("state.traffic", "is missing")
        traffic.chosen("flow_transmit")
        transmit = traffic.inner("flow_transmit")
        traffic.end()
        if transmit is None:
            raise _refused("state.traffic.flow_transmit", "is missing")
        state, names = transmit.needed("state"), transmit.take("flow_names")
        transmit.end()
        with self._lock:
            if state == "stop":
                self._background.stop()
            elif state == "start":
                self._start(names)
            else:
                raise _refused(transmit.path, f"{state!r} is not there", "start, stop")
        return {"warnings": []}

    def _start(self, names: Sequence[str] | None) -> None:
        known = {flow.name for flow in self._flows}
        if names and set(names) != known:
            raise _refused(
                "state.traffic.flow_transmit.flow_names",
                "some of the flows alone are not there",
                "leave it out: all start at once",
            )
        if not self._flows:
            raise _refused("config.flows", "there is none")
        if self._background.is_active:
            raise _refused("state", "traffic is active", "stop it first")
        asked = {
            way: Load([flow.template for flow in flows], 1)
            for way, flows in self._by_way().items()
        }
        self._background.trials.clear()  # metrics are those of the last one
        self._background.start(asked, self._ready)

    def _by_way(self) -> dict[DirectionName, list[Flow]]:
        found: dict[DirectionName, list[Flow]] = {}
        for flow in self._flows:
            found.setdefault(_SIDES[flow.side], []).append(flow)
        return found

    def _ready(self, frames: OpenFrames) -> tuple[Loads, float | None]:
        line_bps = frames.max_rate_fps * (_LEAST_BYTES + _GAP) * 8.0
        loads: dict[DirectionName, Load] = {}
        times: set[Fraction | None] = set()
        for way, flows in self._by_way().items():
            rates = [
                Fraction(flow.rate_fps(line_bps)).limit_denominator(10**6)
                for flow in flows
            ]
            total = sum(rates)
            if total < 1:
                raise _refused("config.flows", "less than a packet a second of a port")
            share = (rates[0] / total).as_integer_ratio()
            templates = [flow.template for flow in flows]
            loads[way] = Load(templates, round(total), share=share)
            for flow, rate in zip(flows, rates, strict=True):
                times.add(_lasts(flow, rate))
        if len(times) > 1:
            raise _refused("config.flows", "do not end at the same time")
        lasts = times.pop()
        return loads, None if lasts is None else float(lasts)

    def metrics(self, told: object) -> Json:
        """``POST /monitor/metrics``."""
        whole = Reading(told, "metrics")
        choice = whole.chosen("flow", "port")
        asked = whole.inner(choice) or Reading({}, f"metrics.{choice}")
        wanted = set(asked.take(f"{choice}_names") or [])
        for key in ("metric_names", "column_names", "tagged_metrics"):
            asked.take(key)
        asked.end()
        whole.end()
        with self._lock:
            trial = self._ended()
            rows = self._of_flows(trial) if choice == "flow" else self._of_ports(trial)
            found = [row for row in rows if not wanted or row["name"] in wanted]
        return {"choice": f"{choice}_metrics", f"{choice}_metrics": found}

    def _ended(self) -> Trial | None:
        """The last trial; an error if it tells nothing, rather than its counts."""
        if self._background.is_active:
            return None
        self._background.join()
        trials = self._background.trials
        if trials and (reasons := why_invalid(trials[-1])):
            raise InputError(
                "OTG: the trial tells nothing of the device: "
                + "; ".join(reason.message for reason in reasons)
            )
        return trials[-1] if trials else None

    def _of_flows(self, trial: Trial | None) -> Iterator[Json]:
        active = self._background.is_active
        for way, flows in self._by_way().items():
            streams = _streams(trial, way)
            for number, flow in enumerate(flows):
                if not flow.counted:
                    continue
                told = {
                    "name": flow.name,
                    "port_tx": flow.tx,
                    "port_rx": flow.rx,
                    "transmit": "started" if active else "stopped",
                }
                if trial and streams:
                    told |= _counts(
                        streams[number], flow.template.frame_size, trial.duration_s
                    )
                yield told

    def _of_ports(self, trial: Trial | None) -> Iterator[Json]:
        active = self._background.is_active
        for name, side in self._ports.items():
            found: Json = {
                "name": name,
                "location": side,
                "link": "up",
                "capture": "stopped",
                "transmit": "started" if active else "stopped",
            }
            for key, of in (("tx", side), ("rx", _OTHER[side])):
                flows = self._by_way().get(_SIDES[of], [])
                streams = _streams(trial, _SIDES[of]) if flows else []
                frames, size_bytes = 0, 0
                for stream, flow in zip(streams, flows, strict=False):
                    count = stream.sent if key == "tx" else _came(stream)
                    frames += count
                    size_bytes += count * flow.template.frame_size
                seconds = trial.duration_s if trial else 1.0
                found |= {
                    f"frames_{key}": frames,
                    f"bytes_{key}": size_bytes,
                    f"frames_{key}_rate": frames / seconds,
                    f"bytes_{key}_rate": size_bytes / seconds,
                }
            yield found


def _side(port: Reading) -> str:
    location = port.needed("location")
    port.end()
    if location not in _SIDES:
        raise _refused(f"{port.path}.location", f"{location!r}", "left or right")
    return str(location)


def _check(flows: Sequence[Flow]) -> None:
    if len({flow.name for flow in flows}) < len(flows):
        raise _refused("config.flows", "two have the same name")
    for side in _SIDES:
        own = [flow for flow in flows if flow.side == side]
        if len(own) > _MOST_FLOWS:
            raise _refused(
                own[_MOST_FLOWS].path, f"is flow {len(own)} of a port", "two at most"
            )


def _lasts(flow: Flow, rate: Fraction) -> Fraction | None:
    if flow.packets is not None:
        return Fraction(flow.packets) / rate
    return None if flow.seconds is None else Fraction(flow.seconds)


def _streams(trial: Trial | None, way: DirectionName) -> Sequence[StreamResult]:
    if trial is None:
        return ()
    for direction in trial.record.result.directions:
        if direction.name == way:
            return direction.streams
    return ()


def _came(stream: StreamResult) -> int:
    return stream.received + stream.duplicate


def _counts(stream: StreamResult, frame_size: int, seconds: float) -> Json:
    came = _came(stream)
    found: Json = {
        "frames_tx": stream.sent,
        "frames_rx": came,
        "bytes_tx": stream.sent * frame_size,
        "bytes_rx": came * frame_size,
        "frames_tx_rate": stream.sent / seconds,
        "frames_rx_rate": came / seconds,
        "loss": 100 * stream.lost / stream.sent if stream.sent else 0.0,
    }
    if stream.delay_ns.min is not None and stream.delay_ns.max is not None:
        found["latency"] = {
            "minimum_ns": float(stream.delay_ns.min),
            "maximum_ns": float(stream.delay_ns.max),
        }
    return found


def serve_otg(where: str, port: int, tell: Callable[[str], None]) -> None:
    """Serve on this machine alone, until a signal ends it.

    Args:
        where: the file of a testbed, ``lab:NAME`` or ``simulated:FPS``.
        port: 0 takes a free one.
        tell: is told the address, with a token: what snappi's ``location`` is.

    Raises:
        InputError, SetupError: it is no such place, or the port cannot be had.
    """
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    with listen("127.0.0.1", port) as listening, tester_at(where) as tester:
        own = OtgTester(tester)
        tell(f"http://127.0.0.1:{listening.getsockname()[1]}/{token}")
        try:
            uvicorn.Server(settings(make_app(own, token))).run(sockets=[listening])
        finally:
            own.end()


def make_app(own: OtgTester, token: str) -> Starlette:
    """The server; below ``/token`` alone, so that nobody else has it measure."""

    def posting(do: Callable[[object], Json]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            body = await request.body()
            if len(body) > _MOST_BODY_BYTES:
                return _error(413, ["the body is too long"])
            try:
                told = await request.json()
            except ValueError:
                return _error(400, ["the body is no JSON"])
            return await _done(lambda: do(told))

        return answer

    async def config(_request: Request) -> Response:
        return await _done(own.configured)

    async def version(_request: Request) -> Response:
        return JSONResponse({"app_version": __version__})

    routes = [
        ("/config", posting(own.configure), "POST"),
        ("/config", config, "GET"),
        ("/control/state", posting(own.control), "POST"),
        ("/monitor/metrics", posting(own.metrics), "POST"),
        ("/capabilities/version", version, "GET"),
    ]
    return Starlette(
        routes=[
            Route(f"/{token}{path}", answer, methods=[method])
            for path, answer, method in routes
        ]
    )


async def _done(do: Callable[[], Json]) -> Response:
    try:
        return JSONResponse(await run_in_threadpool(do))
    except DutperfError as error:
        code = 400 if isinstance(error, InputError) else 500
        return _error(code, list(filter(None, (error.message, error.hint))))


def _error(code: int, errors: list[str]) -> Response:
    kind = "validation" if code < 500 else "internal"
    return JSONResponse(
        {"code": code, "kind": kind, "errors": errors}, status_code=code
    )
