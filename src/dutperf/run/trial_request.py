"""What a trial of a cell sends: pure, the same request for the same arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Literal

from dutperf.config.encapsulation import BindingFile, SharingRule
from dutperf.config.flows import Flow, directions, ends, tunnel_ends
from dutperf.config.paths import path_flows, port_paths
from dutperf.config.side import SideConfig, alternately
from dutperf.config.sizes import most_pieces, received_sizes, sizes_in, syn_size
from dutperf.config.testbed import Testbed
from dutperf.errors import InputError
from dutperf.model.capture import Capture, on_hosts
from dutperf.model.cell import Cell
from dutperf.model.hosts import AddressSet
from dutperf.model.specs import FixedLoadKeys, IpdvSpec
from dutperf.model.stateful_keys import Stateful
from dutperf.model.traffic import RANDOM_LABEL, Traffic
from dutperf.protocol.base import FLOW_LABEL_BITS, DirectionName, Side, VlanTag
from dutperf.protocol.stream_messages import (
    DirectionRequest,
    FieldCopy,
    FieldName,
    FieldVariation,
    Mix,
    StreamRequest,
    field_bits,
)
from dutperf.protocol.stream_parts import GivenFlow, ReceivedEnd, StreamPath, Tuples
from dutperf.protocol.trial_messages import (
    Dns,
    Record,
    TagPlan,
    TrialRequest,
    series_interval_ns,
)
from dutperf.run.announcing import announcements

_STREAM_IDS: dict[tuple[DirectionName, str], int] = {
    ("forward", "foreground"): 0,
    ("forward", "background"): 1,
    ("forward", "beside"): 1,
    ("reverse", "foreground"): 2,
    ("reverse", "background"): 3,
    ("reverse", "beside"): 3,
}
_MAC_FIELDS = ((0, 6), (24, 24))
_ID_BITS = 12
_PORT_BITS = 16


def trial_request(
    testbed: Testbed,
    cell: Cell,
    rate_fps: int,
    trial_id: int,
    duration_s: float | None = None,
    *,
    stop_when_lost: bool = False,
) -> TrialRequest:
    """The complete request of one trial.

    Args:
        testbed: addresses and next hops.
        cell: sizes, traffic, times and limits.
        rate_fps: intended load, frames per second and direction.
        trial_id: tells the trial's frames from an earlier trial's, 1 to 65535.
        duration_s: other than the cell's.
        stop_when_lost: end the trial once it is certain to fail.

    Raises:
        InputError: the testbed lacks an address, or a varying field does not fit one.
    """
    duration_s = cell.spec.trial_duration_s if duration_s is None else duration_s
    duration_ns = round(duration_s * 1e9)
    ways = [_direction(testbed, cell, rate_fps, name) for name in directions(cell)]
    if cell.spec.tcp and not cell.stateful:
        ways = [_with_fresh_tuples(way, trial_id, duration_ns) for way in ways]
    tcp = cell.spec.tcp
    resending_ns = tcp.retransmits_ns if tcp else 0
    return TrialRequest(
        trial_id=trial_id,
        duration_ns=duration_ns,
        settle_ns=round(cell.spec.settle_wait_s * 1e9),
        residual_wait_ns=round(cell.spec.residual_wait_s * 1e9) + resending_ns,
        burst_limit=cell.spec.burst_limit,
        # Of a sequence of 61 frames, or twice as many, the same ones had their turn.
        inspect_every=59 if len(cell.frame_sizes) % 61 == 0 else 61,
        verify_checksums=not cell.traffic.ignore_checksums,
        lag_limit_ns=round(cell.spec.lag_limit_ms * 1e6),
        seed=cell.seed,
        tcp=tcp,
        dns=_names(cell, trial_id),
        frame_timeout_ns=cell.spec.frame_timeout_ns,
        loss_tolerance_ppb=cell.spec.loss_tolerance_ppb,
        # What is lost now may come yet; and queries have no time in them, so that at
        # the end of an interval one may seem to be missing that has come.
        stop_when_lost=stop_when_lost and not resending_ns and not cell.spec.dns,
        record=_record(cell, duration_ns),
        announcements=announcements(testbed, cell, duration_ns),
        directions=ways,
    )


def _names(cell: Cell, trial_id: int) -> Dns | None:
    """What no trial before has asked for, nor a run with another seed."""
    dns = cell.spec.dns
    if dns is None:
        return None
    return dns.model_copy(update={"names": (trial_id + cell.seed * _STRIDE) & 0xFFFF})


_DNS_PORT = 53
_STRIDE = 0x9E3779B97F4A7C15
"""Puts the tuples of trials far from each other, whatever there are of both."""


def _with_fresh_tuples(
    direction: DirectionRequest, trial_id: int, duration_ns: int
) -> DirectionRequest:
    """Connections of other four-tuples than those of the trials before.

    What these opened may be in the device's table still.
    """
    (stream,) = direction.streams
    frames = direction.frames(duration_ns)
    left = stream.combinations - frames
    if left < 0 or not stream.vary:
        raise InputError(
            f"{frames:,} connections in a trial, and {stream.combinations:,} "
            "four-tuples",
            "widen ports or addresses of the traffic, or shorten the trial",
        )
    tuples = Tuples(
        source="generated",
        count=frames,
        order="once",
        first=trial_id * _STRIDE % (left + 1),
    )
    fresh = stream.model_copy(update={"tuples": tuples})
    return direction.model_copy(update={"streams": [fresh]})


def _record(cell: Cell, duration_ns: int) -> Record:
    tagging = cell.spec.tagging
    return Record(
        frame_timeouts_ns=cell.spec.timeout_sweep_ns,
        tags=TagPlan(first_ns=round(tagging.first_s * 1e9), count=tagging.tags)
        if tagging
        else None,
        ipdv=isinstance(cell.spec, IpdvSpec),
        fine_delays=isinstance(cell.spec, FixedLoadKeys),
        series_interval_ns=series_interval_ns(duration_ns),
    )


def _direction(
    testbed: Testbed, cell: Cell, rate_fps: int, name: DirectionName
) -> DirectionRequest:
    share = cell.traffic.foreground
    sender, receiver = ends(name)
    if cell.spec.dns:  # what is answered comes back
        receiver = sender
    streams = _streams(testbed, cell, name)
    return DirectionRequest(
        name=name,
        rate_fps=rate_fps,
        vlan=testbed.sides[sender].vlan,
        received_vlan=testbed.sides[receiver].vlan,
        mpls=testbed.sides[sender].mpls,
        received_mpls=testbed.sides[receiver].mpls,
        encapsulation=testbed.sides[sender].tunnel,
        received_encapsulation=testbed.sides[receiver].tunnel,
        streams=streams,
        mix=Mix(foreground=share.numerator, of=share.denominator)
        if len(streams) > 1
        else None,
    )


def _streams(
    testbed: Testbed, cell: Cell, direction: DirectionName
) -> list[StreamRequest]:
    """Of several ports on a side each takes its paths in turn (RFC 2544 16)."""
    first, *others = path_flows(testbed, cell, direction)
    found = []
    for number, flow in enumerate(first.flows):
        more = [
            StreamPath(
                sent_by=path.sent_by,
                received_by=path.received_by,
                **_addressed(cell, path.flows[number], path.sent_by),
            )
            for path in others
        ]
        found.append(_stream(testbed, cell, direction, flow, more))
    return found


def _addressed(cell: Cell, flow: Flow, sent_by: int) -> dict[str, Any]:
    """What of a stream's frames is other on each of its paths."""
    beside = cell.traffic.beside if flow.name == "beside" else None
    return {
        "src_ip": flow.source.base,
        "dst_ip": flow.destination.base,
        "next_hop": flow.next_hop,
        "dst_mac": (beside.dst_mac if beside else None) or flow.next_hop_mac,
        "src_mac": None
        if cell.traffic.mac == "fixed"
        else _random_mac(flow.sender, sent_by),
    }


