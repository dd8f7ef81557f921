"""A file by HTTP through a device that delays, loses or holds up frames (paper 004).

    client 198.18.0.2 ---- device, a router ---- 198.19.0.2 server
           wget              dutperf-refdut             nginx

Run it as root: ``python examples/papers/004/http_download.py``. It makes three network
namespaces of its own and removes them whatever happens. What the paper did by tc and
iptables, on what goes from server to client only, the known-answer device does here.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from http_figure import write_figure

from dutperf import lab
from dutperf.errors import DutperfError, InputError, SetupError
from dutperf.lab.refdut_socket import KnownAnswer
from dutperf.programs import find_program, postponed_signals, terminate_as_interrupt

CLIENT, DEVICE, SERVER = NAMESPACES = tuple(
    f"dutperf-http-{part}" for part in ("client", "device", "server")
)
FILES = Path("/run/dutperf-http")
URL = "http://198.19.0.2/file"
ROUTING = {"left": ["198.18.0.1"], "right": ["198.19.0.1"]}
LINE_MBPS = 1000
"""Both ends send at most so fast, as the paper's did: Gigabit Ethernet."""
ROUND_TRIP_US = 300
"""What a loss costs grows with the round trip. The paper does not tell its own, of
network cards that wait before they interrupt; with this one 1 % loss costs as much.
"""
OFFLOADS = ("gro", "gso", "tso", "tx", "rx")
SETTINGS = {
    "tcp_rmem": "4096 131072 6291456",  # Linux's own values, whatever the machine's
    "tcp_wmem": "4096 16384 4194304",
    "tcp_no_metrics_save": "1",  # no download starts with what another one learnt
}
CONGESTION_CONTROLS = ("cubic", "reno")  # the paper's; what every kernel has
MILLISECOND = 1_000_000
RFC_2544_TRIAL_S = 60
GIGABIT_FPS = 81_274  # frames of 1518 bytes, RFC 5180 A.1
EXIT_INTERRUPTED = 130


@dataclass(frozen=True)
class Case:
    """What the device does to the frames from server to client, and what it led to.

    Attributes:
        paper_s: the paper's median, of 10,000 MiB.
        rfc2544_percent: of the maximum rate: what a throughput test would find.
        met: how many frames the rule saw and chose, in each download.
        times_s: None where the limit was exceeded.
    """

    name: str
    rule: dict[str, Any] | None
    paper_s: float
    rfc2544_percent: float = 100.0
    met: list[tuple[int, int]] = field(default_factory=list)
    times_s: list[float | None] = field(default_factory=list)

    @property
    def median_s(self) -> float | None:
        """None if it is beyond the limit, or nothing was measured."""
        if not self.times_s:
            return None
        ordered = [float("inf") if t is None else t for t in self.times_s]
        median = statistics.median(ordered)
        return None if median == float("inf") else median


def delayed(ms: int, paper_s: float) -> Case:
    """Every frame is late; RFC 2544 waits two seconds for it."""
    return Case(f"{ms} ms delay", {"do": {"delay_ns": ms * MILLISECOND}}, paper_s)


def losing(percent: float, paper_s: float) -> Case:
    """Frames are lost at random.

    A trial of N frames without a loss is as likely as not where N = ln 2 / loss ratio.
    """
    ratio = percent / 100
    frames = 0.693 / ratio
    return Case(
        f"{percent:g} % loss",
        {"probability": ratio, "do": "drop"},
        paper_s,
        rfc2544_percent=100 * frames / RFC_2544_TRIAL_S / GIGABIT_FPS,
    )


def late(every: int, ms: int, paper_s: float) -> Case:
    """One frame of ``every`` is late."""
    return Case(
        f"{100 / every:g} % late by {ms} ms",
        {"every": every, "do": {"delay_ns": ms * MILLISECOND}},
        paper_s,
    )


def all_cases() -> list[Case]:
    """Those of the paper's Tables I, III and IV, but for a second of delay."""
    return [
        Case("undisturbed", None, 89.11),
        delayed(10, 89.19),
        delayed(100, 377.5),
        losing(0.01, 89.14),
        losing(0.1, 89.44),
        losing(1, 188.7),
        late(1000, 100, 89.26),
        late(100, 100, 218.1),
        late(1000, 1000, 89.26),
        late(100, 1000, 218.0),
    ]


# --- The network: three namespaces, two wires -----------------------------------------


