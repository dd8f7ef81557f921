"""DTS's performance traffic generator: its class against the interface that DTS has."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import sys
import types
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from dutperf.adapters.dts import Generator
from dutperf.errors import InputError, SetupError

Opener = Callable[..., Any]
CLASS = Path(__file__).parents[2] / "examples" / "dts" / "dutperf_tg.py"
FPS = 120_000


def dts_packet(frame_size: int = 64) -> Packet:
    """As its single_core_forward_perf makes it: IP, and nothing that it carries."""
    head = Ether(src="52:00:00:00:00:00") / IP(src="1.2.3.4", dst="192.18.1.0")
    return head / Raw(load="x" * (frame_size - 34))


class TrafficGenerator(ABC):
    """The facts of DTS's: what it is made of, and what it calls."""

    def __init__(self, tg_node: object, config: object) -> None:
        self._tg_node, self._config = tg_node, config
        self.was_set_up = False

    def setup(self, topology: object) -> None:
        del topology
        self.was_set_up = True

    @abstractmethod
    def close(self) -> None: ...


class PerformanceTrafficGenerator(TrafficGenerator):
    @abstractmethod
    def calculate_traffic_and_stats(
        self, packet: Packet, duration: float, send_mpps: int | None = None
    ) -> PerformanceTrafficStats: ...


@dataclass(slots=True)
class PerformanceTrafficStats:
    tx_pps: float
    tx_bps: float
    rx_pps: float
    rx_bps: float
    frame_size: int | None = None


class PythonShell:
    """Does here what it would do on the node: each line in one interpreter."""

    def __init__(self, node: object, name: str, *, privileged: bool) -> None:
        assert node == "node"
        assert (name, privileged) == ("dutperf", True)
        self._names: dict[str, Any] = {}
        self.open = False

    def start_application(self) -> None:
        self.open = True

    def send_command(self, line: str) -> str:
        assert self.open
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            try:
                exec(line, self._names)  # noqa: S102 - what a shell is for
            except Exception as error:  # noqa: BLE001 - which it prints
                said.write(f"{type(error).__name__}: {error}\n")
        return f"{line}\n{said.getvalue()}"

    def close(self) -> None:
        self.open = False


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> Opener:
    """The class, with DTS's modules around it."""
    at = "framework.testbed_model.traffic_generator.performance_traffic_generator"
    names: dict[str, dict[str, object]] = {
        "framework.remote_session.python_shell": {"PythonShell": PythonShell},
        "framework.testbed_model.node": {"Node": object},
        "framework.testbed_model.topology": {"Topology": object},
        at: {
            "PerformanceTrafficGenerator": PerformanceTrafficGenerator,
            "PerformanceTrafficStats": PerformanceTrafficStats,
        },
    }
    for name, attributes in names.items():
        parts = name.split(".")
        for end in range(1, len(parts) + 1):
            part = ".".join(parts[:end])
            if part not in sys.modules:
                monkeypatch.setitem(sys.modules, part, types.ModuleType(part))
        for key, value in attributes.items():
            setattr(sys.modules[name], key, value)
    spec = importlib.util.spec_from_file_location("dutperf_tg", CLASS)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: Opener = module.DutperfTrafficGenerator
    return made


def opened(loaded: Opener, *, as_udp: bool = True) -> Any:  # noqa: ANN401 - DTS's
    config = SimpleNamespace(server=f"simulated:{FPS}", as_udp=as_udp)
    generator = loaded("node", config)
    generator.setup(topology=None)
    assert generator.was_set_up
    return generator


def test_dts_gets_what_its_own_suite_asks_for(loaded: Opener) -> None:
    """At a rate that the device forwards, and at the line's, which it does not."""
    generator = opened(loaded)
    stats = generator.calculate_traffic_and_stats(dts_packet(60), 2, 0.05)
    assert isinstance(stats, PerformanceTrafficStats)
    assert stats.tx_pps == stats.rx_pps == 100_000
    assert (stats.frame_size, stats.rx_bps) == (60, 100_000 * 60 * 8)
    stats = generator.calculate_traffic_and_stats(packet=dts_packet(1514), duration=1)
    assert stats.tx_pps == pytest.approx(2 * 812_743, abs=4)
    assert stats.rx_pps == pytest.approx(2 * FPS, rel=0.01)
    generator.close()


def test_a_packet_that_is_none_is_told_in_dts(loaded: Opener) -> None:
    generator = opened(loaded, as_udp=False)
    with pytest.raises(RuntimeError, match="is of IP protocol 0"):
        generator.calculate_traffic_and_stats(dts_packet(), 1, 0.01)


@pytest.mark.parametrize(
    ("packet", "as_udp", "told"),
    [
        (dts_packet(), False, "IP protocol 0"),
        (Ether() / IP() / TCP() / Raw(b"x" * 40), True, "IP protocol 6"),
        (dts_packet(50), True, "bytes of payload"),
    ],
)
def test_what_cannot_be_sent_exactly_is_refused(
    packet: Packet, as_udp: bool, told: str
) -> None:
    packet.src = packet.dst = "02:00:00:00:00:01"
    with (
        Generator(f"simulated:{FPS}", as_udp=as_udp) as generator,
        pytest.raises(InputError, match=told),
    ):
        generator.trial(bytes(packet), 1, 0.01)


def test_a_trial_that_tells_nothing_is_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    from dutperf.simulation import fake_engine
    from dutperf.simulation.fake_engine import FakeEngine, perfect

    slow = FakeEngine(perfect(), tester_limit_fps=10_000)
    monkeypatch.setattr(fake_engine, "FakeEngine", lambda _device: slow)
    packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IP() / UDP()
    with (
        Generator(f"simulated:{FPS}") as generator,
        pytest.raises(SetupError, match="tells nothing"),
    ):
        generator.trial(bytes(packet / Raw(b"x" * 18)), 1, 0.1)
