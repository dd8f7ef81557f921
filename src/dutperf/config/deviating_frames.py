"""Where a cell's frames are others than the standards ask for: sizes, format, fields.

The frame format is RFC 2544's (C.2.6.4) but for what RFC 4814 4.5 put in the place of
its two fixed ports, and for the tag, without which no frame could be told from another
(RFC 2544 10).
"""

from __future__ import annotations

from collections.abc import Iterator

from dutperf.config.beside import BesideKind
from dutperf.config.cell import Cell
from dutperf.config.flows import directions, ends
from dutperf.config.sizes import cell_versions, most_header_bytes
from dutperf.config.standard_sizes import listed_sizes
from dutperf.config.versions import version_of
from dutperf.standards import Deviation

_FORMAT = "RFC 2544 8, C.2.6.4"
_UPDATE_BEFORE_S = 5
_TTL = 10


def of_frames(cell: Cell) -> list[Deviation]:
    """Of their sizes, then of all else."""
    return [*_sizes(cell), *_frames(cell), *_paths(cell)]


def sizes_asked_for(cell: Cell) -> tuple[list[int], str]:
    """Frame sizes, and the RFC that lists them."""
    extra = most_header_bytes(cell.traffic, cell.ip)
    return listed_sizes(cell_versions(cell), extra)


def _sizes(cell: Cell) -> list[Deviation]:
    if cell.imix:
        rule, actual = "frames of one size", f"{cell.traffic.imix} (RFC 6985)"
        return [Deviation("RFC 2544 9, RFC 1242 3.4", rule, actual, "text")]
    listed, rfc = sizes_asked_for(cell)
    if cell.frame_sizes[0] in listed:
        return []
    rule = f"one of the frame sizes {', '.join(map(str, listed))}"
    actual = f"{cell.frame_sizes[0]} bytes"
    return [Deviation(f"RFC 2544 9.1, {rfc}", rule, actual, "SHOULD")]


def _frames(cell: Cell) -> list[Deviation]:
    traffic = cell.traffic
    found = _ports(cell)
    if traffic.df and 4 in cell_versions(cell):
        found.append(Deviation(_FORMAT, "IPv4 flags 0", "DF set", "SHOULD"))
    found += _headers(cell)
    found += _beside(cell)
    if traffic.ignore_checksums:
        rule = "checksums of received frames"
        found.append(Deviation("RFC 1242 3.17", rule, "not verified", "MUST"))
    if traffic.ttl != _TTL:
        actual = f"{traffic.ttl} instead of {_TTL}"
        found.append(Deviation(_FORMAT, "time to live 10", actual, "SHOULD"))
    if traffic.dscp:
        found.append(
            Deviation(_FORMAT, "type of service 0", f"DSCP {traffic.dscp}", "SHOULD")
        )
    found += _routes(cell)
    return found


def _paths(cell: Cell) -> Iterator[Deviation]:
    """Between several ports on a side, whose sides are inputs and outputs."""
    if cell.pairs == 1:
        return
    if cell.traffic.port_pattern == "pairs":
        rule = "from each input port frames to each of the output ports in sequence"
        yield Deviation("RFC 2544 16", rule, "each to one output port", "SHOULD")
    if len(directions(cell)) > 1:
        rule = "bidirectional: from each port frames to all of the other ports"
        actual = "to those of the other side"
        yield Deviation("RFC 2544 16", rule, actual, "MUST")


def _routes(cell: Cell) -> Iterator[Deviation]:
    traffic, settle_s = cell.traffic, cell.spec.settle_wait_s
    most_networks = max(traffic.networks.left, traffic.networks.right)
    if traffic.routes != "static" and settle_s < _UPDATE_BEFORE_S:
        rule = f"routing updates {_UPDATE_BEFORE_S} s before the frames"
        yield Deviation("RFC 2544 C.2.3", rule, f"{settle_s:g} s before", "text")
    if traffic.routes == "static" and most_networks > 1:
        rule = "a routing update with all networks before each trial"
        yield Deviation("RFC 2544 13", rule, "routes are static", "MUST")


def _headers(cell: Cell) -> Iterator[Deviation]:
    """Of the foreground's frames as they are sent."""
    versions = {version_of(cell.ip, ends(way)[0]) for way in directions(cell)}
    options = cell.traffic.ipv4_options
    if options and 4 in versions:
        yield Deviation(_FORMAT, "no IPv4 options", ", ".join(options), "SHOULD")
    headers = cell.traffic.ipv6_headers
    if "hop-by-hop" not in headers or 6 not in versions:
        return
    if len(headers) > 1:
        rule = "no hop-by-hop header in a chain of extension headers"
        yield Deviation("RFC 5180 5.3", rule, ", ".join(headers), "MUST")
    rule = "hop-by-hop headers at 1, 10 and 50 % of the bandwidth, for their impact"
    yield Deviation("RFC 5180 5.3", rule, "in all foreground frames", "text")


def _beside(cell: Cell) -> Iterator[Deviation]:
    """Frames beside the stream: as many as the RFCs have."""
    beside = cell.traffic.beside
    if beside is None or beside.kind == "spoofed":  # no RFC says how many
        return
    if beside.percent in _PERCENT_BESIDE[beside.kind]:
        return
    if beside.kind == "broadcast":
        yield Deviation(beside.rfc, "1 % broadcast frames", beside.words, "SHOULD")
    else:
        rule = "hop-by-hop headers at 1, 10 and 50 % of the bandwidth, for their impact"
        yield Deviation(beside.rfc, rule, beside.words, "text")


_PERCENT_BESIDE: dict[BesideKind, tuple[int, ...]] = {
    "broadcast": (1,),
    "hop-by-hop": (1, 10, 50),
}


def _ports(cell: Cell) -> list[Deviation]:
    """Random ones would make more flows than RFC 8219 10.2.1 wants."""
    if cell.traffic.flows is not None:
        return []
    ports = cell.traffic.ports
    found: dict[Deviation, None] = {}
    for direction in directions(cell):
        reverse = direction == "reverse" and ports.reverse is not None
        where = " in the reverse direction" if reverse else ""
        for name, port in zip(
            ("source", "destination"), ports.of(direction), strict=True
        ):
            if not port.by_the_book:
                wanted = f"random {name} ports {port.LEAST}-{port.MOST}"
                told = Deviation("RFC 4814 4.5", wanted, f"{port}{where}", "SHOULD")
                found[told] = None
    return list(found)