def run(*command: str, timeout_s: float = 10, check: bool = True) -> str:
    """Its standard output; raises SetupError with what it said if it failed."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout_s, check=False
    )
    if check and done.returncode != 0:
        said = done.stderr.strip() or f"exit code {done.returncode}"
        raise SetupError(f"{' '.join(command)}: {said}")
    return done.stdout


def inside(namespace: str, *command: str) -> tuple[str, ...]:
    """``command`` as it is run in ``namespace``."""
    return ("ip", "netns", "exec", namespace, *command)


def remove_all() -> None:
    """Removes what this run made, or a killed one left; Ctrl-C has to wait."""
    with postponed_signals():
        for namespace in NAMESPACES:
            if not Path("/run/netns", namespace).exists():
                continue
            for pid in run("ip", "netns", "pids", namespace, check=False).split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            run("ip", "netns", "del", namespace)
        shutil.rmtree(FILES, ignore_errors=True)


def make_network() -> str:
    """Namespaces and wires, set up; the TCP congestion control that is in use."""
    for namespace in NAMESPACES:
        run("ip", "netns", "add", namespace)
        run(*inside(namespace, "sysctl", "-qw", "net.ipv6.conf.default.disable_ipv6=1"))
    make_wire("left", CLIENT, "198.18.0.2/24")
    make_wire("right", SERVER, "198.19.0.2/24")
    add_route(CLIENT, "198.18.0.1")
    return add_route(SERVER, "198.19.0.1")


def make_wire(side: str, namespace: str, address: str) -> None:
    """From the device's ``side`` to the end at ``namespace``; no offload anywhere."""
    peer = ("peer", "name", "wire", "netns", namespace)
    run("ip", "-n", DEVICE, "link", "add", "name", side, "type", "veth", *peer)
    for where, interface in ((DEVICE, side), (namespace, "wire")):
        switches = [word for name in OFFLOADS for word in (name, "off")]
        run(*inside(where, "ethtool", "-K", interface, *switches))
        run("ip", "-n", where, "link", "set", interface, "up")
    run("ip", "-n", namespace, "address", "add", address, "dev", "wire")
    line = ("rate", f"{LINE_MBPS}mbit", "burst", "64kb", "limit", "1500000")
    run("tc", "-n", namespace, "qdisc", "add", "dev", "wire", "root", "tbf", *line)
    for name, value in SETTINGS.items():
        run(*inside(namespace, "sysctl", "-qw", f"net.ipv4.{name}={value}"))


def add_route(namespace: str, router: str) -> str:
    """Through the device; with CUBIC, as the paper's TCP, if the kernel has it.

    The route says it: a namespace may only choose what its machine allows to all.
    """
    route = ("ip", "-n", namespace, "route", "add", "default", "via", router)
    for name in CONGESTION_CONTROLS:
        with contextlib.suppress(SetupError):
            run(*route, "congctl", name)
            return name
    raise SetupError(f"this kernel has none of {', '.join(CONGESTION_CONTROLS)}")


# --- The three programs ---------------------------------------------------------------


