"""UDP from random ports both ways, in the manner of TRex's stl_* examples.

python stl_udp_both_ways.py                     # a simulated device
python stl_udp_both_ways.py lab:linux-router    # a lab (root)
python stl_udp_both_ways.py testbed.yaml
"""

import sys

from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from dutperf.adapters.stl import (
    STLVM,
    STLClient,
    STLFlowLatencyStats,
    STLPktBuilder,
    STLStream,
    STLTXCont,
)


def stream(src: str, dst: str, pg_id: int) -> STLStream:
    """Of small packets, with their delays."""
    vm = STLVM()
    vm.var("port", min_value=1024, max_value=65535, size=2, op="random")
    vm.write("port", "UDP.sport")
    vm.fix_chksum()
    packet = Ether() / IP(src=src, dst=dst) / UDP(dport=7) / Raw(b"x" * 18)
    return STLStream(
        packet=STLPktBuilder(pkt=packet, vm=vm),
        mode=STLTXCont(pps=1000),
        flow_stats=STLFlowLatencyStats(pg_id=pg_id),
    )


client = STLClient(server=sys.argv[1] if len(sys.argv) > 1 else "simulated:120000")
client.connect()
try:
    client.reset(ports=[0, 1])
    client.add_streams(stream("198.18.0.2", "198.19.0.2", 1), ports=[0])
    client.add_streams(stream("198.19.0.2", "198.18.0.2", 2), ports=[1])
    client.start(ports=[0, 1], mult="10kpps", duration=2)
    client.wait_on_traffic(ports=[0, 1])
    stats = client.get_stats()
    for port in (0, 1):
        lost = stats[port]["opackets"] - stats[1 - port]["ipackets"]
        delays = stats["latency"][port + 1]["latency"]
        print(
            f"port {port}: {stats[port]['opackets']:,} packets, lost {lost:,}, "
            f"at most {delays['total_max']:.0f} us"
        )
finally:
    client.disconnect()
