"""Whose passport it is, in tests that make one up."""

from __future__ import annotations

from dutperf.results.passport import PassportOwner

OWNER = PassportOwner(
    machine="m",
    cpu_model="c",
    cpus_total=2,
    kernel="k",
    dutperf_version="1",
    engine="e",
    cores=[0],
    main_core=1,
    device_cpu=1,
    memory_mb=512,
    hugepages=False,
    link="veth",
)
