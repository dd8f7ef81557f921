"""JSON-RPC 2.0, one message a line, over the engine's Unix socket.

This module knows lines and envelopes; what the methods mean is ``client``'s. Every
wait has a deadline. What has been read of a line survives an interrupted wait, so a
Ctrl-C between two bytes leaves the connection usable.
"""

from __future__ import annotations

import json
import socket
import time
from typing import Any, Literal

from pydantic import Field, ValidationError

from dutperf.errors import EngineError
from dutperf.protocol import ErrorObject, Message

_READ_BYTES = 1 << 16
_LONGEST_LINE_BYTES = 1 << 26
_REBUILD_HINT = "engine and plan must come from one build: run 'make setup' again"


class Response(Message):
    """The answer to the request ``id``; null: the engine could not read the request."""

    jsonrpc: Literal["2.0"]
    id: int | None
    result: dict[str, Any] | None = None
    error: ErrorObject | None = None


class Notification(Message):
    """A message that no request asked for."""

    jsonrpc: Literal["2.0"]
    method: str
    params: dict[str, Any] = Field(default_factory=dict)


class ConnectionEndedError(Exception):
    """The other side closed the socket (the engine ended)."""


class DeadlineError(Exception):
    """Nothing complete arrived in time."""


class Connection:
    """Sends requests and receives messages.

    Two threads may be here, one that receives and one that sends without a timeout of
    its own; who sends, one at a time.
    """

    def __init__(self, control: socket.socket) -> None:
        self._socket = control
        self._unread = bytearray()
        self._last_id = 0

    def send(
        self, method: str, params: dict[str, Any], timeout_s: float | None = None
    ) -> int:
        """Send one request and return its id.

        Without ``timeout_s`` it takes as long as what is done meanwhile may take.

        Raises:
            ConnectionEndedError, DeadlineError: it could not be sent.
        """
        self._last_id += 1
        request = {
            "jsonrpc": "2.0",
            "id": self._last_id,
            "method": method,
            "params": params,
        }
        line = json.dumps(request, separators=(",", ":")) + "\n"
        if timeout_s is not None:
            self._socket.settimeout(timeout_s)
        try:
            self._socket.sendall(line.encode())
        except TimeoutError as error:
            raise DeadlineError from error
        except OSError as error:
            raise ConnectionEndedError from error
        return self._last_id

    def receive(self, deadline_s: float) -> Response | Notification:
        """Return the next message; ``deadline_s`` is a ``time.monotonic`` value.

        Raises:
            ConnectionEndedError, DeadlineError: nothing complete came.
            EngineError: the line is not a JSON-RPC 2.0 message.
        """
        searched = 0
        while (end := self._unread.find(b"\n", searched)) < 0:
            searched = len(self._unread)
            self._read_more(deadline_s)
        line = bytes(self._unread[:end])
        del self._unread[: end + 1]
        return _parse(line)

    def close(self) -> None:
        """Close the socket; the engine ends when it sees that."""
        self._socket.close()

    def _read_more(self, deadline_s: float) -> None:
        remaining_s = deadline_s - time.monotonic()
        if remaining_s <= 0:
            raise DeadlineError
        self._socket.settimeout(remaining_s)
        try:
            data = self._socket.recv(_READ_BYTES)
        except TimeoutError as error:
            raise DeadlineError from error
        except OSError as error:
            raise ConnectionEndedError from error
        if not data:
            raise ConnectionEndedError
        self._unread += data
        if len(self._unread) > _LONGEST_LINE_BYTES and b"\n" not in data:
            raise EngineError("the engine sent a line without end", _REBUILD_HINT)


def _parse(line: bytes) -> Response | Notification:
    try:
        message = json.loads(line)
        if not isinstance(message, dict):
            raise _not_understood(line, "it is not an object")
        if "method" in message:
            return Notification.model_validate(message)
        response = Response.model_validate(message)
    except (ValueError, RecursionError) as error:
        raise _not_understood(line, _first_line(error)) from error
    if (response.result is None) == (response.error is None):
        raise _not_understood(line, "it needs exactly one of result and error")
    return response


def _not_understood(line: bytes, why: str) -> EngineError:
    start = line[:120].decode(errors="replace")
    message = f"the engine sent a line that is not JSON-RPC 2.0 ({why}): {start}"
    return EngineError(message, _REBUILD_HINT)


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error).splitlines()[0]