def _random_mac(sender: Side, number: int) -> str:
    """RFC 4814 4.2: (RR & 0xFC):PP:PP:RR:RR:RR, PP:PP the number of the port."""
    return f"00:00:{alternately(sender, number):02x}:00:00:00"


def _stream(
    testbed: Testbed,
    cell: Cell,
    direction: DirectionName,
    flow: Flow,
    more_paths: list[StreamPath],
) -> StreamRequest:
    traffic = cell.traffic
    source_port, destination_port = traffic.ports.of(direction)
    side = testbed.sides[flow.sender]
    vary = _variations(testbed, cell, flow, direction)
    headed = flow.name == "foreground"
    beside = traffic.beside if flow.name == "beside" else None
    headers = traffic.extension_headers(flow.version) if headed else []
    by_tcp = cell.stateful is not None and cell.stateful.transport == "tcp"
    is_syn = beside is not None and beside.is_flood and by_tcp
    if cell.spec.dns:
        sizes = [cell.frame_sizes, cell.frame_sizes]
    elif is_syn:
        sizes = [[syn_size({v})] for v in (flow.version, flow.received_version)]
    else:
        sizes = [
            sizes_in(cell, flow.version),
            received_sizes(cell, flow.name, flow.sender),
        ]
    return StreamRequest(
        id=_STREAM_IDS[direction, flow.name],
        name=flow.name,
        ip_version=flow.version,
        syn=is_syn,
        frame_sizes=sizes[0],
        received_frame_sizes=sizes[1],
        **_addressed(cell, flow, 0),
        more_paths=more_paths,
        src_port=_spoofed_port(testbed, traffic, flow) or source_port.bounds[0],
        dst_port=_DNS_PORT if cell.spec.dns else destination_port.bounds[0],
        ttl=traffic.ttl,
        received_ttl=None if cell.spec.dns else _received_ttl(testbed, traffic, flow),
        dscp=traffic.dscp,
        df=traffic.df and flow.version == 4,
        most_pieces=1 if beside else most_pieces(testbed, cell, flow.receiver),
        flow_label=_flow_label(traffic, flow),
        ipv6_headers=beside.ipv6_headers if beside else headers,
        ipv4_options=traffic.options(flow.version) if headed else [],
        vary=[*vary, *_vlan_ids(side.vlan)],
        copies=[]
        if _is_spoofed(traffic, flow)
        else list(_copies(side, flow.source, _differing(cell, flow, vary))),
        src_binding=_source_binding(testbed, traffic, flow),
        dst_binding=_is_bound(testbed, flow.receiver),
        received_end=_received_end(testbed, flow),
        tuples=_captured(traffic.pcap, flow) if traffic.pcap else None,
    )


