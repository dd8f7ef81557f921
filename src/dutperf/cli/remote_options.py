"""Options of all that takes part in measuring on many hosts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

TLS = "TLS between hosts"

TlsCa = Annotated[
    Path | None,
    typer.Option(
        "--tls-ca",
        metavar="FILE",
        help="certificate of the CA that all trust, PEM",
        rich_help_panel=TLS,
    ),
]
TlsCert = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert",
        metavar="FILE",
        help="certificate of this host, PEM",
        rich_help_panel=TLS,
    ),
]
TlsKey = Annotated[
    Path | None,
    typer.Option(
        "--tls-key", metavar="FILE", help="its private key, PEM", rich_help_panel=TLS
    ),
]
SchedulerAddress = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="measure at the workers of this scheduler",
    ),
]
