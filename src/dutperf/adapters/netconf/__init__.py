"""dutperf as a network tester by NETCONF: draft-ietf-bmwg-network-tester-cfg.

``datastore`` knows YANG, ``traffic`` what generators send and analyzers count,
``operations`` the protocol's own; here is what carries it: SSH (RFC 6242).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

try:
    import asyncssh

    from dutperf.adapters.netconf.datastore import BASE, RpcError, parsed
    from dutperf.adapters.netconf.operations import Server
except ModuleNotFoundError as missing:
    from dutperf.errors import SetupError

    raise SetupError(
        f"NETCONF needs the Python package {missing.name}",
        "pip install 'dutperf[netconf]'",
    ) from None

from dutperf.adapters.stl.client import tester_at
from dutperf.errors import InputError
from dutperf.plain_files import read_plain
from dutperf.serve import listen

_MOST_BYTES = 1_000_000
"""Of a message."""
_MOST_SESSIONS = 16
_MOST_CONNECTIONS = 50
_LOGIN_S = 10
_END = b"]]>]]>"
_CHUNK = re.compile(rb"\n#([1-9][0-9]{0,9})\n")
_CHUNKS_END = b"\n##\n"
_CHUNK_BEGUN = re.compile(rb"(\n(#(#|[1-9][0-9]{0,9})?)?)?")
_BASE_1_1 = "urn:ietf:params:netconf:base:1.1"

_OF_SSH = (
    asyncssh.Error,
    asyncssh.BreakReceived,
    asyncssh.SignalReceived,
    asyncssh.TerminalSizeChanged,
)
"""What a client of SSH may do in the midst of a message."""

Reader = asyncssh.SSHReader[bytes]
Process = asyncssh.SSHServerProcess[bytes]


class _TooLongError(Exception):
    """Or framed as no message is."""


class _Messages:
    """Messages of one session, in both ways of framing (RFC 6242 4)."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._buffer = b""
        self.chunked = False

    async def read(self) -> bytes:
        """The next one.

        Raises:
            EOFError: there is none.
            _TooLongError: see there.
        """
        return await (self._of_chunks() if self.chunked else self._to_mark())

    def framed(self, message: bytes) -> bytes:
        """The same, to be sent."""
        if self.chunked:
            return b"\n#%d\n%b%b" % (len(message), message, _CHUNKS_END)
        return message + _END

    async def _more(self) -> None:
        came = await self._reader.read(65536)
        if not came:
            raise EOFError
        self._buffer += came

    def _taken(self, size: int) -> bytes:
        taken, self._buffer = self._buffer[:size], self._buffer[size:]
        return taken

    async def _to_mark(self) -> bytes:
        while _END not in self._buffer:
            if len(self._buffer) > _MOST_BYTES:
                raise _TooLongError
            await self._more()
        message = self._taken(self._buffer.index(_END))
        self._taken(len(_END))
        return message

    async def _of_chunks(self) -> bytes:
        message = b""
        while True:
            while not (found := _CHUNK.match(self._buffer)):
                if message and self._buffer.startswith(_CHUNKS_END):
                    self._taken(len(_CHUNKS_END))
                    return message
                if not _CHUNK_BEGUN.fullmatch(self._buffer):
                    raise _TooLongError
                await self._more()
            size = int(found[1])
            if len(message) + size > _MOST_BYTES:
                raise _TooLongError
            self._taken(found.end())
            while len(self._buffer) < size:
                await self._more()
            message += self._taken(size)


class _Sessions:
    """Those that are open, by their numbers."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._open: dict[int, Process] = {}
        self._last = 0
        self._loop = asyncio.get_running_loop()
        server.kill = self._kill

    def _kill(self, session: int) -> bool:
        process = self._open.pop(session, None)
        if process is not None:
            self._loop.call_soon_threadsafe(process.close)
        return process is not None

    async def handle(self, process: Process) -> None:
        """One channel of a client's, from its hello on."""
        if process.subsystem != "netconf" or len(self._open) >= _MOST_SESSIONS:
            process.exit(1)
            return
        self._last += 1
        session = self._last
        self._open[session] = process
        try:
            await self._talk(session, process)
        except (EOFError, _TooLongError, RpcError, OSError, *_OF_SSH):
            pass  # the session ends
        finally:
            self._open.pop(session, None)
            await asyncio.to_thread(self._server.ended, session)
            process.exit(0)

    async def _talk(self, session: int, process: Process) -> None:
        messages = _Messages(process.stdin)
        process.stdout.write(messages.framed(self._server.hello(session)))
        hello = parsed(await messages.read())
        told = [each.text for each in hello.iter(f"{{{BASE}}}capability")]
        messages.chunked = _BASE_1_1 in told
        goes_on = True
        while goes_on:
            message = await messages.read()
            reply, goes_on = await asyncio.to_thread(
                self._server.answer, session, message
            )
            process.stdout.write(messages.framed(reply))
            await process.stdout.drain()


class _Connection(asyncssh.SSHServer):
    """One of not too many, for others of this machine may connect, too."""

    count = 0

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """See asyncssh."""
        _Connection.count += 1
        if _Connection.count > _MOST_CONNECTIONS:
            conn.abort()

    def connection_lost(self, _exc: Exception | None) -> None:
        """See asyncssh."""
        _Connection.count -= 1


def serve_netconf(
    where: str, port: int, keys: Path, tell: Callable[[str], None]
) -> None:
    """Serve on this machine alone, until a signal ends it.

    Args:
        where: the file of a testbed, ``lab:NAME`` or ``simulated:FPS``.
        port: 0 takes a free one.
        keys: who may: public keys, as ``sshd`` has them in ``authorized_keys``.
        tell: is told address and key of the server, as a line of ``known_hosts``.

    Raises:
        InputError, SetupError: it is no such place, the port cannot be had, or ``keys``
            cannot be used.
    """
    authorized = _authorized(keys)
    with tester_at(where) as tester:
        server = Server(tester)
        try:
            asyncio.run(_serve(server, port, authorized, tell))
        finally:
            server.end()


def _authorized(keys: Path) -> asyncssh.SSHAuthorizedKeys:
    try:
        return asyncssh.import_authorized_keys(read_plain(keys, _MOST_BYTES).decode())
    except (OSError, ValueError) as error:
        raise InputError(
            f"{keys}: no public keys: {error}",
            "give --keys a file as ~/.ssh/authorized_keys",
        ) from None


async def _serve(
    server: Server,
    port: int,
    authorized: asyncssh.SSHAuthorizedKeys,
    tell: Callable[[str], None],
) -> None:
    own = asyncssh.generate_private_key("ssh-ed25519")
    with listen("127.0.0.1", port) as listening:
        acceptor = await asyncssh.listen(
            sock=listening,
            server_factory=_Connection,
            process_factory=_Sessions(server).handle,
            encoding=None,
            server_host_keys=[own],
            authorized_client_keys=authorized,
            password_auth=False,
            kbdint_auth=False,
            login_timeout=_LOGIN_S,
            allow_pty=False,
            compression_algs=["none"],
            config=None,
        )
        async with acceptor:
            number = listening.getsockname()[1]
            public = own.export_public_key().decode().strip()
            tell(f"[127.0.0.1]:{number} {public}")
            await acceptor.wait_closed()
