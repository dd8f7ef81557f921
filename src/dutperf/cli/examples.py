"""Examples at the end of a command's help; each is a whole command line."""

from __future__ import annotations

from dutperf.catalogue import PROCEDURES

EXAMPLES: dict[str, tuple[str, ...]] = {
    "run": (
        "dutperf run examples/demo.yaml --quick",
        "dutperf run examples/demo.yaml --dry-run",
        "dutperf run --resume results/demo-20260304T050607",
    ),
    "stream": (
        "dutperf stream --lab tayga-siit --rate 10k",
        "dutperf stream testbed.yaml --rate 100000 --frame-size 1518",
        "dutperf stream testbed.yaml --rate 1.5M --plain --duration 60 --json",
    ),
    "frames": (
        "dutperf frames --lab linux-router --pcap frames.pcap --count 10",
        "dutperf frames testbed.yaml --pcap frames.pcap --imix aaafg",
    ),
    "selftest": ("dutperf selftest --lab linux-router --quick",),
    "report": ("dutperf report results/demo-20260304T050607",),
    "verify": ("dutperf verify results/demo-20260304T050607",),
} | {name: known.examples for name, known in PROCEDURES.items()}


def epilog(command: str) -> str | None:
    """The examples of ``command``, a line each; None: it has none."""
    lines = EXAMPLES.get(command)
    return "\n\n".join(("Examples:", *lines)) if lines else None
