"""One question to the known-answer device; as a program, what its last trial was like.

    python3 -I -S asking.py SOCKET              the account of the last trial
    python3 -I -S asking.py SOCKET connections  how many its table holds, as a gateway
    python3 -I -S asking.py SOCKET clear        empties the table at once
    python3 -I -S asking.py SOCKET delete       ... at the speed it was told, and waits

It loads next to nothing of Python and nothing of dutperf: it is run after each trial.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator, Mapping

TYPE_CHECKING = False  # as typing's, which takes a sixth of the time
if TYPE_CHECKING:
    from typing import Any

TIMEOUT_S = 10.0
DELETION_TIMEOUT_S = 600.0
POLL_S = 0.001
MOST_BYTES = 64 << 20
"""Of an answer; that of eight trials with every loss in it is a few megabytes."""
_CLASSES = ("foreground", "background")
_CREDENTIALS = struct.Struct("iII")
"""Of the other end: process, user, group; see unix(7)."""


def ask(path: str, message: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of the device that listens on ``path``; it may be an error of its.

    Raises:
        OSError: it does not answer, or not as the device does, or is somebody else's.
    """
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(path)
        _check_owner(connection)
        with contextlib.suppress(BrokenPipeError):  # what it said before may tell why
            connection.sendall(json.dumps(message).encode() + b"\n")
        answer = connection.makefile("rb").readline(MOST_BYTES)
    if not answer.endswith(b"\n"):
        raise ConnectionError("it closed the connection")
    try:
        content = json.loads(answer)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not _is_told(content.get("error")):
        raise ConnectionError("its answer is none of a known-answer device")
    return content


def _check_owner(connection: socket.socket) -> None:
    """A process of another user could answer anything."""
    size = _CREDENTIALS.size
    found = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    _, user, _ = _CREDENTIALS.unpack(found)
    if user not in {0, os.geteuid()}:
        raise PermissionError(f"it is a process of user {user}; it is not root's")


def _is_told(error: object) -> bool:
    """Whether ``error`` is none, or one that can be told."""
    if error is None:
        return True
    keys = ("message", "hint")
    return isinstance(error, dict) and all(isinstance(error.get(k), str) for k in keys)


def told(report: Mapping[str, Any]) -> Iterator[str]:
    """A line for each direction and class of the last trial that had frames.

    And one for the receive queues of a direction that has several.
    """
    if not report["trials"]:
        yield "no trial yet"
        return
    trial = report["trials"][-1]
    yield f"trial id {trial['trial_id']}, {trial['lasted_ns'] / 1e9:.3f} s"
    for direction in ("forward", "reverse"):
        for name in _CLASSES:
            account = trial[direction][name]
            if account["seen"]:
                yield f"{direction} {name}: {', '.join(_counts(account))}"
        queues = trial[direction].get("queues")
        if queues:
            served = ", ".join(str(queue["served"]) for queue in queues)
            yield f"{direction}, frames served by each receive queue: {served}"


def _counts(account: Mapping[str, Any]) -> Iterator[str]:
    """All that is not 0; the bounds of times are left to the whole account."""
    for key in dict.fromkeys(("seen", "left", *account)):
        value = account[key]
        if isinstance(value, int) and value:
            yield f"{key} {value}"
        elif key.startswith("corrupted"):
            yield from (f"{key} {kind} {n}" for kind, n in value.items() if n)


def connections(path: str, command: str) -> int:
    """Have the gateway's table told, cleared or deleted; how many connections it holds.

    Raises:
        OSError: it does not answer, or deletes for longer than ten minutes.
        ValueError: it is no gateway.
    """
    orders = {"clear": "clear_connections", "delete": "delete_connections"}
    content = ask(path, {"do": orders.get(command, command)})
    deadline = time.monotonic() + DELETION_TIMEOUT_S
    while command == "delete" and content.get("connections", 0) > 0:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{content['connections']} connections are still there")
        time.sleep(POLL_S)
        content = ask(path, {"do": "connections"})
    if "error" in content:
        raise ValueError("{message}: {hint}".format(**content["error"]))
    return int(content["connections"])


def main() -> None:
    """Do what the module says."""
    path, *command = sys.argv[1:]
    try:
        if command:
            print(connections(path, command[0]))  # noqa: T201 - its work
        else:
            report = ask(path, {"do": "report", "brief": True})
            print("\n".join(told(report)))  # noqa: T201 - its work
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main()
