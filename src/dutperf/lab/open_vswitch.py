"""Open vSwitch with DPDK as the DUT: its two processes, its ports, its rules."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from dutperf.errors import SetupError
from dutperf.lab import processes, topology
from dutperf.lab.devices.device import LabDevice
from dutperf.lab.devices.open_flow import BRIDGE, ROUTED, RUN
from dutperf.lab.state import PROC, ChangedSetting, Process, named
from dutperf.programs import feed

PAGES = Path("/proc/sys/vm/nr_hugepages")
PACKAGE = "openvswitch-switch-dpdk"
_FREE_PAGES = Path("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages")
_MEMORY_MB = 512
_PAGE_MB = 2
_SWITCH = "/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk"
_SCHEMA = Path("/usr/share/openvswitch/vswitch.ovsschema")
_POLL_THREAD = "pmd-"
_POLL_NICE = -20
_TRIES_S = 30.0


def check_programs() -> None:
    """Raise SetupError, which names the Debian package, if one is missing."""
    for program in (_SWITCH, "ovsdb-server", "ovsdb-tool", "ovs-vsctl", "ovs-ofctl"):
        topology.check_program(program, PACKAGE)


def pages_to_reserve() -> tuple[ChangedSetting, ...]:
    """The kernel's setting for as many huge pages as it needs, if they are not free.

    Raises:
        SetupError: this machine has no huge pages of 2 MiB.
    """
    if not _FREE_PAGES.exists():
        raise SetupError(
            "Open vSwitch with DPDK needs huge pages of 2 MiB; this kernel has none",
            "use a kernel with CONFIG_HUGETLBFS",
        )
    missing = _MEMORY_MB // _PAGE_MB - int(_FREE_PAGES.read_text("ascii"))
    if missing <= 0:
        return ()
    now = int(PAGES.read_text("ascii"))
    return (ChangedSetting(path=PAGES, before=now, meanwhile=now + missing),)


def check_pages(settings: tuple[ChangedSetting, ...]) -> None:
    """Give back what the kernel has reserved, if it is less than asked for.

    Raises:
        SetupError: it is less.
    """
    for setting in settings:
        got = int(setting.path.read_text("ascii"))
        if got < setting.meanwhile:
            setting.path.write_text(f"{setting.before}\n", "ascii")
            raise SetupError(
                f"Open vSwitch with DPDK needs {_MEMORY_MB} MiB of huge pages, and the "
                f"kernel found {(got - setting.before) * _PAGE_MB} MiB in such pieces",
                "free memory, or reserve them after a restart: "
                f"echo {setting.meanwhile} > {PAGES}",
            )


def start(
    device: LabDevice,
    cpu: int,
    directory: Path,
    record: Callable[[Process], None],
) -> None:
    """Starts it as ``device`` says, with its poll thread on ``cpu``.

    ``directory`` takes its files. ``record`` is called before each process runs, which
    goes on after this one has ended.

    Raises:
        SetupError: it does not start, or does not take ports or rules.
    """
    run = directory / RUN
    run.mkdir()
    database = run / "db.sock"
    _call("ovsdb-tool", "create", str(run / "conf.db"), str(_SCHEMA))
    _run(
        ["ovsdb-server", str(run / "conf.db"), f"--remote=punix:{database}"],
        run / "db",
        device,
        cpu,
        record,
        database.exists,
    )
    ask = ["ovs-vsctl", f"--db=unix:{database}", f"--timeout={_TRIES_S:.0f}"]
    _call(*ask, "--no-wait", "init")
    _call(*ask, "--no-wait", "set", "Open_vSwitch", ".", *_options(device, cpu))
    switch = _run(
        [_SWITCH, f"unix:{database}"],
        run / "vs",
        device,
        cpu,
        record,
        (run / "vs.ctl").exists,
    )
    _call(*ask, *_bridge(run))
    rules = "".join(f"{rule}\n" for rule in device.rules)
    refused = feed(["ovs-ofctl", "add-flows", f"unix:{run / BRIDGE}.mgmt", "-"], rules)
    if refused:
        raise SetupError(f"Open vSwitch does not take its rules: {refused}")
    for side in topology.SIDES:
        _await_port(ask, side, run / "vs.log")
    _prefer_poll_thread(switch)


def _prefer_poll_thread(switch: Process) -> None:
    """Its other threads, on the same CPU, are to work when it can spare a moment.

    They do not forward, but the kernel would have it wait for them for milliseconds.
    """
    for task in (PROC / str(switch.pid) / "task").iterdir():
        if (task / "comm").read_text("utf-8").startswith(_POLL_THREAD):
            os.setpriority(os.PRIO_PROCESS, int(task.name), _POLL_NICE)


def _options(device: LabDevice, cpu: int) -> list[str]:
    mask = f"{1 << cpu:#x}"
    options = {
        "dpdk-init": "true",
        "dpdk-socket-mem": str(_MEMORY_MB),
        "dpdk-lcore-mask": mask,
        "pmd-cpu-mask": mask,
        # With random ports (RFC 4814) each frame is another flow: keeping them costs.
        "emc-insert-inv-prob": "0",
        "dpdk-extra": f"--no-pci --file-prefix={named('dutperf-ovs', device.own_name)}",
    }
    return [f'other_config:{key}="{value}"' for key, value in options.items()]


def _bridge(run: Path) -> list[str]:
    """Orders that make it with its ports, all at once."""
    words = ["add-br", BRIDGE, "--", "set", "bridge", BRIDGE]
    words += ["datapath_type=netdev", "fail_mode=secure"]
    for side, routed in ROUTED.items():
        device = (
            f"net_memif{routed.number},role=server,id={routed.number},"
            f"socket={run / 'memif'},socket-abstract=no"
        )
        words += ["--", "add-port", BRIDGE, side, "--", "set", "interface", side]
        words += ["type=dpdk", f"ofport_request={routed.number}"]
        words += [f'options:dpdk-devargs="{device}"']
    return words


def _await_port(ask: list[str], side: str, log: Path) -> None:
    """``ovs-vsctl`` returns when the port was tried, whether it works or not."""
    error = _call(*ask, "get", "interface", side, "error").strip()
    if error != "[]":
        raise SetupError(
            f"Open vSwitch cannot open its {side} port: {error}", f"see {log}"
        )


def _run(
    command: list[str],
    files: Path,
    device: LabDevice,
    cpu: int,
    record: Callable[[Process], None],
    runs: Callable[[], bool],
) -> Process:
    """One of the processes: ``files`` with .ctl and .log are its control and log."""
    log = files.with_suffix(".log")
    directories = [f"OVS_{name}={files.parent}" for name in ("RUNDIR", "LOGDIR")]
    process = processes.start(
        ["env", *directories, *command, f"--unixctl={files.with_suffix('.ctl')}"],
        namespace=device.namespaces[0],
        cpu=cpu,
        log=log,
        record=record,
    )
    processes.await_start(
        process,
        runs,
        Path(command[0]).name,
        log,
        f"it is in the Debian package {PACKAGE}",
    )
    return process


def _call(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SetupError(
            f"{command[0]} failed: {done.stderr.strip() or done.returncode}"
        )
    return done.stdout
