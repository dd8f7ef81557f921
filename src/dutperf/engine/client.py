"""The engine as the plan sees it: one method per call of the protocol.

Every call has a deadline, so nothing hangs for ever, and every way in which the engine
can fail the caller becomes an ``EngineError`` that says what to look at.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from pydantic import Field, ValidationError

from dutperf.errors import EngineError
from dutperf.protocol.base import Message
from dutperf.protocol.methods import (
    PROTOCOL_VERSION,
    ErrorObject,
    HelloResult,
    PreviewParams,
    PreviewResult,
)
from dutperf.protocol.port_messages import (
    NeighboursParams,
    NeighboursResult,
    PortsOpenParams,
    PortSpec,
    PortsResult,
)
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialProgress, TrialRequest

# The one way to measure anything: ``Measurer.measure(trial)``.


ProgressCallback = Callable[[TrialProgress], None]


def ignore_progress(_progress: TrialProgress) -> None:
    """For callers that do not watch."""


class Measurer(Protocol):
    """Runs one trial. Implemented by the engine client and by ``FakeEngine``."""

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        """Run ``trial`` to its end.

        Raises:
            EngineError: the engine refused the trial or died; no result exists.
        """
        ...


# JSON-RPC 2.0, one message a line, over the engine's Unix socket.
#
# This module knows lines and envelopes; what the methods mean is ``client``'s. Every
# wait has a deadline. What has been read of a line survives an interrupted wait, so a
# Ctrl-C between two bytes leaves the connection usable.


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


Answer = TypeVar("Answer", bound=Message)

START_TIMEOUT_S = 60.0
"""DPDK's start takes long when it has to zero many huge pages."""
CALL_TIMEOUT_S = 30.0
"""On top of the time that a call takes by its parameters."""
END_TIMEOUT_S = 5.0
"""For aborting and shutting down; the process is ended by force after that."""

_TELLING = re.compile(
    r"error|fatal|fail|cannot|can't|abort|panic|assert|check|exception|invalid|no such",
    re.IGNORECASE,
)
_HARMLESS = re.compile(r"libxdp|libbpf|bpffs|telemetry")


class Ending(NamedTuple):
    """How an engine ended, and, if that is known, what to do about it."""

    how: str
    hint: str = ""


class Nothing(Message):
    """The empty object: parameters or result of methods that need none."""


