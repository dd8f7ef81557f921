"""Who may take part: TLS by certificates, or this machine alone.

Whoever reaches a scheduler can have its workers run anything, and workers are root. So
without certificates nothing listens, and nothing is asked, but on the loopback.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from dutperf.errors import InputError
from dutperf.plain_files import read_plain

if TYPE_CHECKING:
    from distributed import Security

LOOPBACK = "127.0.0.1"
PORT = 8786
_HINT = "give --tls-ca, --tls-cert and --tls-key, and an address tls://HOST:PORT"


@dataclass(frozen=True)
class Certificates:
    """Files in PEM: who is trusted, and who this is; all three or none."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    @property
    def given(self) -> bool:
        """Whether TLS is asked for.

        Raises:
            InputError: only some were given, or a file cannot be read.
        """
        files = {"--tls-ca": self.ca, "--tls-cert": self.cert, "--tls-key": self.key}
        missing = [option for option, file in files.items() if file is None]
        if len(missing) == len(files):
            return False
        if missing:
            raise InputError(
                f"{' and '.join(missing)} must be given, too: TLS needs all three",
                "the CA's certificate, and this host's certificate and key, in PEM",
            )
        for option, file in files.items():
            try:
                read_plain(file or Path())
            except OSError as error:
                raise InputError(f"{option} {file}: {error.strerror}") from error
        return True

    def security(self) -> Security:
        """Dask's; without certificates plain TCP."""
        from distributed import Security  # noqa: PLC0415 - Dask takes a while to load

        if not self.given:
            return Security(require_encryption=False)
        pairs = {
            f"tls_{role}_{what}": str(file)
            for role in ("client", "scheduler", "worker")
            for what, file in (("cert", self.cert), ("key", self.key))
        }
        return Security(tls_ca_file=str(self.ca), require_encryption=True, **pairs)


def checked_address(address: str, certificates: Certificates) -> str:
    """The address of a scheduler, complete.

    Raises:
        InputError: it is none, or not one that may be asked like that.
    """
    kind = "tls" if certificates.given else "tcp"
    full = address if "://" in address else f"{kind}://{address}"
    try:
        parts = urlsplit(full)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("tcp", "tls"):
        raise InputError(
            f"{address} is not the address of a scheduler",
            f"it is like tcp://{LOOPBACK}:{PORT}, or with certificates tls://HOST:{PORT}",
        )
    if parts.scheme != kind:
        raise InputError(
            f"{address}: certificates were given, which tcp:// does not use"
            if kind == "tls"
            else f"{address} needs certificates",
            f"with certificates the address is tls://{host}:{port or PORT}"
            if kind == "tls"
            else "give --tls-ca, --tls-cert and --tls-key",
        )
    check_loopback(host, certificates)
    shown = f"[{host}]" if ":" in host else host
    return f"{kind}://{shown}:{port or PORT}"


def check_loopback(host: str, certificates: Certificates) -> None:
    """Refuse anything but the loopback without certificates.

    Raises:
        InputError: ``host`` is elsewhere, or nobody knows it.
    """
    if certificates.given:
        return
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise InputError(
            f"no host is called {host}: {error.strerror or error}",
            "give an address like tcp://HOST:PORT",
        ) from error
    if not all(ipaddress.ip_address(str(each)).is_loopback for each in found):
        raise InputError(
            f"{host} is not this machine: without TLS only the loopback is used, as "
            "whoever reaches a scheduler can have its workers run anything",
            _HINT,
        )