def _captured(capture: Capture, flow: Flow) -> Tuples:
    """Whose frame each is, in the capture's order, among the hosts of the testbed."""
    ends = (flow.source, flow.destination)
    hosts = (ends[0].size, ends[1].size)
    frames = [on_hosts(frame.flow, hosts) for frame in capture.of(flow.version)]
    numbers = {each: number for number, each in enumerate(dict.fromkeys(frames))}
    return Tuples(
        source="given",
        order="increasing",
        count=len(frames),
        flows=[
            GivenFlow(
                src_ip=ends[0].host(source),
                dst_ip=ends[1].host(destination),
                src_port=src_port,
                dst_port=dst_port,
            )
            for source, destination, src_port, dst_port in numbers
        ],
        sequence=[numbers[each] for each in frames],
    )


def _is_bound(testbed: Testbed, side: Side) -> bool:
    """Whether it is the B4s of a table that is a file."""
    return isinstance(testbed.sides[side].edge_rule, BindingFile)


def _source_binding(
    testbed: Testbed, traffic: Traffic, flow: Flow
) -> Literal["own", "another"] | None:
    if not _is_bound(testbed, flow.sender):
        return None
    return "another" if _is_spoofed(traffic, flow) else "own"


def _is_spoofed(traffic: Traffic, flow: Flow) -> bool:
    return flow.name == "beside" and traffic.spoofed_percent is not None


def _spoofed_port(testbed: Testbed, traffic: Traffic, flow: Flow) -> int | None:
    """Of the second customer edge, where the address is the first one's."""
    rule = testbed.sides[flow.sender].edge_rule
    if isinstance(rule, SharingRule) and _is_spoofed(traffic, flow):
        return rule.spoofed_port()
    return None


def _differing(
    cell: Cell, flow: Flow, vary: Sequence[FieldVariation]
) -> Sequence[FieldVariation]:
    """In which bits flows differ; connections have their numbers in any of them."""
    if cell.stateful is None:
        return vary
    ip_offset = field_bits("src_ip", flow.version) - _PORT_BITS
    ips = (_random(name, ip_offset, _PORT_BITS) for name in ("src_ip", "dst_ip"))
    return [*ips, *(_random(name, 0, _PORT_BITS) for name in ("src_port", "dst_port"))]


def _copies(
    side: SideConfig, hosts: AddressSet, vary: Sequence[FieldVariation]
) -> Iterator[FieldCopy]:
    """Of a packet into its outer header, of a customer edge's into its address."""
    if side.edge_rule:
        yield from side.edge_rule.copies(translated=side.translation is not None)
    if side.encapsulation:
        yield from side.encapsulation.flow_labels(vary)
    outer, own = side.tunnel, side.encapsulation
    if outer is None or own is None or not own.tunnel_per_host:
        return
    for bits, end in zip(hosts.fields, tunnel_ends(outer.local, hosts), strict=True):
        yield FieldCopy(
            field="outer_src",
            offset=end.fields[0].offset,
            width=bits.width,
            of="src_ip",
            of_offset=bits.offset,
        )


