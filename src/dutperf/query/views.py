"""What is known of runs: the views that SQL sees.

Columns are told as SQL would: a name, DuckDB's type, and what they mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_COLUMN = re.compile(r"^ +(\w+) ([A-Z]+(?:\[\])?): (.+(?:\n {8}.+)*)$", re.MULTILINE)


@dataclass(frozen=True)
class Column:
    """One column; ``type`` is DuckDB's."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class View:
    """One view; ``own``: its columns beside those that all have."""

    name: str
    meaning: str
    own: tuple[Column, ...]

    @property
    def columns(self) -> tuple[Column, ...]:
        """What SQL sees: a name that begins with ``_`` is hidden."""
        return (*OF_RUN, *(c for c in self.own if not c.name.startswith("_")))


def _columns(told: str) -> tuple[Column, ...]:
    """``name TYPE: meaning``, a line each; lines that go on are indented further."""
    return tuple(
        Column(name, kind, " ".join(meaning.split()))
        for name, kind, meaning in _COLUMN.findall(told)
    )


OF_RUN = _columns("""
    run VARCHAR: Directory of the run.
    campaign VARCHAR: Name of the campaign.
    created_at TIMESTAMP: When the run began, UTC.
""")
"""What each view says of the run."""
RESULTS = View(
    "results",
    "A row for each figure: a loss curve has one for each load, delays one for each "
    "measure, direction and stream.",
    _columns("""
    device VARCHAR: Name of the lab or testbed.
    cell VARCHAR: Id of the test case in its run.
    procedure VARCHAR: As the command.
    ip VARCHAR: IP versions of the frames, left and right: 4, 6, 6-4, 4-6.
    frame_size BIGINT: Bytes with FCS, as asked for; null: a mix of sizes.
    sizes VARCHAR: The same in words: both sides of a translator, the name of a mix.
    traffic VARCHAR: Label of the traffic profile; null: that of the RFC.
    broadcast_percent DOUBLE: Broadcast frames in the load, in percent; null: none.
    hop_by_hop_percent DOUBLE: Frames with a hop-by-hop header in the load, in percent;
        null: none.
    spoofed_percent DOUBLE: Frames with another customer edge's address in the load, in
        percent; null: none.
    flood_percent DOUBLE: New connections of a flood in the initiator's load, in
        percent; null: none.
    flows BIGINT: Network flows in each direction, where that was chosen.
    connections BIGINT: That a stateful test opened.
    judged VARCHAR: What makes the figure another one than the RFC's; null: nothing.
    figure VARCHAR: What the figure is: throughput, frame loss, TL, WCL, PDV, ...
    direction VARCHAR: Of its frames: both, forward, reverse.
    stream VARCHAR: Of delays: foreground or background.
    load_percent DOUBLE: Of a loss curve: the load, in percent of the maximum or the
        throughput.
    load_fps DOUBLE: The load at which loss or delay was measured, or the overload; per
        direction.
    rate_fps DOUBLE: Throughput, frames/s per direction.
    loss_percent DOUBLE: Frame loss at the load.
    burst_frames DOUBLE: Longest burst without loss, per direction.
    delay_ns DOUBLE: Latency, PDV, IPDV, recovery, outage; infinite: too many frames
        were lost.
    queries_per_s DOUBLE: Queries of DNS answered in a second.
    connections_per_s DOUBLE: Connections opened or torn down in a second.
    capacity_connections DOUBLE: Connections that the device's table holds.
    energy_nj_per_bit DOUBLE: Energy per bit forwarded at full load, nanojoules.
    bound VARCHAR: lower: the figure is that much, or more; upper: or less; below: less;
        null: it is exact.
    bound_cause VARCHAR: What kept the tester from asking for more: tester, set,
        nominal, ...
    verdict VARCHAR: pass: there is a figure that may be quoted; invalid: there is none.
    interval_lower DOUBLE: Lower end of the interval of the median, in the figure's
        unit; null: too few repeats.
    interval_upper DOUBLE: Its upper end; null also where it may be higher.
    dispersion_percent DOUBLE: (99th - 1st percentile) / median of the repeats.
    repeats DOUBLE[]: Each valid repeat, in the figure's unit.
    repeats_at_least BIGINT: How many of these are lower bounds.
    trials BIGINT: That the test case took.
    passport_percent DOUBLE: The rate in percent of what is safe for the tester; null:
        unknown.
    media_percent DOUBLE: The throughput in percent of what the medium carries; null: no
        medium.
    beside_sent_frames BIGINT: Such frames beside the stream, in the figure's directions
        and the trials that passed; null: none.
    beside_received_frames BIGINT: Of these: that came, though none had to.
    queries_asked BIGINT: SNMP queries in the trials that passed; null: without
        management.
    queries_answered BIGINT: Of these: with a value of each variable.
    queries_wrong BIGINT: Answered with an error, without some values, or damaged.
    queries_slowest_ns BIGINT: The slowest answer, from when its query was due; null:
        none came.
    quantity VARCHAR: What the result of the test case is, in words.
    conformance VARCHAR: unconditional, conditional, none, other_measure (RFC 2544 5).
    settings JSON: All settings of the test case: settings->>'trial_duration_s'.
    _leads BOOLEAN: Whether it is a figure that the test case is known by.
    _unit VARCHAR: Of the value.
    _value DOUBLE: The figure; null: there is none.
    _begun VARCHAR: When the run began, as stored.
    """),
)
TRIALS = View(
    "trials",
    "A row for each trial, also of a run that was interrupted; frames of all "
    "directions and streams together.",
    _columns("""
    device VARCHAR: Name of the lab or testbed.
    cell VARCHAR: Id of the test case in its run.
    procedure VARCHAR: As the command.
    trial BIGINT: Its number in the run, from 1.
    repeat BIGINT: Of the test case, from 1.
    attempt BIGINT: 2 and up: an invalid trial run again.
    role VARCHAR: trial: the test case's own; others prepare or check: first_frames,
        probe, phase1, validation, damage, cache.
    started_at TIMESTAMP: UTC.
    load_fps BIGINT: What each direction was asked to send, frames/s.
    duration_s DOUBLE: How long frames were sent.
    verdict VARCHAR: pass; fail: the device lost frames; invalid: the tester cannot
        tell.
    reasons VARCHAR[]: Codes of what led to the verdict.
    intended_frames BIGINT: Of all directions and streams.
    sent_frames BIGINT: Of these: that left the tester.
    received_frames BIGINT: Distinct frames that came back.
    lost_frames BIGINT: Sent and not received.
    lost_frames_forward BIGINT: Of those sent from left to right; null: none were.
    lost_frames_reverse BIGINT: Of those sent from right to left; null: none were.
    loss_percent DOUBLE: Lost, of those sent; late ones are not lost here.
    late_frames BIGINT: Received after the frame timeout.
    duplicate_frames BIGINT: That came once more.
    reordered_frames BIGINT: That a later one overtook.
    damaged_frames BIGINT: That arrived damaged: lost.
    shadow_lost_frames BIGINT: Of those lost: sent in a recovery window.
    longest_loss_frames BIGINT: Most frames of a stream lost in a row; null: none was
        lost.
    longest_loss_ns BIGINT: How long these were due; null: none was lost, or none came
        any more.
    beside_sent_frames BIGINT: Beside the streams, which need not be forwarded; null:
        none.
    beside_received_frames BIGINT: Of these: that came nevertheless.
    delay_min_ns DOUBLE: Shortest delay of all frames received; null: not recorded.
    delay_median_ns DOUBLE: Their median, as fine as the histogram.
    delay_p99_ns DOUBLE: Their 99th percentile.
    delay_max_ns DOUBLE: The longest.
    lag_max_ns BIGINT: How late a frame left the tester at most.
    stalls BIGINT: How often the sender was late and made up for it with a burst.
    """),
)
ENVIRONMENT = View(
    "environment",
    "A row for each testbed of each run: machine, versions, ports, seed.",
    _columns("""
    device VARCHAR: Name of the lab or testbed.
    dut VARCHAR: The device under test, as described.
    started_at TIMESTAMP: UTC.
    dutperf_version VARCHAR: Who measured.
    engine_version VARCHAR: Its engine.
    dpdk_version VARCHAR: DPDK of the engine.
    os VARCHAR: Operating system of the tester.
    kernel VARCHAR: Its kernel.
    cpu_model VARCHAR: Its processor.
    cpus_total BIGINT: CPUs of the machine.
    cores_used BIGINT[]: CPUs of the engine's workers.
    turbo BOOLEAN: Null: the machine does not say.
    hypervisor BOOLEAN: Whether it is a virtual machine.
    memory_mb BIGINT: Memory of the machine.
    hugepages_used BOOLEAN: Whether the engine used huge pages.
    left_driver VARCHAR: How the engine drives the left port: af_xdp, af_packet, pci,
        ...
    left_link_mbps BIGINT: Link speed that it names; null: it does not say.
    right_driver VARCHAR: How the engine drives the right port: af_xdp, af_packet, pci,
        ...
    right_link_mbps BIGINT: Link speed that it names; null: it does not say.
    seed BIGINT: Of the campaign's random values.
    """),
)
FINDINGS = View(
    "findings",
    "A row for each thing that a reader of results should know: verdicts, repeats "
    "that do not agree, deviations from the RFCs, the machine, what was not measured.",
    _columns("""
    device VARCHAR: Name of the lab or testbed.
    cell VARCHAR: Id of the test case; null: it is about all of them.
    about VARCHAR: verdict, repeats, frames, deviation, machine, run.
    kind VARCHAR: The same for the same thing: a reason's code, a check's name, an RFC's
        section.
    message VARCHAR: In words.
    remedy VARCHAR: What to do.
    """),
)
VIEWS = (RESULTS, TRIALS, ENVIRONMENT, FINDINGS)
"""What SQL sees."""
RUNS = View(
    "runs",
    "A row for each run that was read.",
    _columns("""
    _fingerprint VARCHAR: Of the files that were read.
    _notice VARCHAR: Why it was left out; empty: it was not.
    """),
)
TABLES = (*VIEWS, RUNS)
"""What is kept."""
