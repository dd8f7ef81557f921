"""``dutperf convert``: siitperf.conf as files of dutperf."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from dutperf.cli.console import PatientConsole, show_notice
from dutperf.compat.command_line import Arguments, Command, read_arguments
from dutperf.compat.conf import Conf, read_conf
from dutperf.compat.conversion import as_campaign, as_testbed, pci_ports
from dutperf.errors import InputError, SetupError

_TESTBED, _CAMPAIGN = "testbed.yaml", "campaign.yaml"
_COMMANDS: dict[str, Command] = {
    "siitperf-tp": "tp",
    "siitperf-lat": "lat",
    "siitperf-pdv": "pdv",
}

File = Annotated[
    Path, typer.Argument(metavar="FILE", help="a siitperf.conf", show_default=False)
]
Line = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[COMMAND ARGUMENT...]",
        help="siitperf-tp 84 1000000 60 2000 2 1: its whole search",
        show_default=False,
    ),
]
To = Annotated[
    Literal["testbed", "campaign"] | None,
    typer.Option(
        "--to",
        help="print this one; default: write both files",
        show_default=False,
    ),
]
Output = Annotated[
    Path,
    typer.Option("--output", metavar="DIR", help="where both files are written"),
]


def convert(
    file: File, line: Line = None, to: To = None, output: Output = Path()
) -> None:
    """Write siitperf.conf as a testbed and a campaign of dutperf."""
    conf = read_conf(file)
    for notice in conf.notices:
        show_notice(notice)
    arguments = _arguments(conf, line) if line else None
    if to == "campaign":
        _print(as_campaign(conf, arguments, _TESTBED))
        return
    try:
        ports = pci_ports()
    except SetupError as error:
        ports = None
        show_notice(f"{_TESTBED}: fill in the ports: {error.message}")
    if to == "testbed":
        _print(as_testbed(conf, ports))
        return
    texts = {
        _TESTBED: as_testbed(conf, ports),
        _CAMPAIGN: as_campaign(conf, arguments, _TESTBED),
    }
    for name, text in texts.items():
        _write(output / name, text)
    PatientConsole().out(
        f"{output / _TESTBED}, {output / _CAMPAIGN}; look at them, then: dutperf run "
        f"{output / _CAMPAIGN}",
        highlight=False,
    )


def _arguments(conf: Conf, line: list[str]) -> Arguments:
    command = _COMMANDS.get(Path(line[0]).name)
    if command is None:
        raise InputError(
            f"{line[0]!r} is no command of siitperf: {', '.join(_COMMANDS)}"
        )
    only_ipv4 = {side.version for side in conf.sides.values()} == {4}
    stateful = conf.initiator is not None
    found = read_arguments(command, line[1:], stateful=stateful, only_ipv4=only_ipv4)
    for notice in found.notices:
        show_notice(notice)
    return found


def _print(text: str) -> None:
    PatientConsole().out(text, end="", highlight=False)


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError as error:
        raise InputError(
            f"{error.filename} is there already",
            "take it away, or give another --output DIR",
        ) from None
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror}") from error
