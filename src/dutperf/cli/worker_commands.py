"""``dutperf worker`` and ``dutperf scheduler``: hosts that measure for others."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated

import typer

from dutperf import busy, lab
from dutperf.api.places import surroundings
from dutperf.cli.console import PatientConsole
from dutperf.cli.options import TLS, TlsCa, TlsCert, TlsKey
from dutperf.config import Testbed, load_testbed
from dutperf.errors import InputError
from dutperf.model.fields import repeated
from dutperf.remote import security
from dutperf.remote.security import (
    LOOPBACK,
    PORT,
    WORKER,
    Certificates,
    checked_address,
)
from dutperf.remote.task import Post, Workshop
from dutperf.remote.worker import simulating
from dutperf.run.engine_session import check_rights


def worker(
    scheduler: Annotated[
        str,
        typer.Argument(metavar="ADDRESS", help="of the scheduler: tls://HOST:PORT"),
    ] = LOOPBACK,
    testbed: Annotated[
        list[Path],
        typer.Option(
            "--testbed", metavar="FILE", help="a testbed of this host; repeatable"
        ),
    ] = [],  # noqa: B006 - typer's way, nobody changes it
    lab_name: Annotated[
        list[str],
        typer.Option("--lab", metavar="NAME", help="a lab on this host; repeatable"),
    ] = [],  # noqa: B006
    simulate: Annotated[
        int | None,
        typer.Option(
            "--simulate",
            metavar="FPS",
            min=1,
            max=10**12,
            help="send nothing: devices are simulated that forward so much",
        ),
    ] = None,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    make_keys: Annotated[
        Path | None,
        typer.Option(
            "--make-keys",
            metavar="DIR",
            help="make keys of scheduler, runs and workers there, and nothing else",
            rich_help_panel=TLS,
        ),
    ] = None,
    host_name: Annotated[
        list[str],
        typer.Option(
            "--host",
            metavar="NAME",
            help="of a worker that gets a key; repeatable; default: this host",
            rich_help_panel=TLS,
        ),
    ] = [],  # noqa: B006
) -> None:
    """Measure at this host's testbeds what runs send by a scheduler."""
    if make_keys is not None:
        new = security.make_keys(make_keys, host_name or [socket.gethostname()])
        for folder in new:
            _tell(f"made {folder}")
        if not new:
            _tell(f"{make_keys} has them all already")
        return
    if host_name:
        raise InputError("--host is for --make-keys, which is missing", "leave it out")
    busy.wait_by_default()
    from dutperf.remote.worker import WorkerHost  # noqa: PLC0415 - of no other command

    certificates = Certificates(tls_ca, tls_cert, tls_key)
    address = checked_address(scheduler, certificates)
    certificates = certificates.or_own(WORKER)
    testbeds = [load_testbed(path) for path in testbed]
    _check_owned(testbeds, lab_name)
    around = surroundings()
    if simulate is not None:
        around = simulating(around, simulate)
    else:
        for each in (*testbeds, *map(lab.plan, lab_name)):
            check_rights(each)
    host = WorkerHost(
        address,
        certificates,
        Workshop(Post(), around, testbeds, lab_name, simulate is not None),
        _tell,
    )
    host.serve()


def scheduler(
    host: Annotated[
        str,
        typer.Option(metavar="HOST", help="where to listen"),
    ] = LOOPBACK,
    port: Annotated[
        int, typer.Option(metavar="PORT", min=0, max=65535, help="0: any that is free")
    ] = PORT,
    tls_ca: TlsCa = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
) -> None:
    """Bring runs and workers of many hosts together."""
    from dutperf.remote.worker import serve  # noqa: PLC0415 - of no other command

    serve(host, port, Certificates(tls_ca, tls_cert, tls_key), _tell)


def _check_owned(testbeds: list[Testbed], labs: list[str]) -> None:
    for name in labs:
        lab.plan(name)
    names = [*(each.name for each in testbeds), *labs]
    if not names:
        raise InputError(
            "a worker owns testbeds, and none was given",
            "give --testbed FILE, or --lab NAME",
        )
    twice = repeated(names)
    if twice is not None:
        raise InputError(
            f"testbed {names[twice]} was given twice",
            "different testbeds need different names: change the key name",
        )


def _tell(text: str) -> None:
    console = PatientConsole()
    console.out(text, highlight=False)
    console.file.flush()
