"""What ``dutperf lab list`` says, told without loading the commands or any model."""

from __future__ import annotations

from dataclasses import asdict

from dutperf import lab
from dutperf.visible import versioned_json, visible

_LIST_VERSION = 1


def listing(*, as_json: bool) -> str:
    """The labs that are up, and the runs that go on.

    Raises:
        SetupError: a lab is of another version.
    """
    if as_json:
        labs = [asdict(status) for status in lab.running()]
        runs = [{"who": who, "cpus": cpus} for who, cpus in lab.runs().items()]
        return versioned_json(_LIST_VERSION, {"labs": labs, "runs": runs})
    lines = [_line(status) for status in lab.running()] or ["no lab is up"]
    for who, cpus in lab.runs().items():
        lines.append(f"measuring: {who}  CPU {', '.join(map(str, cpus))}")
    return visible("\n".join(lines))


def _line(status: lab.LabStatus) -> str:
    name = "@".join(filter(None, [status.name, status.own_name]))
    owner = f"process {status.owner}" if status.owner else "kept"
    state = "" if status.alive else ", a remainder of a dead process"
    since = status.since.isoformat(" ", "seconds")
    told = [name, f"since {since}", f"{owner}{state}", _cpus(status)]
    return "  ".join(filter(None, [*told, ", ".join(status.links)]))


def _cpus(status: lab.LabStatus) -> str:
    """Whose they are: 'CPU 0 tester, 1 device'."""
    told = [
        f"{', '.join(map(str, cpus))} {what}"
        for what, cpus in sorted(status.cpus.items(), key=lambda each: list(each[1]))
        if cpus
    ]
    shared = " (shared)" if status.shares_cpus else ""
    return f"CPU {', '.join(told)}{shared}" if told else ""
