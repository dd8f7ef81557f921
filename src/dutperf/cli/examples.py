"""Examples at the end of a command's help; each is a whole command line."""

from __future__ import annotations

_LAB = "--lab known-answer --quick"
EXAMPLES: dict[str, tuple[str, ...]] = {
    "run": (
        "dutperf run examples/demo.yaml --quick",
        "dutperf run examples/demo.yaml --dry-run",
        "dutperf run --resume results/demo-20260304T050607",
    ),
    "throughput": (
        f"dutperf throughput {_LAB}",
        "dutperf throughput testbed.yaml --standard --frame-size all",
        "dutperf throughput testbed.yaml --repeats auto --interval-width 0.5%",
    ),
    "frame-loss": (
        f"dutperf frame-loss {_LAB}",
        "dutperf frame-loss testbed.yaml --rate 90000 --load 110 --load 100",
    ),
    "back-to-back": (
        f"dutperf back-to-back {_LAB}",
        "dutperf back-to-back testbed.yaml --longest-burst 2 --repeats 50",
    ),
    "latency": (
        f"dutperf latency {_LAB} --rate throughput",
        "dutperf latency testbed.yaml --rate 100000 --tags 500",
    ),
    "pdv": (
        f"dutperf pdv {_LAB} --rate throughput",
        "dutperf pdv testbed.yaml --rate throughput",
    ),
    "ipdv": (
        f"dutperf ipdv {_LAB} --rate throughput",
        "dutperf ipdv testbed.yaml --rate 100000",
    ),
    "system-recovery": (
        f"dutperf system-recovery {_LAB}",
        "dutperf system-recovery testbed.yaml --throughput 100000 --repeats 20",
    ),
    "outage": (
        f"dutperf outage {_LAB} --rate 10000",
        "dutperf outage testbed.yaml --rate 100000 --trial-duration 300",
    ),
    "stream": (
        "dutperf stream --lab tayga-siit --rate 10k",
        "dutperf stream testbed.yaml --rate 100000 --frame-size 1518",
        "dutperf stream testbed.yaml --rate 1.5M --plain --duration 60 --json",
    ),
    "connection-rate": ("dutperf connection-rate --lab nft-nat44 --connections 10000",),
    "table-capacity": (
        "dutperf table-capacity --lab nft-nat44 --most 100000 --first 1000",
    ),
    "teardown-rate": (
        "dutperf teardown-rate --lab nft-nat44 --connections 10000 --rate 5000",
    ),
    "frames": (
        "dutperf frames --lab linux-router --pcap frames.pcap --count 10",
        "dutperf frames testbed.yaml --pcap frames.pcap --imix aaafg",
    ),
    "selftest": ("dutperf selftest --lab linux-router --quick",),
    "report": ("dutperf report results/demo-20260304T050607",),
    "verify": ("dutperf verify results/demo-20260304T050607",),
}


def epilog(command: str) -> str | None:
    """The examples of ``command``, a line each; None: it has none."""
    lines = EXAMPLES.get(command)
    return "\n\n".join(("Examples:", *lines)) if lines else None
