"""What makes stored results one measure: how they were judged, and of which traffic.

RFC 2544 judges by no frame lost, ever.
"""

from __future__ import annotations

from dutperf.results.model import CellResult

OTHER_MEASURE = ("frame_timeout_ms", "loss_tolerance_percent", "verify_trials")
"""Settings that make a result another measure than the RFC's; not set: the RFC's."""
TRAFFIC = (
    "load_shape",
    "ip",
    "direction",
    "ports",
    "addresses",
    "networks",
    "mix",
    "ttl",
    "dscp",
    "df",
    "ignore_checksums",
    "flow_label",
    "mac",
    "flows",
    "flows_by",
    "initiator",
    "connections",
    "order",
    "responder_order",
    "source_ports",
    "destination_ports",
    "source_addresses",
    "destination_addresses",
    "public_addresses",
    "table_size",
    "phase1_rate",
)
"""Settings of the traffic, beside the frame sizes."""
TRAFFIC_IF_SET = (
    "beside",
    "port_pairs",
    "port_pattern",
    "ports_reverse",
    "fragmented",
    "ipv6_headers",
    "ipv4_options",
    "routes",
    "route_changes",
    "management",
    "burst_frames",
)
"""The same, told only if they are asked for: not set is a setting, too."""


def is_by_the_book(result: CellResult) -> bool:
    """Whether nothing lets a lossy rate pass, or makes of late frames lost ones."""
    lossy = any(goal.loss_ratio or goal.exceed_ratio for goal in result.goals[:1])
    verified = result.verified_by is not None
    settings = any(map(result.parameters.get, OTHER_MEASURE))
    return not (lossy or verified or settings)