def _received_end(testbed: Testbed, flow: Flow) -> ReceivedEnd | None:
    """Which customer edge's frames arrive, where their addresses say it.

    Of a tunnel for each host the prefix is compared, as of any tunnel whose ends vary:
    which of them a device sends to is its own to choose.
    """
    side = testbed.sides[flow.receiver]
    if side.edge_rule is None or side.edge is None or _is_bound(testbed, flow.receiver):
        return None
    translated = side.translation is not None
    follows = list(side.edge_rule.follows(translated=translated))
    return ReceivedEnd(address=side.edge, outer=not translated, follows=follows)


def _received_ttl(testbed: Testbed, traffic: Traffic, flow: Flow) -> int | None:
    """What the device is to leave of it; frames that die on the way are no matter.

    Nor is it looked at where it takes other numbers of hops between several ports.
    """
    versions = {flow.sender: flow.version, flow.receiver: flow.received_version}
    paths = port_paths(testbed.pairs, traffic.port_pattern)
    each = {
        testbed.between(*path).hops_between(versions["left"], versions["right"])
        for path in paths
    }
    hops = each.pop() if len(each) == 1 else None
    return traffic.ttl - hops if hops is not None and hops < traffic.ttl else None


def _flow_label(traffic: Traffic, flow: Flow) -> int:
    """IPv4 has none; a random one begins with 0."""
    fixed = flow.version == 6 and traffic.flow_label != RANDOM_LABEL
    return int(traffic.flow_label) if fixed else 0


def _variations(
    testbed: Testbed, cell: Cell, flow: Flow, direction: DirectionName
) -> list[FieldVariation]:
    traffic = cell.traffic
    if traffic.pcap:
        return _beside_the_flow(traffic, flow)
    is_flood = flow.name == "beside" and traffic.flood_percent is not None
    found = [
        *(bits.variation("src_ip") for bits in flow.source.fields),
        *(bits.variation("dst_ip") for bits in flow.destination.fields),
        *(
            _flood_ports(cell.stateful)
            if is_flood and cell.stateful
            else _ports(testbed, traffic, flow, direction)
        ),
    ]
    if cell.spec.dns:
        found = [each for each in found if each.field != "dst_port"]
    if cell.spec.tcp or is_flood:  # each connection has a four-tuple of its own
        found = [each.model_copy(update={"mode": "enumerate"}) for each in found]
    return found + _beside_the_flow(traffic, flow)


def _beside_the_flow(traffic: Traffic, flow: Flow) -> list[FieldVariation]:
    found = []
    if traffic.mac == "random":
        found += [_random("src_mac", offset, width) for offset, width in _MAC_FIELDS]
    if traffic.flow_label == RANDOM_LABEL and flow.version == 6:
        found.append(_random("flow_label", 0, FLOW_LABEL_BITS))
    return found


def _ports(
    testbed: Testbed, traffic: Traffic, flow: Flow, direction: DirectionName
) -> Iterator[FieldVariation]:
    """Of customer edges those of their rule, of anybody else those of the traffic."""
    names: tuple[Literal["src_port", "dst_port"], ...] = ("src_port", "dst_port")
    spoofed = _spoofed_port(testbed, traffic, flow)
    fixed = "src_port" if spoofed is not None else None
    ends = zip(
        names,
        (flow.sender, flow.receiver),
        traffic.ports.of(direction),
        strict=True,
    )
    for name, side, port in ends:
        rule = testbed.sides[side].edge_rule
        own = port.variation(name)
        if name == fixed or isinstance(rule, BindingFile):
            continue
        if isinstance(rule, SharingRule):
            yield from rule.ports(name)
        elif own:
            yield own


def _flood_ports(stateful: Stateful) -> Iterator[FieldVariation]:
    """Those of no connection: it is other ports of the responder's that are asked."""
    first, last = stateful.destinations
    least, most = max((1, first - 1), (last + 1, 65535), key=lambda r: r[1] - r[0])
    yield FieldVariation(field="src_port", width=16, min=1024, max=65535)
    yield FieldVariation(field="dst_port", width=16, min=least, max=most)


def _vlan_ids(tags: Sequence[VlanTag]) -> Iterator[FieldVariation]:
    for tag in tags:
        if tag.last_id is not None and tag.last_id > tag.id:
            yield FieldVariation(
                field="vlan_id", width=_ID_BITS, min=tag.id, max=tag.last_id
            )


def _random(field: FieldName, offset: int, width: int) -> FieldVariation:
    return FieldVariation(
        field=field, offset=offset, width=width, min=0, max=(1 << width) - 1
    )
