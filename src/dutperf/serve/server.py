"""Where the pages are to be had, until somebody ends the process."""

from __future__ import annotations

import errno
import ipaddress
import secrets
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

from dutperf.errors import InputError, SetupError
from dutperf.serve.app import Compare, make_app
from dutperf.serve.guard import Guard
from dutperf.serve.live import PlannedCells

_MOST_CONNECTIONS = 200
_TOKEN_BYTES = 24


def serve(
    root: Path,
    host: str,
    port: int,
    *,
    compare: Compare,
    planned: PlannedCells,
    tell: Callable[[str], None],
) -> None:
    """Serve the runs below ``root``; ``tell`` gets the address, once it can be opened.

    Args:
        root: a directory.
        host: a name or address of this machine.
        port: 0 takes a free one.
        compare: see ``make_app``.
        planned: see ``make_app``.
        tell: is told the address; away from the loopback interface it has a token.

    Raises:
        InputError: there is no such directory, or host.
        SetupError: the port cannot be had.
    """
    if not root.is_dir():
        raise InputError(
            f"{root} is no directory", "give the directory that your runs are in"
        )
    listening = _listen(host, port)
    with listening:
        address, actual = listening.getsockname()[:2]
        at = ipaddress.ip_address(address.partition("%")[0])
        token = None if at.is_loopback else secrets.token_urlsafe(_TOKEN_BYTES)
        names = {host.lower(), "localhost", "127.0.0.1", "[::1]", _bracketed(host)}
        hosts = frozenset(names) if token is None else frozenset()
        app = make_app(root.resolve(), compare, planned, token=token, hosts=hosts)
        name = socket.gethostname() if at.is_unspecified else host
        query = f"?token={token}" if token else ""
        tell(f"http://{_bracketed(name)}:{actual}/{query}")
        _run(app, listening)


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are the command's: it has nothing to end in good order."""
        yield


def _run(app: Guard, listening: socket.socket) -> None:
    config = uvicorn.Config(
        app,
        lifespan="off",
        ws="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
    )
    _Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise InputError(
            f"{host} is no name or address of a host",
            "give --host an address of this machine; 0.0.0.0 is all of them",
        ) from error
    try:
        return socket.create_server(address[:2], family=family)
    except OSError as error:
        raise SetupError(*_why_not(error, host, port)) from error


def _why_not(error: OSError, host: str, port: int) -> tuple[str, str]:
    if error.errno == errno.EADDRINUSE:
        return (
            f"port {port} of {host} is in use",
            "another dutperf serve may have it; or give another --port, 0 for any",
        )
    if error.errno == errno.EACCES:
        return f"port {port} is not for this user", "give a --port above 1023"
    if error.errno == errno.EADDRNOTAVAIL:
        return (
            f"{host} is no address of this machine",
            "give --host one that it has; 0.0.0.0 is all of them",
        )
    return f"cannot listen at {host}, port {port}: {error.strerror}", ""


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
