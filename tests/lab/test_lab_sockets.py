"""Who may answer for the known-answer device, and what an answer may be."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dutperf.errors import SetupError
from dutperf.lab import asking, read_behaviour
from dutperf.lab.refdut_socket import KnownAnswer
from dutperf.lab.state import StateFile

STRANGER = 65534
DEEP = b"[" * 200_000


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[None]:
    """A device that says ``answer``, whatever it is asked."""
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        listening.listen()

        def serve() -> None:
            client, _ = listening.accept()
            with client:
                client.recv(4096)
                client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield
        thread.join()


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{}",
        b"\n",
        b"{\n",
        b"[]\n",
        b"null\n",
        b"\xff\xfe\n",
        b'{"error": 3}\n',
        b'{"error": {"message": "no"}}\n',
        b'{"error": {"message": 1, "hint": []}}\n',
        b'{"schema_version": 1}\n',
        DEEP + b"\n",
        b'{"a": ' + b"9" * 5000 + b"}\n",
    ],
)
def test_what_is_no_answer_is_told_as_that(tmp_path: Path, answer: bytes) -> None:
    path = tmp_path / "control"
    with answering(path, answer), pytest.raises(SetupError) as caught:
        KnownAnswer(path).report()
    assert str(path) in caught.value.message
    assert caught.value.hint


def test_a_line_without_end_is_not_read_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "MOST_BYTES", 1000)
    with (
        answering(tmp_path / "control", b"x" * 2000),
        pytest.raises(ConnectionError, match="closed"),
    ):
        asking.ask(str(tmp_path / "control"), {"do": "report"})


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become another user")
def test_a_process_of_another_user_does_not_answer_for_it(tmp_path: Path) -> None:
    path = tmp_path / "control"
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.setuid(STRANGER)
            listening.listen()  # from now on the socket is this user's
            os.write(writing, b"x")
            listening.accept()
            os._exit(0)
        try:
            os.read(reading, 1)
            with pytest.raises(SetupError, match=f"a process of user {STRANGER}"):
                KnownAnswer(path).report()
        finally:
            os.close(reading)
            os.close(writing)
            os.waitpid(child, 0)


def test_the_device_has_a_directory_that_is_its_owners(tmp_path: Path) -> None:
    state = StateFile(tmp_path)
    state.dut_directory.mkdir(mode=0o777)
    state.make_dut_directory()
    assert state.dut_directory.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("content", [DEEP, b"\xff", b"9" * 5000, b'{"a": 1e999'])
def test_a_behaviour_that_is_no_json_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "behaviour.json"
    path.write_bytes(content)
    with pytest.raises(Exception, match=str(path)) as caught:
        read_behaviour(path)
    assert type(caught.value).__name__ == "InputError"


@pytest.mark.parametrize(
    "answer", [b"[]\n", b'{"trials": 3}\n', b'{"trials": [{}]}\n', b"{}\n"]
)
def test_the_program_that_asks_says_what_is_wrong(
    tmp_path: Path, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "control"
    monkeypatch.setattr(sys, "argv", ["asking.py", str(path)])
    with answering(path, answer), pytest.raises(SystemExit) as caught:
        asking.main()
    assert str(caught.value).startswith("error: ")
