"""Receives the log of a device's mappings during one trial.

A file, or what a program prints, is read when the trial has ended; datagrams are
received by a thread.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from dutperf.config.testbed import Hook, NatLog
from dutperf.errors import SetupError
from dutperf.plain_files import open_plain
from dutperf.procedures.trials import Ask
from dutperf.results.device_log import DeviceLog, packed
from dutperf.run.hook_runs import command_line
from dutperf.run.log_formats import Piece, read_log

MOST_BYTES = 1 << 28
_STARTS_S = 1.0
"""What a program has until it sees events; nothing says when it does."""
_ENDS_S = 5.0
_MOST_SAID = 300
_RECEIVE_BUFFER_BYTES = 1 << 26
_POLL_S = 0.1


@contextmanager
def reading(
    how: NatLog | None, ask: Ask, sleep: Callable[[float], None]
) -> Iterator[Callable[[], DeviceLog | None]]:
    """Have the log of a trial within; what is given tells it, once the trial has ended.

    Args:
        how: where the log is.
        ask: for a trial that may have none.
        sleep: waits so many seconds.

    Raises:
        SetupError: it cannot be had.
    """
    within_s = ask.log_within_s
    if how is None or within_s is None:
        yield lambda: None
        return

    def told() -> DeviceLog:
        sleep(within_s)
        in_time = source.size()
        sleep(within_s)
        read = read_log(how, source.pieces(in_time))
        return DeviceLog(
            packed=packed(read.entries),
            unread=read.unread,
            untold=[*source.untold, *read.untold],
        )

    with contextlib.ExitStack() as stack:
        source: _Datagrams | _Followed
        if how.listen:
            source = _Datagrams(how, stack)
        elif how.file:
            source = _File(Path(how.file), stack)
        else:
            source = _Program(how, stack)
            sleep(_STARTS_S)
        yield told


class _Followed:
    """A file from where it ends now."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.begin = self.size()
        self.untold: list[str] = []

    def size(self) -> int:
        return os.fstat(self.file.fileno()).st_size

    def pieces(self, in_time: int) -> list[Piece]:
        self.file.seek(self.begin)
        data = self.file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            self.untold.append(f"only {MOST_BYTES:,} bytes of the log are read")
        return [Piece(data[:MOST_BYTES], in_time - self.begin)]


class _File(_Followed):
    def __init__(self, path: Path, stack: contextlib.ExitStack) -> None:
        try:
            super().__init__(stack.enter_context(open_plain(path)))
        except OSError as error:
            raise SetupError(
                f"nat_log: {path} cannot be read: {error.strerror}",
                "let the device's log be written there, or change the testbed",
            ) from None
        self._path = path

    def pieces(self, in_time: int) -> list[Piece]:
        found = super().pieces(in_time)
        try:
            is_same = os.path.samestat(self._path.stat(), os.fstat(self.file.fileno()))
        except OSError:
            is_same = False
        if not is_same or self.size() < max(in_time, self.begin):
            self.untold.append("the file was cut or replaced meanwhile")
        return found


class _Program(_Followed):
    def __init__(self, how: NatLog, stack: contextlib.ExitStack) -> None:
        super().__init__(stack.enter_context(tempfile.TemporaryFile()))  # noqa: SIM115 - it does
        self._errors = stack.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        command = command_line(Hook(command=how.command, ssh=how.ssh))
        try:
            self._program = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=self.file,
                stderr=self._errors,
                start_new_session=True,
            )
        except OSError as error:
            raise SetupError(
                f"nat_log: {command[0]!r} could not be started: {error.strerror}",
                "try the command by hand",
            ) from None
        stack.callback(self._end)

    def pieces(self, in_time: int) -> list[Piece]:
        code = self._program.poll()
        self._end()
        self._errors.seek(0)
        said = self._errors.read(MOST_BYTES).decode(errors="replace").strip()
        if code is not None:
            words = f"the log's program ended early, with exit code {code}"
            self.untold.append(f"{words}: {said[-_MOST_SAID:]}".removesuffix(": "))
        if "ENOBUFS" in said:  # of conntrack(8): who listens lost them, not the NAT
            self.untold.append(
                "the log's program had no room for all events (ENOBUFS): give it more, "
                "as --buffer-size of conntrack"
            )
        return super().pieces(in_time)

    def _end(self) -> None:
        """As by Ctrl-C, so that it prints what it has; if it stays, at once."""
        for number in (signal.SIGINT, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._program.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._program.wait(_ENDS_S)
                return


class _Datagrams:
    """Those that come, up to as many as are kept."""

    _MEMINFO, _DROPS = 55, 8  # SO_MEMINFO, SK_MEMINFO_DROPS

    def __init__(self, how: NatLog, stack: contextlib.ExitStack) -> None:
        host, port = how.address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = stack.enter_context(socket.socket(family, socket.SOCK_DGRAM))
        for option in (socket.SO_RCVBUF, 33):  # 33: SO_RCVBUFFORCE, for root
            with contextlib.suppress(PermissionError):
                self._socket.setsockopt(
                    socket.SOL_SOCKET, option, _RECEIVE_BUFFER_BYTES
                )
        self._socket.settimeout(_POLL_S)
        try:
            self._socket.bind((host, port))
        except OSError as error:
            raise SetupError(
                f"nat_log: cannot listen at {how.listen}: {error.strerror}",
                "does this machine have the address, and nobody else the port?",
            ) from None
        self.untold: list[str] = []
        self._kept: list[bytes] = []
        self._left_out = 0
        self._ended = threading.Event()
        thread = threading.Thread(target=self._receive, daemon=True)
        thread.start()
        stack.callback(thread.join)
        stack.callback(self._ended.set)

    def _receive(self) -> None:
        room = MOST_BYTES
        while not self._ended.is_set():
            with contextlib.suppress(TimeoutError):
                data = self._socket.recv(1 << 16)
                room -= len(data)
                if room >= 0:
                    self._kept.append(data)
                else:
                    self._left_out += 1

    def size(self) -> int:
        return len(self._kept)

    def pieces(self, in_time: int) -> list[Piece]:
        told = self._socket.getsockopt(socket.SOL_SOCKET, self._MEMINFO, 36)
        lost = self._left_out + struct.unpack("9I", told)[self._DROPS]
        if lost:
            self.untold.append(f"the tester itself dropped {lost:,} datagrams")
        return [
            Piece(data, len(data) if number < in_time else 0)
            for number, data in enumerate(list(self._kept))
        ]
