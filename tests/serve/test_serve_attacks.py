"""What somebody does who wants nobody else to be served."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvicorn
from report_sample import search
from served import client, open_run, stored_run

from dutperf import serve
from dutperf.serve import app

PATIENCE_S = 60
HALF = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Rest: "
WITHOUT_BODY = b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n"


class Served:
    """The server in this process, and what is sent to it."""

    def __init__(self, host: str, port: int) -> None:
        self._at = (host, port)
        self._closing = contextlib.AsyncExitStack()

    async def send(
        self, request: bytes
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*self._at)
        self._closing.callback(writer.close)
        writer.write(request)
        return reader, writer

    async def status(self, path: str = "/") -> bytes:
        reader, _ = await self.send(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
        )
        line, *_ = (await reader.read()).split(b"\r\n")
        return line


@contextlib.asynccontextmanager
async def served(root: Path) -> AsyncIterator[Served]:
    listening = serve.listen("127.0.0.1", 0)
    guard = client(root).app
    serving = uvicorn.Server(serve.settings(guard))
    running = asyncio.create_task(serving.serve(sockets=[listening]))
    found = Served(*listening.getsockname())
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield found
    finally:
        await found._closing.aclose()
        serving.should_exit = serving.force_exit = True
        await running


def test_half_sent_requests_lock_nobody_out(tmp_path: Path) -> None:
    stored_run(tmp_path / "r")

    async def attack() -> bytes:
        async with served(tmp_path) as at:
            for _ in range(300):
                await at.send(HALF)
            return await at.status()

    assert asyncio.run(attack()) == b"HTTP/1.1 200 OK"


def test_those_who_are_answered_are_not_put_out_by_half_sent_requests(
    tmp_path: Path,
) -> None:
    records = search(1, "throughput-ip4-64-both", 306_700)

    async def attack() -> None:
        async with served(tmp_path) as at:
            events, _ = await at.send(b"GET /events?run=r HTTP/1.1\r\nHost: x\r\n\r\n")
            await events.readuntil(b"1 trial so far")
            for _ in range(300):
                await at.send(HALF)
            assert await at.status() == b"HTTP/1.1 200 OK"
            run.append(records[1])
            await events.readuntil(b"2 trials so far")

    with open_run(tmp_path / "r", records[:1]) as run:
        asyncio.run(attack())


@pytest.mark.parametrize("request_", [b"", HALF, WITHOUT_BODY])
def test_who_sends_no_whole_request_is_cut_off_however_often_a_byte_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request_: bytes
) -> None:
    records = search(1, "throughput-ip4-64-both", 306_700)
    monkeypatch.setattr(serve, "_REQUEST_S", 0.2)
    monkeypatch.setattr(app, "_POLL_S", 0.01)

    async def attack() -> None:
        async with served(tmp_path) as at:
            events, _ = await at.send(b"GET /events?run=r HTTP/1.1\r\nHost: x\r\n\r\n")
            await events.readuntil(b"1 trial so far")
            reader, writer = await at.send(request_)
            ended = asyncio.create_task(reader.read())
            while not ended.done():
                with contextlib.suppress(ConnectionError):
                    writer.write(b"x" if request_ else b"")
                    await asyncio.sleep(0.01)
            with contextlib.suppress(ConnectionError):
                await ended
            # Who follows a run sends nothing more, and is not cut off.
            run.append(records[1])
            await events.readuntil(b"2 trials so far")

    with open_run(tmp_path / "r", records[:1]) as run:
        asyncio.run(attack())