@contextlib.contextmanager
def started(command: tuple[str, ...], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A program beside this one; it gets no Ctrl-C, and is ended with the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for(path: Path, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the program has made ``path``, which says that it is ready."""
    deadline = time.monotonic() + 20
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            said = log.read_text(errors="replace").strip()
            raise SetupError(f"{process.args[4]} did not start: {said}")  # type: ignore[index]
        time.sleep(0.02)


@contextlib.contextmanager
def running_device() -> Iterator[KnownAnswer]:
    """The router between the two wires, which can be told what to do."""
    config, control, log = (FILES / n for n in ("device.json", "control", "device.log"))
    config.write_text(json.dumps({"routing": ROUTING}))
    program = str(find_program("dutperf-refdut"))
    cpu = max(os.sched_getaffinity(0))
    ports = ("--left=af_packet:left", "--right=af_packet:right")
    options = (f"--config={config}", f"--control={control}", f"--cpu={cpu}")
    with started(inside(DEVICE, program, *ports, *options), log) as process:
        wait_for(control, process, log)
        introduce(SERVER, "198.19.0.1")
        introduce(CLIENT, "198.18.0.1")
        yield KnownAnswer(control)


def introduce(namespace: str, router: str) -> None:
    """The device knows a neighbour once it has had a frame from it: an ARP request."""
    say = (
        f"import socket as s; s.socket(type=s.SOCK_DGRAM).sendto(b'', ('{router}', 9))"
    )
    run(*inside(namespace, sys.executable, "-c", say))
    time.sleep(0.1)


@contextlib.contextmanager
def running_server(size_mb: int) -> Iterator[None]:
    """Nginx with one file; its configuration and logs are its own."""
    served = FILES / "served"
    served.mkdir()
    with (served / "file").open("wb") as file:
        file.truncate(size_mb * 1_000_000)
    temporary = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    paths = "\n".join(f"  {name}_temp_path {FILES}/{name};" for name in temporary)
    config, log, pid = (FILES / f"nginx.{end}" for end in ("conf", "log", "pid"))
    config.write_text(
        f"daemon off; user root; worker_processes 1; pid {pid}; error_log {log};\n"
        "events { worker_connections 64; }\n"
        f"http {{\n  access_log off; sendfile off; output_buffers 2 512k;\n{paths}\n"
        f"  server {{ listen 198.19.0.2:80; root {served}; }}\n}}\n"
    )
    command = ("nginx", "-p", str(FILES), "-e", str(log), "-c", str(config))
    with started(inside(SERVER, *command), log) as process:
        wait_for(pid, process, log)
        yield


def download(limit_s: float) -> float | None:
    """How long wget takes from its start to its end; None: longer than the limit."""
    wget = ("wget", "--no-config", "--no-proxy", "-q", "-t1", "-O", "/dev/null", URL)
    began = time.monotonic()
    try:
        run(*inside(CLIENT, *wget), timeout_s=limit_s)
    except subprocess.TimeoutExpired:
        return None
    return time.monotonic() - began


# --- The measurement ------------------------------------------------------------------


def measure(case: Case, device: KnownAnswer, arguments: argparse.Namespace) -> None:
    """One download more; each repeat draws another loss."""
    rules = [] if case.rule is None else [{"match": "other", **case.rule}]
    wires = {"match": "other", "do": {"delay_ns": 1000 * arguments.round_trip_us}}
    device.configure(
        {
            "seed": len(case.times_s) + 1,
            "forward": {"rules": [wires]},
            "reverse": {"rules": rules},
        }
    )
    case.times_s.append(download(arguments.limit_s))
    account = device.report().device["reverse"]
    case.met.extend((rule.reached, rule.chosen) for rule in account.other_rules)
    wait_until_empty(device)


def wait_until_empty(device: KnownAnswer) -> None:
    """No late frame of one download comes into the next."""
    deadline = time.monotonic() + 5
    while any(side.held for side in device.report().device.values()):
        if time.monotonic() > deadline:
            raise SetupError(
                "the device still holds frames", "is the machine too busy?"
            )
        time.sleep(0.05)


def measure_all(cases: list[Case], arguments: argparse.Namespace) -> str:
    """All cases once, then all again, as long as there is time; TCP's control."""
    deadline = time.monotonic() + arguments.total_s
    control = make_network()
    with running_device() as device, running_server(arguments.size_mb):
        failures = failed_frames(device)
        for repeat in range(arguments.repeats):
            for case in cases:
                longest = max((t or arguments.limit_s for t in case.times_s), default=0)
                if repeat and time.monotonic() + longest > deadline:
                    continue
                measure(case, device, arguments)
                said = seconds(case.times_s[-1], arguments.limit_s)
                print(f"  {repeat + 1}: {case.name}: {said} s", flush=True)
        failures = failed_frames(device) - failures
    if failures:
        print(
            f"warning: the device lost {failures} frames that it was not told to lose"
        )
    return control


def failed_frames(device: KnownAnswer) -> int:
    """Those for which the device had no buffer or no port."""
    return sum(side.other_failed for side in device.report().device.values())


def seconds(value: float | None, limit_s: float) -> str:
    """As the table has it."""
    return f"> {limit_s:g}" if value is None else f"{value:.2f}"


def relative(case: Case, reference: Case) -> float | None:
    """How many times as long as undisturbed; None if one of them took too long."""
    if case.median_s is None or reference.median_s is None:
        return None
    return case.median_s / reference.median_s


def print_table(cases: list[Case], limit_s: float) -> None:
    """Ours beside the paper's."""
    heads = ("device", "here: s", "times", "paper: s", "times", "RFC 2544 finds")
    row = "{:<22}{:>9}{:>8}{:>11}{:>8}{:>17}"
    print("\n" + row.format(*heads))
    for case in cases:
        times = relative(case, cases[0])
        print(
            row.format(
                case.name,
                seconds(case.median_s, limit_s),
                "" if times is None else f"{times:.2f}",
                f"{case.paper_s:.2f}",
                f"{case.paper_s / cases[0].paper_s:.2f}",
                f"{case.rfc2544_percent:.2g} %"
                if case.rfc2544_percent < 100
                else "100 %",
            )
        )


def as_json(
    cases: list[Case], arguments: argparse.Namespace, control: str
) -> dict[str, Any]:
    """All that was measured, and on what."""
    return {
        "schema_version": 1,
        "size_mb": arguments.size_mb,
        "limit_s": arguments.limit_s,
        "line_mbps": LINE_MBPS,
        "round_trip_us": arguments.round_trip_us,
        "congestion_control": control,
        "machine": {"kernel": platform.release(), "cpus": os.cpu_count()},
        "cases": [
            {
                "name": case.name,
                "rule": case.rule,
                "times_s": case.times_s,
                "median_s": case.median_s,
                "times_as_long": relative(case, cases[0]),
                "frames_met_and_chosen": case.met,
                "paper_s": case.paper_s,
                "paper_times_as_long": case.paper_s / cases[0].paper_s,
                "rfc2544_percent": case.rfc2544_percent,
            }
            for case in cases
        ],
    }


# --- The command ----------------------------------------------------------------------


def parse_arguments(argv: list[str] | None) -> argparse.Namespace:
    """The options, checked."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--size-mb", type=int, default=200, help="file; default 200")
    parser.add_argument("--repeats", type=int, default=3, help="at most; default 3")
    parser.add_argument(
        "--limit-s", type=float, default=20, help="of one download; default 20"
    )
    parser.add_argument(
        "--total-s",
        type=float,
        default=60,
        help="no repeat that would end later is begun; default 60",
    )
    parser.add_argument(
        "--round-trip-us",
        type=int,
        default=ROUND_TRIP_US,
        help="what the wires add to each round trip; default %(default)s",
    )
    parser.add_argument(
        "--only",
        action="append",
        metavar="CASE",
        help="one case, by its name in the table; may be given again",
    )
    parser.add_argument("--output", type=Path, help="folder for http.json, http.html")
    arguments = parser.parse_args(argv)
    if min(arguments.size_mb, arguments.repeats, arguments.limit_s) <= 0:
        parser.error("--size-mb, --repeats and --limit-s must be above 0")
    if arguments.round_trip_us < 0:
        parser.error("--round-trip-us must not be negative")
    return arguments


def choose(only: list[str] | None) -> list[Case]:
    """The undisturbed device, and the cases that are asked for."""
    cases = all_cases()
    names = {case.name for case in cases}
    if unknown := set(only or ()) - names:
        known = ", ".join(case.name for case in cases)
        raise InputError(f"no case {', '.join(sorted(unknown))}", f"there are: {known}")
    return [c for i, c in enumerate(cases) if i == 0 or only is None or c.name in only]


def check_machine() -> None:
    """Raises SetupError unless all is there, and the machine free to measure on."""
    if os.geteuid() != 0:
        raise SetupError("this makes network namespaces", "run it as root")
    for program in ("ip", "tc", "ethtool", "nginx", "wget"):
        if shutil.which(program) is None:
            raise SetupError(
                f"the program {program} is missing",
                "scripts/install-packages scripts/packages-papers.txt",
            )
    if lab.running():
        raise SetupError(
            "a lab is up: each would take the other's CPUs", "dutperf lab down"
        )


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Two of these would have the same namespaces; the name ends with the process."""
    with socket.socket(socket.AF_UNIX) as name:
        try:
            name.bind("\0dutperf-http")
        except OSError as error:
            raise SetupError("another download is being measured", "wait") from error
        yield


def main(argv: list[str] | None = None) -> int:
    """Measures, prints and writes; the exit code."""
    arguments = parse_arguments(argv)
    try:
        cases = choose(arguments.only)
        check_machine()
        with terminate_as_interrupt(), alone():
            remove_all()
            FILES.mkdir(mode=0o700)
            try:
                control = measure_all(cases, arguments)
            finally:
                remove_all()
        print_table(cases, arguments.limit_s)
        print(f"TCP: {control}, file: {arguments.size_mb} MB, line: {LINE_MBPS} Mbit/s")
        if arguments.output is not None:
            arguments.output.mkdir(parents=True, exist_ok=True)
            result = as_json(cases, arguments, control)
            (arguments.output / "http.json").write_text(json.dumps(result, indent=1))
            write_figure(result, arguments.output / "http.html")
            print(
                f"written: {arguments.output}/http.json, {arguments.output}/http.html"
            )
    except DutperfError as error:
        print(f"error: {error}\nhint: {error.hint or 'see above'}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted; all that was made is removed", file=sys.stderr)
        return EXIT_INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
