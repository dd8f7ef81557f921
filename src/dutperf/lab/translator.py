"""TAYGA as the DUT: its tunnel, its routes, its process."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from dutperf.errors import SetupError
from dutperf.lab import processes, topology
from dutperf.lab.devices.device import Translator
from dutperf.lab.state import Process
from dutperf.programs import in_namespace

TUNNEL_FRAMES = 500
"""Linux's own queue in a tunnel: TUN_READQ_SIZE, drivers/net/tun.c."""


def start(
    translator: Translator,
    namespace: str,
    cpu: int | None,
    directory: Path,
    record: Callable[[Process], None],
) -> None:
    """Makes the tunnel and its routes, starts TAYGA and waits until it translates.

    It works in ``namespace``; ``directory`` takes its files. ``record`` is called
    before TAYGA itself runs, which goes on after this process has ended, on ``cpu``
    alone if one is given.

    Raises:
        SetupError: the tunnel cannot be made, or TAYGA ended or did not take it.
    """
    settings = _settings(translator, directory)
    settings.write_text(configuration(translator, directory), "ascii")
    _make_tunnel(in_namespace(namespace, *_tayga(settings), "--mktun"))
    _route(translator, namespace)
    run(translator, namespace, cpu, directory, record)


def run(
    translator: Translator,
    namespace: str,
    cpu: int | None,
    directory: Path,
    record: Callable[[Process], None],
) -> None:
    """The part of ``start`` that is TAYGA itself; its tunnel is there, and free.

    Raises:
        SetupError: TAYGA ended, or did not take the tunnel.
    """
    log = directory / f"tayga-{translator.tunnel}.log"
    process = processes.start(
        [*_tayga(_settings(translator, directory)), "--nodetach"],
        namespace=namespace,
        cpu=cpu,
        log=log,
        record=record,
    )
    processes.await_start(
        process,
        lambda: topology.has_carrier(namespace, translator.tunnel),
        "TAYGA",
        log,
        "it needs the right to open /dev/net/tun",
    )


def configuration(translator: Translator, directory: Path) -> str:
    """The text of tayga.conf."""
    lines = [
        f"tun-device {translator.tunnel}",
        f"ipv4-addr {translator.ipv4}",
        f"ipv6-addr {translator.ipv6}",
        f"data-dir {directory}",
        *([f"prefix {translator.prefix}"] if translator.prefix else []),
        *(f"map {ipv4} {ipv6}" for ipv4, ipv6 in translator.pairs),
    ]
    return "\n".join(lines) + "\n"


def queue_frames(translator: Translator, namespace: str) -> int:
    """How many frames the kernel keeps for TAYGA in the tunnel."""
    path = f"/sys/class/net/{translator.tunnel}/tx_queue_len"
    shown = topology.read_settings(namespace, [path])
    return int(shown.get(path, TUNNEL_FRAMES))


def _settings(translator: Translator, directory: Path) -> Path:
    return directory / f"tayga-{translator.tunnel}.conf"


def _tayga(settings: Path) -> list[str]:
    return ["tayga", "--config", str(settings)]


def _make_tunnel(command: list[str]) -> None:
    result = subprocess.run(
        command,
        stdout=subprocess.PIPE,  # where TAYGA complains
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if result.returncode != 0:
        raise SetupError(
            f"cannot make TAYGA's tunnel: {result.stdout.strip()}",
            "needs a kernel with CONFIG_TUN, and /dev/net/tun in a container",
        )


def _route(translator: Translator, namespace: str) -> None:
    # The lab's other settings are inherited; this one, per device only, is not.
    key = f"net.ipv6.conf.{translator.tunnel}.addr_gen_mode"
    topology.write_settings(
        namespace, {topology.sysctl_path(key): topology.NO_GENERATED_ADDRESSES}
    )
    mtu = f"mtu {translator.mtu} " if translator.mtu else ""
    topology.run_ip(
        namespace,
        [
            f"link set {translator.tunnel} {mtu}up",
            *(f"route add {n} dev {translator.tunnel}" for n in translator.networks),
        ],
    )
