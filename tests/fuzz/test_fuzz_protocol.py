"""Whatever the engine says, only EngineError comes out of the client, and in time."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzzing import DEEP, as_bytes, damaged_bytes, damaged_data, seeded
from hypothesis import given
from protocol_files import body, golden, names

from dutperf.engine.client import Engine
from dutperf.errors import EngineError
from dutperf.protocol.trial_messages import TrialRequest

LOG = Path("/nowhere/engine.log")
TRIAL = TrialRequest.model_validate(body(golden("trial.run.params")))
CALLS: dict[str, Callable[[Engine], object]] = {
    "engine.hello": Engine.hello,
    "ports.status": Engine.port_status,
    "trial.run": lambda engine: engine.measure(TRIAL),
}


def _sample(name: str) -> Any:  # noqa: ANN401 - JSON
    """The golden message, as if the first request had asked for it."""
    message = golden(name)
    return message | ({"id": 1} if "id" in message else {})


ANSWERS = {
    method: [_sample(name) for name in names("result") if name.startswith(method)]
    for method in CALLS
}
FAILURES = [_sample("error"), _sample("trial.progress")]


def told(method: str, said: bytes) -> None:
    """Ask ``method`` of an engine that says ``said`` and is gone."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22)
        theirs.sendall(said)
        theirs.shutdown(socket.SHUT_WR)
        engine = Engine(ours, log_path=LOG)
        with contextlib.suppress(EngineError):
            CALLS[method](engine)


@pytest.mark.parametrize("method", ANSWERS)
def test_the_samples_are_answers(method: str) -> None:
    for message in ANSWERS[method]:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            theirs.sendall(as_bytes(message) + b"\n")
            CALLS[method](Engine(ours, log_path=LOG))


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\n",
        b"\x00\n",
        b"\xff\n",
        b"NaN\n",
        b"1e999\n",
        DEEP.encode() + b"\n",
        b'{"jsonrpc": "2.0", "id": 1, "result": ' + b'{"a":' * 100_000 + b"\n",
        b'{"jsonrpc": "2.0", "id": ' + b"9" * 5000 + b', "result": {}}\n',
        b'{"jsonrpc": "2.0", "id": 1e999, "result": {}}\n',
        b'{"jsonrpc": "2.0", "method": "trial.progress"}\n',
        b'{"jsonrpc": "2.0", "method": 3}\n',
        b'{"jsonrpc": "2.0", "id": null, "error": {"code": 1}}\n',
    ],
)
def test_what_is_no_message_is_an_engine_error(said: bytes) -> None:
    for method in ANSWERS:
        told(method, said)


@pytest.mark.parametrize("method", ANSWERS)
def test_damaged_lines_are_at_most_refused(method: str) -> None:
    messages = [*ANSWERS[method], *FAILURES]
    samples = [as_bytes(message) + b"\n" for message in messages]

    @seeded
    @given(damaged_bytes(samples))
    def check(said: bytes) -> None:
        told(method, said)

    check()


@pytest.mark.parametrize("method", ANSWERS)
def test_other_values_are_at_most_refused(method: str) -> None:
    @seeded
    @given(damaged_data([*ANSWERS[method], *FAILURES]))
    def check(message: Any) -> None:  # noqa: ANN401 - JSON
        told(method, json.dumps(message).encode() + b"\n")

    check()