class Engine:
    """A running engine; implements ``Measurer``.

    For use by one thread; ``stop`` alone may come from another one.
    """

    def __init__(
        self,
        control: socket.socket,
        *,
        log_path: Path,
        how_it_ended: Callable[[], Ending] = lambda: Ending("its socket is closed"),
        end_timeout_s: float = END_TIMEOUT_S,
    ) -> None:
        self._connection = Connection(control)
        self._log_path = log_path
        self._how_it_ended = how_it_ended
        self._end_timeout_s = end_timeout_s
        self._sending = threading.Lock()
        """Who sends a request notes it before anybody looks for its answer."""
        self._unanswered: dict[int, str] = {}

    def hello(self) -> HelloResult:
        """Ask what the engine is.

        Raises:
            EngineError: it could not start, or it speaks another protocol version.
        """
        hello = self._call("engine.hello", Nothing(), HelloResult, START_TIMEOUT_S)
        if hello.protocol_version != PROTOCOL_VERSION:
            message = (
                f"the engine speaks protocol version {hello.protocol_version}, "
                f"this dutperf speaks {PROTOCOL_VERSION}"
            )
            hint = "build both from one source tree: run 'make setup'"
            raise EngineError(f"{message} (engine {hello.engine_version})", hint)
        return hello

    def open_ports(self, ports: list[PortSpec], shares: int = 1) -> PortsResult:
        """Open all ports, once per engine.

        ``shares``: in how many each direction's work may be split.

        Raises:
            EngineError: code ERROR_ENVIRONMENT when a device cannot be used.
        """
        params = PortsOpenParams(ports=ports, shares=shares)
        timeout_s = params.link_timeout_ns / 1e9 + CALL_TIMEOUT_S
        return self._call("ports.open", params, PortsResult, timeout_s)

    def port_status(self) -> PortsResult:
        """Ask for link states and counters."""
        return self._call("ports.status", Nothing(), PortsResult, CALL_TIMEOUT_S)

    def set_neighbours(self, params: NeighboursParams) -> NeighboursResult:
        """Set whom the ports answer for; resolve the next hops."""
        hops = sum(len(port.resolve) for port in params.ports)
        timeout_s = params.timeout_ns / 1e9 * max(hops, 1) + CALL_TIMEOUT_S
        return self._call("neighbours.set", params, NeighboursResult, timeout_s)

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        """Run ``trial`` to its end, see ``Measurer.measure``."""
        # A stuck sender gives up after ten lag limits (docs/adr/0001).
        stuck_s = 10 * trial.lag_limit_ns / 1e9
        timeout_s = planned_s(trial) + stuck_s + CALL_TIMEOUT_S
        return self._call(
            "trial.run",
            trial,
            TrialResult,
            timeout_s,
            during=f"trial {trial.trial_id}",
            on_progress=on_progress,
        )

    def preview(self, params: PreviewParams) -> PreviewResult:
        """Write the first frames of a trial to a pcap file; sends nothing."""
        return self._call("frames.preview", params, PreviewResult, CALL_TIMEOUT_S)

    def drop_table(self) -> None:
        """Free the memory of what was learned; without a table nothing happens."""
        self._call("table.drop", Nothing(), Nothing, CALL_TIMEOUT_S)

    def stop(self) -> None:
        """Have the running trial send no more: what it sent is accounted for as ever.

        From any thread, while another one measures: that one takes the answer. Without
        a trial nothing happens, and an engine that has ended tells whoever measures.
        """
        with self._sending, contextlib.suppress(ConnectionEndedError, DeadlineError):
            sent = self._connection.send("trial.stop", {})
            self._unanswered[sent] = "trial.stop"

    def abort(self) -> None:
        """End a running trial; its result is thrown away.

        For use after ``measure`` was left by an exception such as KeyboardInterrupt.
        """
        self._call("trial.abort", Nothing(), Nothing, self._end_timeout_s)

    def shutdown(self) -> None:
        """Ask the engine to end."""
        self._call("engine.shutdown", Nothing(), Nothing, self._end_timeout_s)

    def close(self) -> None:
        """Close the socket; an engine that is still there ends by that."""
        self._connection.close()

    def _call(
        self,
        method: str,
        params: Message,
        answer: type[Answer],
        timeout_s: float,
        during: str = "",
        on_progress: ProgressCallback = ignore_progress,
    ) -> Answer:
        """One request and its answer; ``during`` names the call in errors."""
        during = during or method
        deadline_s = time.monotonic() + timeout_s
        try:
            with self._sending:
                sent = self._connection.send(method, params.model_dump(), timeout_s)
                self._unanswered[sent] = method
            response = self._await(sent, deadline_s, on_progress)
        except ConnectionEndedError as error:
            raise self._ended(during) from error
        except DeadlineError as error:
            raise self._silent(during, timeout_s) from error
        return _result(method, response, answer)

    def _await(
        self, sent: int, deadline_s: float, on_progress: ProgressCallback
    ) -> Response:
        while True:
            message = self._connection.receive(deadline_s)
            if isinstance(message, Notification):
                _notify(message, on_progress)
                continue
            answered = sent if message.id is None else message.id
            with self._sending:
                known = self._unanswered.pop(answered, None)
            if known is None:
                raise EngineError(
                    f"the engine answered request {message.id}, which nobody made",
                    f"this is a defect in the engine; see {self._log_path}",
                )
            # The answer to a call that was left by an exception is of no use.
            if answered == sent:
                return message

    def _ended(self, during: str) -> EngineError:
        how, hint = self._how_it_ended()
        line = last_log_line(self._log_path)
        message = f"the engine ended ({how}) during {during}; see {self._log_path}"
        return EngineError(f"{message}: {line}" if line else message, hint)

    def _silent(self, during: str, timeout_s: float) -> EngineError:
        line = last_log_line(self._log_path)
        message = f"the engine did not answer within {timeout_s:g} s during {during}"
        hint = f"see {self._log_path}" + (f": {line}" if line else "")
        return EngineError(message, hint)


def planned_s(trial: TrialRequest) -> float:
    """How long ``trial`` takes by its parameters, in seconds."""
    planned_ns = trial.settle_ns + trial.duration_ns + trial.residual_wait_ns
    planned_ns += trial.not_before_ns
    return planned_ns / 1e9


def last_log_line(log_path: Path) -> str:
    """The last line of the engine's log that tells of trouble, or nothing."""
    try:
        text = log_path.read_text(errors="replace")
    except OSError:
        return ""
    lines = [line.strip() for line in text.splitlines()]
    telling = [s for s in lines if _TELLING.search(s) and not _HARMLESS.search(s)]
    return telling[-1] if telling else ""


def _result(method: str, response: Response, answer: type[Answer]) -> Answer:
    if response.error:
        error = response.error
        raise EngineError(error.message, error.data.hint, error.code)
    try:
        return answer.model_validate(response.result)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise EngineError(
            f"the engine's answer to {method} is not understood: "
            f"{where}: {first['msg']}",
            "engine and plan must come from one build: run 'make setup' again",
        ) from error


def _notify(message: Notification, on_progress: ProgressCallback) -> None:
    if message.method != "trial.progress":
        raise EngineError(
            f"the engine sent the unknown notification {message.method}",
            "engine and plan must come from one build: run 'make setup' again",
        )
    try:
        progress = TrialProgress.model_validate(message.params)
    except ValidationError as error:
        raise EngineError(
            f"the engine's trial.progress is not understood: {error.errors()[0]['msg']}"
        ) from error
    on_progress(progress)
