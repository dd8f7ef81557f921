"""A campaign on a testbed as independent cells, checked before the first frame."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

from dutperf.config.campaign import Campaign, Cell, ProcedureSpec, TrialTimes
from dutperf.config.testbed import Testbed
from dutperf.engine.protocol import IpVersion, minimum_frame_size
from dutperf.errors import InputError

_HEADER_AND_FCS_BYTES = 18  # Ethernet header 14, FCS 4: frame size less MTU
_LOADS_PERCENT = [100.0, 90.0, 80.0, 70.0, 60.0, 50.0, 40.0, 30.0, 20.0, 10.0]
_BENCHMARK_NETWORKS = {
    4: (ipaddress.ip_network("198.18.0.0/15"), "RFC 2544 C.2.2"),
    6: (ipaddress.ip_network("2001:2::/48"), "RFC 5180 8"),
}


def expand(campaign: Campaign, testbed: Testbed) -> list[Cell]:
    """The cells of ``campaign`` in the order in which they are to be measured.

    Raises:
        InputError: a cell cannot be measured on ``testbed``, or is listed twice.
    """
    cells: dict[str, Cell] = {}
    for index, spec in enumerate(campaign.procedures):
        where = f"campaign {campaign.name}: procedures[{index}]"
        for cell in _cells(where, spec, campaign, testbed):
            if cell.id in cells:
                raise InputError(
                    f"{where}: {cell.id} is listed twice",
                    "take it out here; to measure more than once use repeats",
                )
            cells[cell.id] = cell
    return list(cells.values())


def resolved(campaign: Campaign, testbed: Testbed) -> dict[str, Any]:
    """``campaign`` with all defaults filled in, as plain data for ``campaign.yaml``.

    ``load_campaign`` accepts it again, and with ``testbed`` it gives the same cells.

    Raises:
        InputError: as ``expand``.
    """
    place = (
        {"testbed": testbed.model_dump(exclude_none=True)}
        if campaign.lab is None
        else {"lab": campaign.lab}
    )
    return {
        "schema_version": campaign.schema_version,
        "name": campaign.name,
        "seed": campaign.seed,
        **place,
        "procedures": [_as_procedure(cell) for cell in expand(campaign, testbed)],
    }


def notices(testbed: Testbed, campaign: Campaign) -> list[str]:
    """Legal things that a user should know of before frames are sent.

    Names each address that ``campaign`` uses outside the networks reserved for
    benchmarking (RFC 2544 C.2.2, RFC 5180 8).
    """
    versions = testbed.ip_versions()
    used = {v for spec in campaign.procedures for v in spec.ip or versions}
    return [
        notice
        for version in versions
        if version in used
        for notice in _outside_benchmark_network(testbed, version)
    ]


def _cells(
    where: str, spec: ProcedureSpec, campaign: Campaign, testbed: Testbed
) -> Iterator[Cell]:
    times = {key: getattr(spec, key) for key in TrialTimes.model_fields}
    max_rate_fps = _max_rate(where, spec, testbed)
    for version in _versions(where, spec, testbed):
        for size in spec.frame_size or [minimum_frame_size(version)]:
            _check_size(where, size, version, testbed)
            yield Cell(
                **times,
                id=f"{spec.procedure}-ip{version}-{size}-{spec.direction}",
                procedure=spec.procedure,
                ip=version,
                frame_size=size,
                direction=spec.direction,
                resolution=spec.resolution,
                max_rate_fps=max_rate_fps,
                repeats=spec.repeats,
                load_percent=_loads(spec),
                lag_limit_ms=spec.lag_limit_ms,
                burst_limit=spec.burst_limit,
                seed=campaign.seed,
            )


def _as_procedure(cell: Cell) -> dict[str, Any]:
    data = cell.model_dump(exclude={"id", "seed"}, exclude_none=True)
    data.update(ip=[cell.ip], frame_size=[cell.frame_size])
    return data


def _versions(where: str, spec: ProcedureSpec, testbed: Testbed) -> list[IpVersion]:
    for version in spec.ip:
        for name, side in (("left", testbed.left), ("right", testbed.right)):
            if side.ip(version) is None:
                raise InputError(
                    f"{where}.ip: IPv{version} is asked for, but testbed "
                    f"{testbed.name} has no IPv{version} addresses on the {name} side",
                    f"add the key {name}.ipv{version} to the testbed, or take "
                    f"{version} out of ip",
                )
    versions = spec.ip or testbed.ip_versions()
    if not versions:
        raise InputError(
            f"{where}: testbed {testbed.name} has no IP version on both sides",
            "add the keys left.ipv4 and right.ipv4, or left.ipv6 and right.ipv6",
        )
    return versions


def _max_rate(where: str, spec: ProcedureSpec, testbed: Testbed) -> int | None:
    limit_fps = testbed.max_rate_fps
    if spec.max_rate_fps is None or limit_fps is None:
        return spec.max_rate_fps or limit_fps
    if spec.max_rate_fps > limit_fps:
        raise InputError(
            f"{where}.max_rate_fps: {spec.max_rate_fps} is more than testbed "
            f"{testbed.name} allows, {limit_fps}",
            "lower it, or raise max_rate_fps of the testbed",
        )
    return spec.max_rate_fps


def _check_size(where: str, size: int, version: IpVersion, testbed: Testbed) -> None:
    least = minimum_frame_size(version)
    if size < least:
        raise InputError(
            f"{where}.frame_size: {size} is too small for IPv{version}: the smallest "
            f"frame with room for the 18-byte tag has {least} bytes",
            f"use {least} or more; give IPv4 and IPv6 entries of their own under "
            "procedures if their sizes differ",
        )
    for name, side in (("left", testbed.left), ("right", testbed.right)):
        if size - _HEADER_AND_FCS_BYTES > side.port.mtu:
            raise InputError(
                f"{where}.frame_size: {size} does not fit the {name} port: its MTU "
                f"{side.port.mtu} carries frames of at most "
                f"{side.port.mtu + _HEADER_AND_FCS_BYTES} bytes",
                f"raise {name}.port.mtu to {size - _HEADER_AND_FCS_BYTES} (and the "
                "MTU of interface and DUT), or use smaller frames",
            )


def _loads(spec: ProcedureSpec) -> list[float]:
    if spec.procedure != "frame-loss":
        return []
    return sorted(spec.load_percent or _LOADS_PERCENT, reverse=True)


def _outside_benchmark_network(testbed: Testbed, version: IpVersion) -> Iterator[str]:
    network, rfc = _BENCHMARK_NETWORKS[version]
    for name, side in (("left", testbed.left), ("right", testbed.right)):
        for key in ("address", "gateway"):
            address = getattr(side.ip(version), key)
            if ipaddress.ip_address(address) not in network:
                yield (
                    f"{name}.ipv{version}.{key} {address} is outside {network}, the "
                    f"network reserved for benchmarking ({rfc}): make sure that no "
                    "frame can leave the test setup"
                )
