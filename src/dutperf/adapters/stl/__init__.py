"""The stateless part of TRex's Python interface, over dutperf's engine.

    from dutperf.adapters.stl import *

    client = STLClient(lab="linux-router")
    client.connect()
    client.reset(ports=[0, 1])
    client.add_streams(STLStream(packet=STLPktBuilder(pkt=...), mode=...), ports=[0])
    client.start(ports=[0], mult="10kpps", duration=5)
    client.wait_on_traffic(ports=[0])
    print(client.get_stats()[1]["ipackets"])

Names and meanings are those that TRex documents; port 0 is the tester's left side, port
1 its right one. What cannot be done exactly is an error that names it: docs/python.md
says what that is.
"""

from __future__ import annotations

from dutperf.adapters.stl.client import STLClient, STLError
from dutperf.adapters.stl.streams import (
    STLVM,
    STLFlowLatencyStats,
    STLFlowStats,
    STLPktBuilder,
    STLProfile,
    STLScVmRaw,
    STLStream,
    STLTXCont,
    STLTXSingleBurst,
    STLVmFixIpv4,
    STLVmFlowVar,
    STLVmWrFlowVar,
)

__all__ = [
    "STLVM",
    "STLClient",
    "STLError",
    "STLFlowLatencyStats",
    "STLFlowStats",
    "STLPktBuilder",
    "STLProfile",
    "STLScVmRaw",
    "STLStream",
    "STLTXCont",
    "STLTXSingleBurst",
    "STLVmFixIpv4",
    "STLVmFlowVar",
    "STLVmWrFlowVar",
]
