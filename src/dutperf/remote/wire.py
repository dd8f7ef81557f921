"""The connections of scheduler, workers and runs: frames of JSON over mutual TLS.

A frame is its length in four bytes, then one of the models below. What comes is parsed
by them alone: nothing that a peer sends is ever loaded as an object, or executed.
Workers and runs connect to the scheduler, which passes calls on; so it alone listens.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, TypeAdapter, ValidationError

from dutperf.errors import InputError, SetupError
from dutperf.remote.security import Certificates
from dutperf.results.stored import Stored

WIRE_VERSION = 1
CONNECT_S = 10.0
_LENGTH_BYTES = 4
_MOST_BYTES = 256 << 20
"""A frame: what a testbed has stored when its run is resumed is the longest."""


class Hello(Stored):
    """The first frame of a worker, or of a run, which owns no testbeds."""

    kind: Literal["hello"] = "hello"
    version: int = WIRE_VERSION
    name: str
    testbeds: list[str] = Field(default=[])


class Members(Stored):
    """The scheduler tells each run which workers there are, by their addresses."""

    kind: Literal["members"] = "members"
    workers: list[str]


class Call(Stored):
    """What a run wants of the worker ``to``; which keys it has depends on ``what``."""

    kind: Literal["call"] = "call"
    number: int
    to: str
    what: Literal["claim", "fetch", "alive", "stop", "measure"]
    run: str = ""
    answers: dict[int, str] = Field(default={})
    keys: list[str] = Field(default=[])
    ticket: str = ""


class Reply(Stored):
    """Of a worker to the call ``number``; of the scheduler to Hello, which is 0.

    ``refused``: why nothing was done.
    """

    kind: Literal["reply"] = "reply"
    number: int = 0
    text: str = ""
    refused: str = ""


Frame = Hello | Members | Call | Reply
_FRAME: TypeAdapter[Frame] = TypeAdapter(Annotated[Frame, Field(discriminator="kind")])


class Line:
    """One connection, in the loop where it was made."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader, self._writer = reader, writer
        # A host that lost its power says nothing: it has gone after half a minute.
        own: socket.socket = writer.get_extra_info("socket")
        for option, value in (
            (socket.TCP_KEEPIDLE, 15),
            (socket.TCP_KEEPINTVL, 5),
            (socket.TCP_KEEPCNT, 3),
            (socket.TCP_USER_TIMEOUT, 30_000),
        ):
            own.setsockopt(socket.IPPROTO_TCP, option, value)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    @property
    def peer(self) -> str:
        """Its address, of which there is one at a time."""
        host, port = self._writer.get_extra_info("peername")[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def role(self) -> str:
        """What its certificate lets it be; empty: it says nothing."""
        subject = self._writer.get_extra_info("peercert")["subject"]
        names = dict(name for part in subject for name in part)
        return str(names.get("organizationalUnitName", ""))

    async def receive(self) -> Frame:
        """The next frame.

        Raises:
            OSError: the connection has gone, or what came is no frame.
        """
        try:
            length = int.from_bytes(await self._reader.readexactly(_LENGTH_BYTES))
            if length > _MOST_BYTES:
                raise ConnectionError(f"a frame of {length} bytes")
            return _FRAME.validate_json(await self._reader.readexactly(length))
        except (EOFError, ValidationError) as error:
            raise ConnectionError(str(error)) from error

    def send(self, frame: Frame) -> None:
        """Without waiting; who does not take it is cut off.

        Raises:
            InputError: it is too long.
        """
        if self._writer.is_closing():
            return
        text = frame.model_dump_json().encode()
        if len(text) > _MOST_BYTES:
            raise InputError(
                f"{len(text) >> 20} MiB for one testbed are too much to be sent",
                "divide the campaign",
            )
        self._writer.write(len(text).to_bytes(_LENGTH_BYTES))
        self._writer.write(text)
        if self._writer.transport.get_write_buffer_size() > 2 * _MOST_BYTES:
            self._writer.transport.abort()

    async def close(self) -> None:
        """Send what waits, for a while at most."""
        self._writer.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), CONNECT_S)
        except (OSError, TimeoutError):
            self._writer.transport.abort()


async def connect(address: str, certificates: Certificates, hello: Hello) -> Line:
    """Join the scheduler at ``address``.

    Raises:
        SetupError: none answers, or it does not trust this certificate, nor this it.
        InputError: it refuses.
    """
    parts = urlsplit(address)
    context = certificates.context(is_server=False)
    try:
        async with asyncio.timeout(CONNECT_S):
            line = Line(
                *await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
            )
            line.send(hello)
            reply = await line.receive()
    except (OSError, TimeoutError) as error:
        raise no_scheduler(address, certificates) from error
    if isinstance(reply, Reply) and not reply.refused:
        return line
    await line.close()
    if not isinstance(reply, Reply):
        raise no_scheduler(address, certificates)
    message, _, hint = reply.refused.partition("\n")
    raise InputError(message, hint)


def no_scheduler(address: str, certificates: Certificates) -> SetupError:
    """Nothing, or something else, is at ``address``."""
    host, _, port = address.partition("://")[2].rpartition(":")
    return SetupError(
        f"no scheduler that {certificates.ca} has signed answers at {address}",
        f"start one: dutperf scheduler --host {host} --port {port}, with keys of the "
        "same CA (or of the same user); a firewall may be in the way",
    )
