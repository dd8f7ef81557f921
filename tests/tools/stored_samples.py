"""Small valid values to store."""

from __future__ import annotations

from pathlib import Path

from told_cells import cell_of

from dutperf.protocol.methods import HelloResult
from dutperf.protocol.port_messages import PortCounters, PortsResult, PortStatus
from dutperf.protocol.result_messages import TrialResult, Verdict
from dutperf.protocol.stream_messages import GENERATOR, DirectionRequest, StreamRequest
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import CellResult, RepeatResult, ResultsFile, TrialRecord

STORED = Path(__file__).parents[1] / "results" / "stored"
"""A run as it was stored: throughput, and frame loss of a mix."""


def trial_record(number: int = 1) -> TrialRecord:
    stream = StreamRequest(
        id=1,
        ip_version=4,
        frame_sizes=[64],
        received_frame_sizes=[64],
        src_ip="198.18.0.2",
        dst_ip="198.19.0.2",
        next_hop="198.18.0.1",
    )
    return TrialRecord(
        number=number,
        cell="throughput-ip4-64-both",
        repeat=1,
        attempt=1,
        load_fps=1000,
        started_at="2026-03-04T05:06:07+00:00",
        request=TrialRequest(
            trial_id=number,
            duration_ns=1_000_000_000,
            directions=[
                DirectionRequest(name="forward", rate_fps=1000, streams=[stream])
            ],
        ),
        result=TrialResult(
            trial_id=number,
            verdict=Verdict(kind="pass"),
            directions=[],
            ports=[],
            neighbours=[],
            generator=GENERATOR,
            total_ns=0,
            overhead_ns=0,
        ),
    )


def results_file(trials: int = 1) -> ResultsFile:
    cell = CellResult(
        id="throughput-ip4-64-both",
        procedure="throughput",
        quantity="throughput",
        cell=cell_of("throughput", {"ip": 4, "frame_size": 64}),
        parameters={"ip": 4, "frame_size": 64},
        median=1000,
        unit="fps",
        repeats=[RepeatResult(value=1000, verdict="pass", trials=trials)],
        verdict="pass",
    )
    return ResultsFile(
        procedure="throughput",
        name="demo",
        created_at="2026-03-04T05:06:07+00:00",
        complete=True,
        cells=[cell],
        trials=[trial_record(n) for n in range(1, trials + 1)],
    )


def hello() -> HelloResult:
    return HelloResult(
        engine_version="0.1.0",
        dpdk_version="DPDK 22.11.11",
        protocol_version=2,
        tsc_hz=2_700_000_000,
        worker_cpus=[0],
        main_cpu=1,
        hugepages=True,
        memory_mb=512,
        drivers=["af_packet", "af_xdp"],
        clock_offset_ns=12,
    )


def ports() -> PortsResult:
    zero = PortCounters(
        rx_frames=0, tx_frames=0, rx_missed=0, rx_errors=0, rx_nombuf=0, tx_errors=0
    )
    port = PortStatus(
        name="left",
        driver="af_xdp",
        device="tl",
        mac="02:00:00:00:00:01",
        link_up=True,
        link_speed_mbps=10_000,
        full_duplex=True,
        flow_control="unknown",
        numa_node=None,
        mtu=1500,
        dpdk_name="net_af_xdp",
        counters=zero,
    )
    right = port.model_copy(update={"name": "right", "driver": "pci", "device": "0"})
    return PortsResult(ports=[port, right])
