"""A local web page of the runs below a directory: read only, no state of its own.

It lists them, shows and compares their reports, and follows the one that goes on. Here
is where the pages are to be had, until somebody ends the process.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import secrets
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from dutperf.errors import InputError, SetupError
from dutperf.serve.app import Compare, make_app
from dutperf.serve.live import PlannedCells

_MOST_CONNECTIONS = 200
_REQUEST_S = 10
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
    listening = listen(host, port)
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
        _Server(settings(app)).run(sockets=[listening])


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are the command's: it has nothing to end in good order."""
        yield


class HttpConnection(H11Protocol):
    """Nobody is locked out by connections on which no whole request comes.

    uvicorn has no timeout for them. They are closed ``_REQUEST_S`` after they began, or
    after the last answer; and the oldest of them at once where it is one too many.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See asyncio."""
        super().connection_made(transport)
        self._wait_for_request()
        waiting = [
            other
            for other in self.connections
            if isinstance(other, HttpConnection) and other.waits
        ]
        if len(self.connections) >= _MOST_CONNECTIONS and waiting[1:]:
            oldest = min(waiting, key=lambda other: other.waits_since_s)
            self.connections.discard(oldest)
            oldest.transport.abort()

    @property
    def waits(self) -> bool:
        """Whether no request is being answered."""
        return self.cycle is None or self.cycle.response_complete

    def on_response_complete(self) -> None:
        """See uvicorn."""
        self._wait_for_request()  # before the next one, which may be there already
        super().on_response_complete()

    def _wait_for_request(self) -> None:
        self.waits_since_s = self.loop.time()
        self.loop.call_later(_REQUEST_S, self._close_unasked, self.cycle)

    def _close_unasked(self, last: RequestResponseCycle | None) -> None:
        """What is on its way to a slow reader is still sent."""
        if self.cycle is last:
            self.transport.close()


def settings(app: ASGIApp) -> uvicorn.Config:
    """Quiet, and with limits."""
    return uvicorn.Config(
        app,
        http=HttpConnection,
        backlog=_MOST_CONNECTIONS,
        lifespan="off",
        ws="none",
        log_config=None,
        log_level="critical",
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
    )


def listen(host: str, port: int) -> socket.socket:
    """A socket there; port 0 takes a free one.

    Raises:
        InputError, SetupError: as ``serve``.
    """
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
