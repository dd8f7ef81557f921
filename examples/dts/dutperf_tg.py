"""dutperf as a traffic generator of DTS (DPDK's ``dts/``, since 25.11).

Copy this file to ``dts/framework/testbed_model/traffic_generator/dutperf_tg.py``, and
have ``create_traffic_generator`` there return it for its configuration. The node of the
traffic generator has dutperf installed, and a file of its testbed:

    traffic_generator_type: DUTPERF
    server: /etc/dutperf/testbed.yaml
    as_udp: true
"""

import json
from typing import Any

from framework.remote_session.python_shell import PythonShell
from framework.testbed_model.node import Node
from framework.testbed_model.topology import Topology
from framework.testbed_model.traffic_generator.performance_traffic_generator import (
    PerformanceTrafficGenerator,
    PerformanceTrafficStats,
)
from scapy.packet import Packet

_NO_MAC = "00:00:00:00:00:00"


class DutperfTrafficGenerator(PerformanceTrafficGenerator):
    """Has dutperf measure on the node of the traffic generator."""

    def __init__(self, tg_node: Node, config: Any) -> None:  # noqa: ANN401
        """Args as of every traffic generator of DTS; ``config`` has the keys above."""
        super().__init__(tg_node=tg_node, config=config)
        self._server, self._as_udp = config.server, config.as_udp

    def setup(self, topology: Topology) -> None:
        """Open a Python shell there, and the testbed in it."""
        super().setup(topology)
        self._shell = PythonShell(self._tg_node, "dutperf", privileged=True)
        self._shell.start_application()
        self._shell.send_command("import json")
        self._shell.send_command("from dutperf.adapters.dts import Generator")
        made = f"Generator({self._server!r}, as_udp={self._as_udp!r})"
        self._shell.send_command(f"generator = {made}.__enter__()")

    def calculate_traffic_and_stats(
        self, packet: Packet, duration: float, send_mpps: int | None = None
    ) -> PerformanceTrafficStats:
        """The packet from both ports; what was sent and what came back."""
        copy, named = packet.copy(), []
        for key, name in (("src", "src_mac"), ("dst", "dst_mac")):
            if packet.fields.get(key) is None:
                setattr(copy, key, _NO_MAC)  # else Scapy asks this machine's links
            else:
                named.append(name)
        frame = bytes(copy)
        told = self._shell.send_command(
            f"print(json.dumps(generator.trial(bytes.fromhex({frame.hex()!r}), "
            f"{duration!r}, {send_mpps!r}, named={tuple(named)!r})))"
        )
        lines = [line for line in told.splitlines() if line.startswith("{")]
        if not lines:
            raise RuntimeError(f"dutperf did not measure: {told}")
        return PerformanceTrafficStats(**json.loads(lines[-1]))

    def close(self) -> None:
        """Take down what was opened."""
        self._shell.send_command("generator.__exit__()")
        self._shell.close()
