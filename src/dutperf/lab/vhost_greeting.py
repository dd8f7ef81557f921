"""The first answer to a virtual machine: a vhost-user back end that moves no frame.

QEMU does not start its guest before somebody has answered at each of its vhost-user
sockets, and the guest gets those features that were offered there. The tester, which
moves the frames, comes later, and anew for each run. So what is offered here is no more
than DPDK's back end has, and no offload: a frame is to leave the guest as it is sent.

QEMU's documentation (interop/vhost-user) describes the messages: a header of three
32-bit numbers (request, flags, size), then as many bytes.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

_HEADER = struct.Struct("<III")
_NUMBER = struct.Struct("<Q")
_RING_STATE = struct.Struct("<II")
_VERSION = 1
_REPLY = 1 << 2
_MOST_FILES = 16
_MOST_BYTES = 4096
_ANSWER_S = 1.0

GET_FEATURES = 1
GET_RING_BASE = 11
GET_PROTOCOL_FEATURES = 15

_MERGED_BUFFERS = 1 << 15  # VIRTIO_NET_F_MRG_RXBUF
_INDIRECT = 1 << 28  # VIRTIO_F_INDIRECT_DESC
_EVENT_INDEX = 1 << 29  # VIRTIO_F_EVENT_IDX
_PROTOCOL_FEATURES = 1 << 30  # VHOST_USER_F_PROTOCOL_FEATURES
_VERSION_1 = 1 << 32  # VIRTIO_F_VERSION_1
FEATURES = _MERGED_BUFFERS | _INDIRECT | _EVENT_INDEX | _PROTOCOL_FEATURES | _VERSION_1


class Greeting:
    """A connection to each of QEMU's sockets, until ``close``."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """``paths``: of the sockets, which need not be there yet."""
        self._missing = list(paths)
        self._connections: list[socket.socket] = []

    def answer(self) -> None:
        """Answers all that was asked since the last time; does not wait for more.

        Raises:
            OSError: QEMU broke off.
        """
        while self._missing and (connection := _connected(self._missing[0])):
            self._connections.append(connection)
            self._missing.pop(0)
        for connection in self._connections:
            with suppress(BlockingIOError):
                while answer_one(connection):
                    pass

    def close(self) -> None:
        """Goes; QEMU waits for the next one, and the guest's links are down."""
        for connection in self._connections:
            connection.close()


def answer_one(connection: socket.socket) -> bool:
    """Answers one message, if it wants an answer; False: there is no further one.

    Raises:
        BlockingIOError: there is none yet.
    """
    # The guest's memory and its events come as files; nobody here wants them.
    connection.setblocking(False)
    header, files, _, _ = socket.recv_fds(connection, _HEADER.size, _MOST_FILES)
    for file in files:
        os.close(file)
    if len(header) < _HEADER.size:
        return False
    connection.settimeout(_ANSWER_S)
    request, _, size = _HEADER.unpack(header)
    content = connection.recv(min(size, _MOST_BYTES)) if size else b""
    reply = _reply(request, content)
    if reply is not None:
        flags = _VERSION | _REPLY
        connection.sendall(_HEADER.pack(request, flags, len(reply)) + reply)
    return True


def _reply(request: int, content: bytes) -> bytes | None:
    if request == GET_FEATURES:
        return _NUMBER.pack(FEATURES)
    if request == GET_PROTOCOL_FEATURES:
        return _NUMBER.pack(0)
    if request == GET_RING_BASE:
        ring, _ = _RING_STATE.unpack(content)
        return _RING_STATE.pack(ring, 0)
    return None


def _connected(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection
