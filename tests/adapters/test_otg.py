"""OTG by the package ``snappi``: the server, driven as its users drive it."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import snappi
import uvicorn

from dutperf.adapters.otg import OtgTester, make_app
from dutperf.api import InputError, Tester

FPS = 120_000
TOKEN = "own"  # noqa: S105 - of a server of this test alone


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port = listening.getsockname()[1]
        app = make_app(OtgTester(Tester(simulated_fps=FPS)), TOKEN)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{port}/{TOKEN}"
        server.should_exit = True
        thread.join(30)


@pytest.fixture
def api(address: str) -> Iterator[Any]:
    found = snappi.api(location=address, verify=False)
    yield found
    found._transport._session.close()


def configured(api: Any) -> Any:  # noqa: ANN401
    config = api.config()
    config.ports.port(name="p1", location="left").port(name="p2", location="right")
    return config


def flow(config: Any, name: str, tx: str, rx: str, **keys: Any) -> Any:  # noqa: ANN401
    made = config.flows.flow(name=name)[-1]
    made.tx_rx.port.tx_name, made.tx_rx.port.rx_names = tx, [rx]
    _, ip, udp = made.packet.ethernet().ipv4().udp()
    ip.src.value, ip.dst.value = "198.18.0.2", "198.19.0.2"
    udp.src_port.value, udp.dst_port.value = 1024, 7
    made.size.fixed = keys.get("size", 128)
    made.rate.pps = keys.get("pps", 1000)
    made.duration.fixed_packets.packets = keys.get("packets", 500)
    made.metrics.enable = True
    return made


def transmit(api: Any, state: str) -> None:  # noqa: ANN401
    asked = api.control_state()
    asked.traffic.flow_transmit.state = state
    api.set_control_state(asked)


def ended(api: Any) -> list[Any]:  # noqa: ANN401
    """Flow metrics, once nothing is sent any more."""
    asked = api.metrics_request()
    asked.flow.flow_names = []
    for _ in range(600):
        found = list(api.get_metrics(asked).flow_metrics)
        if all(each.transmit == "stopped" for each in found):
            return found
        time.sleep(0.05)
    raise AssertionError("it does not end")


def test_flows_of_both_ports_are_counted(api: Any) -> None:  # noqa: ANN401
    config = configured(api)
    flow(config, "there", "p1", "p2", pps=1000, packets=500)
    flow(config, "back", "p2", "p1", pps=2000, packets=1000)
    assert not api.set_config(config).warnings
    transmit(api, "start")
    there, back = sorted(ended(api), key=lambda each: str(each.port_tx))
    assert (there.frames_tx, there.frames_rx, back.frames_tx) == (500, 500, 1000)
    assert (there.bytes_tx, there.loss, there.port_rx) == (500 * 128, 0.0, "p2")
    assert there.frames_tx_rate == 1000
    asked = api.metrics_request()
    asked.port.port_names = ["p1"]
    (port,) = api.get_metrics(asked).port_metrics
    assert (port.frames_tx, port.frames_rx, port.link) == (500, 1000, "up")
    assert [each.name for each in api.get_config().flows] == ["there", "back"]


def test_what_the_device_loses_is_told(api: Any) -> None:  # noqa: ANN401
    config = configured(api)
    flow(config, "fast", "p1", "p2", pps=2 * FPS, packets=2 * FPS)
    api.set_config(config)
    transmit(api, "start")
    (fast,) = ended(api)
    assert fast.frames_tx == 2 * FPS
    assert fast.loss == pytest.approx(50, abs=0.5)


def asked_for(change: Callable[[Any], None], **keys: Any) -> OtgTester:  # noqa: ANN401
    """A server in this process with one flow, changed by hand."""
    config = configured(snappi.Api())
    made = flow(config, "f", "p1", "p2", **keys)
    change(made)
    tester = OtgTester(Tester(simulated_fps=FPS))
    tester.configure(json.loads(config.serialize()))
    return tester


def variations(change: Callable[[Any], None]) -> list[tuple[Any, ...]]:
    (only,) = asked_for(change)._flows
    return [
        (v.field, v.offset, v.width, v.min, v.max, v.mode) for v in only.template.vary
    ]


def test_fields_vary_as_patterns_say() -> None:
    def change(made: Any) -> None:  # noqa: ANN401
        ip, udp = made.packet[1], made.packet[2]
        ip.src.increment.start, ip.src.increment.step = "10.0.0.1", "0.0.1.0"
        ip.src.increment.count = 10
        ip.dst.decrement.start, ip.dst.decrement.step = "10.1.0.9", "0.0.0.1"
        ip.dst.decrement.count = 9
        udp.src_port.random.min, udp.src_port.random.max = 1024, 65535
        udp.src_port.random.count = 64512

    assert variations(change) == [
        ("src_ip", 0, 24, 0x0A0000, 0x0A0009, "increasing"),
        ("dst_ip", 0, 32, 0x0A010001, 0x0A010009, "decreasing"),
        ("src_port", 0, 16, 1024, 65535, "random"),
    ]
    (only,) = asked_for(change)._flows
    assert (only.template.src_ip, only.template.dst_ip) == ("10.0.0.1", "10.1.0.9")


def test_headers_are_kept() -> None:
    def change(made: Any) -> None:  # noqa: ANN401
        ethernet, ip = made.packet[0], made.packet[1]
        ethernet.dst.value = "02:00:00:00:00:09"
        ip.priority.dscp.phb.value, ip.time_to_live.value = 46, 9
        ip.dont_fragment.value = 1

    (only,) = asked_for(change, size=512)._flows
    sent = only.template
    assert (sent.dst_mac, sent.src_mac) == ("02:00:00:00:00:09", None)
    assert sent.frame_size == 512
    assert (sent.dscp, sent.ttl, sent.df) == (46, 9, True)


def _vlan(made: Any) -> None:  # noqa: ANN401
    made.packet.vlan()


def _random(made: Any) -> None:  # noqa: ANN401
    pattern = made.packet[2].src_port.random
    pattern.min, pattern.max, pattern.count = 1, 100, 5


def _step(made: Any) -> None:  # noqa: ANN401
    pattern = made.packet[2].src_port.increment
    pattern.start, pattern.step, pattern.count = 1, 3, 5


def _beyond(made: Any) -> None:  # noqa: ANN401
    pattern = made.packet[2].src_port.increment
    pattern.start, pattern.step, pattern.count = 65535, 1, 2


def _values(made: Any) -> None:  # noqa: ANN401
    made.packet[2].dst_port.values = [1, 2]


def _sizes(made: Any) -> None:  # noqa: ANN401
    made.size.random.min, made.size.random.max = 64, 128


def _burst(made: Any) -> None:  # noqa: ANN401
    made.duration.burst.bursts = 2


def _checksum(made: Any) -> None:  # noqa: ANN401
    made.packet[2].checksum.generated = "bad"


def _timestamps(made: Any) -> None:  # noqa: ANN401
    made.metrics.timestamps = True


def _same_port(made: Any) -> None:  # noqa: ANN401
    made.tx_rx.port.rx_names = ["p1"]


@pytest.mark.parametrize(
    ("change", "where"),
    [
        (_vlan, "packet[3]"),
        (_random, "src_port.random.count"),
        (_step, "src_port.increment.step"),
        (_beyond, "src_port.increment"),
        (_values, "dst_port"),
        (_sizes, "size"),
        (_burst, "duration"),
        (_checksum, "checksum"),
        (_timestamps, "metrics.timestamps"),
        (_same_port, "tx_rx.port"),
    ],
)
def test_what_cannot_be_done_exactly_is_refused_by_its_path(
    change: Callable[[Any], None], where: str
) -> None:
    with pytest.raises(InputError) as refused:
        asked_for(change)
    assert where in refused.value.where


@pytest.mark.parametrize(
    ("told", "where"),
    [
        (5, "config"),
        ({"devices": [{"name": "d"}]}, "config.devices"),
        ({"ports": [{"name": "p", "location": "eth0"}]}, "ports[0].location"),
        ({"flows": [{"name": "f"}]}, "flows[0].tx_rx"),
    ],
)
def test_configurations_that_are_none_are_refused(told: object, where: str) -> None:
    with pytest.raises(InputError) as refused:
        OtgTester(Tester(simulated_fps=FPS)).configure(told)
    assert where in refused.value.where


def test_a_refused_configuration_leaves_the_one_before() -> None:
    tester = asked_for(lambda _made: None)
    before = tester.configured()
    with pytest.raises(InputError):
        tester.configure({"flows": [{}]})
    assert tester.configured() is before


@pytest.mark.parametrize("path", ["", "/other", "/own/../other"])
def test_without_its_token_nobody_is_heard(address: str, path: str) -> None:
    base = address.removesuffix(f"/{TOKEN}")
    for url in (f"{base}{path}/config", f"{base}{path}/control/state"):
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(url, data=b"{}"))  # noqa: S310
        assert refused.value.code == 404
        refused.value.close()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"5"])
def test_a_body_that_is_none_is_an_error_of_its_sender(
    address: str, body: bytes
) -> None:
    asked = urllib.request.Request(f"{address}/config", data=body)  # noqa: S310
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(asked)  # noqa: S310
    assert refused.value.code == 400
    with refused.value:
        assert json.load(refused.value)["kind"] == "validation"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_traffic_and_the_server(number: int) -> None:
    command = [sys.executable, "-m", "dutperf", "serve", "--otg", "simulated:1000"]
    with subprocess.Popen(
        [*command, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        assert server.stdout
        (address,) = re.findall(r"http://\S+", server.stdout.readline())
        own = snappi.api(location=address, verify=False)
        config = configured(own)
        flow(config, "there", "p1", "p2")
        config.flows[0].duration.continuous  # noqa: B018 - it is chosen by that
        own.set_config(config)
        transmit(own, "start")
        own._transport._session.close()
        server.send_signal(number)
        said, _ = server.communicate(timeout=60)
        assert "Traceback" not in said
    assert server.returncode in (0, 130, 143, -number)
