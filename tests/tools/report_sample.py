"""A made-up run of four cells through a made-up router that loses above its capacity.

Test data only: plausible numbers, built from the models so that they stay valid.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal

from delay_sample import NOTHING, evenly, histogram, series, two_modes
from told_cells import cell_of

from dutperf.catalogue import ProcedureName
from dutperf.protocol.base import (
    DirectionName,
    IpVersion,
    Side,
    line_rate_fps,
    wire_mbps,
)
from dutperf.protocol.port_messages import PortCounters
from dutperf.protocol.result_messages import (
    DirectionResult,
    Histogram,
    PortReport,
    Reason,
    Series,
    StreamResult,
    TrialResult,
    Verdict,
    VerdictKind,
)
from dutperf.protocol.stream_messages import GENERATOR, DirectionRequest, StreamRequest
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import (
    CellResult,
    Environment,
    LoadPoint,
    Media,
    PortRecord,
    RepeatResult,
    ResultsDirectory,
    ResultsFile,
    TrialRecord,
    spread_of,
)
from dutperf.results.rate_results import WireRate
from dutperf.standards import Conformance, Deviation

CREATED = "2026-03-04T09:30:00+00:00"
DEVICE = "Linux 6.1 router, two veth ports, one core <b>&</b> no tuning"
MAXIMUM_FPS = 500_000
_WAYS: tuple[DirectionName, ...] = ("forward", "reverse")
LAG_BUCKETS = [(0, 511, 880_000), (512, 1023, 110_000), (1024, 8191, 9_950)]
BEHIND = Reason(
    code="sender_behind",
    message="the sender fell 14.2 ms behind its schedule",
    hint="use more cores, or a lower max_rate_fps",
)
LOST = Reason(code="frames_lost", message="the DUT lost frames")
SHORT = Deviation(
    rfc="RFC 2544 24",
    requirement="trials of at least 60 s",
    actual="trials of 1 s",
    level="SHOULD",
)
RESTABILISE = Deviation(
    rfc="RFC 2544 23",
    requirement="at least 5 s between trials",
    actual="0.1 s between trials",
    level="text",
)
CONDITIONAL = Conformance(
    rfc="RFC 2544",
    section="26.1",
    status="conditional",
    statement="conditionally compliant with RFC 2544 26.1: every MUST is met",
)


def trial(
    number: int,
    cell: str,
    load_fps: int,
    verdict: VerdictKind,
    *,
    ip: IpVersion = 4,
    frame_size: int = 64,
    repeat: int = 1,
    attempt: int = 1,
    lost: int = 0,
    procedure: ProcedureName = "throughput",
) -> TrialRecord:
    ways: tuple[DirectionName, ...] = _WAYS
    sides: tuple[Side, ...] = ("left", "right")
    reasons = {"pass": [], "fail": [LOST], "invalid": [BEHIND]}[verdict]
    return TrialRecord(
        number=number,
        cell=cell,
        procedure=procedure,
        repeat=repeat,
        attempt=attempt,
        load_fps=load_fps,
        started_at=CREATED,
        request=TrialRequest(
            trial_id=number,
            duration_ns=1_000_000_000,
            directions=[_request(way, load_fps, ip, frame_size) for way in ways],
        ),
        result=TrialResult(
            trial_id=number,
            verdict=Verdict(kind=verdict, reasons=reasons),
            directions=[_result(way, load_fps, lost) for way in ways],
            ports=[port_report(side) for side in sides],
            neighbours=[],
            generator=GENERATOR,
            total_ns=3_100_000_000,
            overhead_ns=40_000_000,
        ),
    )


def _request(
    way: DirectionName, load_fps: int, ip: IpVersion, frame_size: int
) -> DirectionRequest:
    left, right = (
        ("198.18.0.2", "198.19.0.2") if ip == 4 else ("2001:2::2", "2001:2:0:8000::2")
    )
    source, target = (left, right) if way == "forward" else (right, left)
    stream = StreamRequest(
        id=1 if way == "forward" else 2,
        ip_version=ip,
        frame_sizes=[frame_size],
        received_frame_sizes=[frame_size],
        src_ip=source,
        dst_ip=target,
        next_hop=source,
    )
    return DirectionRequest(name=way, rate_fps=load_fps, streams=[stream])


def stream_result(
    frames: int,
    delay_ns: Histogram,
    series: Series,
    loss_runs: Histogram = NOTHING,
    *,
    number: int = 1,
    name: Literal["foreground", "background"] = "foreground",
) -> StreamResult:
    return StreamResult(
        id=number,
        name=name,
        intended=frames,
        sent=frames,
        received=delay_ns.count,
        lost=frames - delay_ns.count,
        duplicate=0,
        reordered=0,
        late=0,
        slower=[],
        corrupt=0,
        negative_delays=0,
        window_frames=None,
        unplaced=0,
        delay_ns=delay_ns,
        ipdv_ns=None,
        tags=None,
        series=series,
        loss_runs=loss_runs,
    )


_delays = cache(two_modes)


def _result(way: DirectionName, load_fps: int, lost: int) -> DirectionResult:
    gone = lost // 2
    stream = stream_result(
        load_fps,
        _delays(load_fps - gone, 1),
        series(load_fps, evenly(gone, 10), 10, 100_000_000),
        histogram([(1, gone)]),
        number=1 if way == "forward" else 2,
    )
    return DirectionResult(
        name=way,
        intended_rate_fps=load_fps,
        offered_rate_fps=load_fps - (0.6 if way == "reverse" else 0.0),
        sending_ns=1_000_000_000,
        tx_full=3,
        lag_ns=Histogram(
            count=1_000_000,
            min=12,
            max=640_000,
            buckets=[*LAG_BUCKETS, (8192, 1 << 20, 50)],
        ),
        burst_frames=NOTHING,
        send_call_ns=NOTHING,
        receive_gap_ns=NOTHING,
        delay_floor_ns=1_250,
        delay_bound_ns=41_000,
        streams=[stream],
    )


def port_report(side: Side, missed: int = 0) -> PortReport:
    before = PortCounters(
        rx_frames=0, tx_frames=0, rx_missed=7, rx_errors=0, rx_nombuf=0, tx_errors=0
    )
    return PortReport(
        name=side,
        before=before,
        after=before.model_copy(update={"rx_missed": 7 + missed}),
        neighbour_requests=1,
        foreign=2,
        stale=0,
        misdirected=0,
        corrupt=0,
        fragments=0,
    )


def search(
    first: int,
    cell: str,
    capacity: int,
    *,
    ip: IpVersion = 4,
    frame_size: int = 64,
    repeat: int = 1,
) -> list[TrialRecord]:
    """A binary search with one invalid trial, run again."""
    records: list[TrialRecord] = []
    lower, upper, load = 0, MAXIMUM_FPS, MAXIMUM_FPS

    def run(verdict: VerdictKind, attempt: int = 1) -> None:
        lost = max(0, load - capacity) * 2 if verdict == "fail" else 0
        number = first + len(records)
        records.append(
            trial(
                number,
                cell,
                load,
                verdict,
                ip=ip,
                frame_size=frame_size,
                repeat=repeat,
                attempt=attempt,
                lost=lost,
            )
        )

    while upper - lower > capacity // 200:
        if len(records) == 4:
            run("invalid")
            run("pass" if load <= capacity else "fail", 2)
        else:
            run("pass" if load <= capacity else "fail")
        lower, upper = (load, upper) if load <= capacity else (lower, load)
        load = (lower + upper) // 2
    return records


def throughput_cell(
    name: str,
    ip: IpVersion,
    frame_size: int,
    values: Sequence[float | None],
    verdict: VerdictKind = "pass",
) -> CellResult:
    valid = [value for value in values if value is not None]
    repeats = [
        RepeatResult(
            value=v,
            verdict="invalid" if v is None else "pass",
            reasons=[BEHIND] if v is None else [],
            trials=10,
        )
        for v in values
    ]
    median = sorted(valid)[len(valid) // 2] if valid else None
    mbps = wire_mbps(median, frame_size) if median else None
    return CellResult(
        id=name,
        procedure="throughput",
        quantity="throughput",
        cell=cell_of("throughput", _parameters(ip, frame_size, len(values))),
        parameters=_parameters(ip, frame_size, len(values)),
        median=median,
        wire=[WireRate(direction=d, mbps=mbps) for d in _WAYS] if mbps else [],
        unit="fps",
        repeats=repeats,
        verdict=verdict,
        reasons=[BEHIND] if verdict == "invalid" else [],
        deviations=[SHORT, RESTABILISE],
        conformance=CONDITIONAL,
        spread=spread_of(valid),
    )


def loss_cell(
    name: str, ip: IpVersion, frame_size: int, losses: dict[int, float | None]
) -> CellResult:
    points = [
        LoadPoint(
            load_percent=load,
            load_fps=MAXIMUM_FPS * load // 100,
            loss_percent=loss,
            repeats=[
                RepeatResult(
                    value=loss, verdict="invalid" if loss is None else "pass", trials=1
                )
            ],
        )
        for load, loss in losses.items()
    ]
    return CellResult(
        id=name,
        procedure="frame-loss",
        quantity="frame loss rate at the highest load",
        cell=cell_of("frame-loss", _parameters(ip, frame_size, 1)),
        parameters=_parameters(ip, frame_size, 1),
        median=points[0].loss_percent,
        unit="percent",
        repeats=points[0].repeats,
        verdict="pass",
        deviations=[SHORT],
        points=points,
    )


def _parameters(
    ip: int, frame_size: int, repeats: int
) -> dict[str, str | int | float | bool | None]:
    return {
        "ip": ip,
        "frame_size": frame_size,
        "direction": "both",
        "resolution": "0.5%",
        "max_rate_fps": MAXIMUM_FPS,
        "repeats": repeats,
        "trial_duration_s": 1.0,
        "lag_limit_ms": 10.0,
        "burst_limit": 32,
    }


def loss_trials(
    first: int,
    cell: str,
    ip: IpVersion,
    frame_size: int,
    losses: dict[int, float | None],
) -> list[TrialRecord]:
    records = []
    for number, (load, loss) in enumerate(losses.items(), first):
        rate = MAXIMUM_FPS * load // 100
        verdict: VerdictKind = "fail" if loss else "pass"
        lost = round(rate * 2 * (loss or 0) / 100)
        records.append(
            trial(number, cell, rate, verdict, ip=ip, frame_size=frame_size, lost=lost)
        )
    return records


LOSSES_4: dict[int, float | None] = {100: 38.6, 90: 31.8, 80: 23.3, 70: 12.3, 60: 0.0}
LOSSES_6: dict[int, float | None] = {100: 46.2, 90: 40.2, 80: 32.7, 70: 23.1, 60: 10.3}


def sample_results() -> ResultsFile:
    """Four cells: throughput and frame loss, IPv4 with 64 and IPv6 with 84 bytes."""
    names = [
        f"{p}-ip{v}-{s}-both"
        for p in ("throughput", "frame-loss")
        for v, s in ((4, 64), (6, 84))
    ]
    trials = search(1, names[0], 307_000)
    trials += search(len(trials) + 1, names[1], 269_000, ip=6, frame_size=84)
    trials += loss_trials(len(trials) + 1, names[2], 4, 64, LOSSES_4)
    trials += loss_trials(len(trials) + 1, names[3], 6, 84, LOSSES_6)
    best = {
        n: max(
            t.load_fps
            for t in trials
            if t.cell == n and t.result.verdict.kind == "pass"
        )
        for n in names[:2]
    }
    return ResultsFile(
        procedure="campaign",
        name="linux-router-baseline",
        created_at=CREATED,
        complete=True,
        cells=[
            throughput_cell(names[0], 4, 64, [best[names[0]]]),
            throughput_cell(names[1], 6, 84, [best[names[1]]]),
            loss_cell(names[2], 4, 64, LOSSES_4),
            loss_cell(names[3], 6, 84, LOSSES_6),
        ],
        trials=trials,
    )


def sample_environment(kernel_driver: str = "veth") -> Environment:
    return Environment(
        engine_version="0.1.0",
        dpdk_version="DPDK 22.11.11",
        protocol_version=1,
        python_version="3.11.7",
        os="Debian GNU/Linux 12 (bookworm)",
        kernel="6.1.0-30-amd64",
        cpu_model="Intel(R) Xeon(R) Processor",
        cpus_total=2,
        cores_used=[0],
        main_core=1,
        governor={0: "unknown", 1: "unknown"},
        turbo=None,
        frequency_mhz={},
        tsc_hz=2_700_000_000,
        numa_nodes=1,
        memory_mb=7_950,
        hugepages="512 x 2 MiB",
        hugepages_used=True,
        hypervisor=True,
        ports=[
            PortRecord(
                name=name,
                driver="af_xdp",
                dpdk_name="net_af_xdp",
                device=device,
                mac=f"02:00:00:00:00:0{number}",
                link_speed_mbps=10_000,
                mtu=1500,
                kernel_driver=kernel_driver,
                kernel_driver_version="6.1.0-30-amd64",
            )
            for number, (name, device) in enumerate(
                (("left", "tl"), ("right", "tr")), 1
            )
        ],
        seed=42,
        started_at=CREATED,
    )


def store(
    path: Path, results: ResultsFile, environment: Environment | None = None
) -> ResultsDirectory:
    """A results directory as a run leaves it."""
    directory = ResultsDirectory.create(path, results.name)
    directory.write_campaign({"testbed": {"name": "bench", "description": DEVICE}})
    if environment:
        directory.write_environment(environment)
    for record in results.trials:
        directory.append(record)
    directory.write_results(results)
    return directory


def all_sizes(procedure: ProcedureName = "throughput") -> ResultsFile:
    """A throughput campaign over RFC 2544's frame sizes, three repeats each."""
    sizes = (64, 128, 256, 512, 1024, 1280, 1518)
    cells: list[CellResult] = []
    trials: list[TrialRecord] = []
    for size in sizes:
        name = f"{procedure}-ip4-{size}-both"
        values = []
        for repeat in (1, 2, 3):
            path = search(
                len(trials) + 1,
                name,
                310_000 - 20 * size + 900 * repeat,
                frame_size=size,
                repeat=repeat,
            )
            values.append(
                float(max(t.load_fps for t in path if t.result.verdict.kind == "pass"))
            )
            trials += path
        cells.append(throughput_cell(name, 4, size, values))
    return ResultsFile(
        procedure=procedure,
        name="all-sizes",
        created_at=CREATED,
        complete=True,
        cells=cells,
        trials=trials,
    )


def on_media(
    results: ResultsFile, speed_mbps: int = 10_000, *, nominal: bool = False
) -> ResultsFile:
    """The same throughputs, through ports of this speed."""
    cells = [_on_medium(cell, speed_mbps, nominal) for cell in results.cells]
    return results.model_copy(update={"cells": cells})


def _on_medium(cell: CellResult, speed_mbps: int, nominal: bool) -> CellResult:
    assert cell.median
    size = int(str(cell.parameters["frame_size"]))
    rate_fps = line_rate_fps(speed_mbps, size)
    media = Media(
        rate_fps=rate_fps,
        link_speed_mbps=speed_mbps,
        nominal=nominal,
        share_percent=cell.median * 100 / rate_fps,
    )
    return cell.model_copy(update={"media": media, "sum_fps": 2 * cell.median})
