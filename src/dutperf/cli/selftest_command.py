"""``dutperf selftest``: the tester measured by itself, its ports connected.

What is found is the tester's own limit: a device that is measured near it is not what
limits. It is kept as this machine's passport, which results are held against.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dutperf.bench.stateful_limits import SelftestSettings
from dutperf.cli.options import AsJson, LabName, Output, Quick, TestbedFile
from dutperf.cli.passport_selftest import measure_passports
from dutperf.cli.stateful_selftest import measure_stateful
from dutperf.errors import InputError
from dutperf.protocol import IpVersion

Stateful = Annotated[
    bool,
    typer.Option("--stateful", help="connections and learned four-tuples (RFC 9693)"),
]
Connections = Annotated[
    list[int] | None,
    typer.Option(
        min=1,
        max=2**32,
        metavar="N",
        help="how many, each 12 bytes; IPv6: 36",
        show_default="4000000",
    ),
]
Ip = Annotated[
    int | None,
    typer.Option(
        min=4, max=6, help="IP version, 4 or 6; default: both, with --stateful 4"
    ),
]
Cpus = Annotated[
    str, typer.Option(metavar="CPU[,CPU]", help="CPUs that send and receive")
]
Phase1Rate = Annotated[
    int,
    typer.Option(
        "--phase1-rate", min=1, metavar="FPS", help="of phase 1 before phase 2"
    ),
]
TrialDuration = Annotated[
    float,
    typer.Option(
        "--trial-duration", min=0.05, max=3600, metavar="S", help="of phase 2"
    ),
]
Width = Annotated[
    str, typer.Option(metavar="WIDTH", help="of each search, like 1% or 1000")
]
Repeats = Annotated[
    int, typer.Option(min=1, max=1000, metavar="N", help="of each search")
]


Cabled = Annotated[
    bool,
    typer.Option(
        "--cabled", help="the testbed's two ports are connected to each other"
    ),
]
Of = Annotated[
    Path | None,
    typer.Option(
        "--campaign",
        metavar="FILE",
        help="measure what this campaign sends; default: each feature, smallest frames",
    ),
]


def selftest(
    testbed: TestbedFile = None,
    lab: LabName = None,
    campaign: Of = None,
    cabled: Cabled = False,
    quick: Quick = False,
    stateful: Stateful = False,
    connections: Connections = None,
    ip: Ip = None,
    cpus: Cpus = "0",
    phase1_rate_fps: Phase1Rate = 2_000_000,
    trial_duration_s: TrialDuration = 1.0,
    resolution: Width = "2%",
    repeats: Repeats = 3,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """What the tester itself can do: its ports connected, no device between them.

    Stored as the passport of this machine, which later results are held against. Ends
    with 1 if no rate is safe with some of the frames.
    """
    version = _version(ip)
    if not stateful:
        measure_passports(
            testbed,
            lab,
            campaign,
            [version] if version else [4, 6],
            cabled=cabled,
            quick=quick,
            as_json=as_json,
        )
        return
    if testbed or lab or campaign:
        raise InputError(
            "--stateful crosses the engine's own ports: it takes no testbed, lab or "
            "campaign",
            "leave it out, or else --stateful",
        )
    settings = SelftestSettings(
        connections=tuple(connections or [4_000_000]),
        ip=version or 4,
        cpus=_numbers(cpus),
        phase1_rate_fps=phase1_rate_fps,
        trial_duration_s=trial_duration_s,
        resolution=resolution,
        repeats=repeats,
    )
    measure_stateful(settings, output, as_json=as_json)


def _version(ip: int | None) -> IpVersion | None:
    match ip:
        case None:
            return None
        case 4:
            return 4
        case 6:
            return 6
    raise InputError(f"--ip: {ip} is no IP version", "give 4 or 6")


def _numbers(cpus: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in cpus.split(","))
    except ValueError:
        raise InputError(
            f"--cpus: {cpus[:40]!r} is no list of CPU numbers", "give one, or 0,1"
        ) from None
