"""``dutperf serve`` as a process: how it begins, and that it ends at once."""

from __future__ import annotations

import contextlib
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path

import pytest
from served import open_run, stored_run
from serving import PATIENCE_S, serving

from dutperf.cli import app


@contextlib.contextmanager
def opened(address: str) -> Iterator[HTTPResponse]:
    host, _, path = address.removeprefix("http://").partition("/")
    with contextlib.closing(HTTPConnection(host, timeout=PATIENCE_S)) as connection:
        connection.request("GET", f"/{path}")
        with connection.getresponse() as response:
            yield response


def test_it_prints_where_it_listens_and_shows_the_runs(tmp_path: Path) -> None:
    stored_run(tmp_path / "a-run")
    with serving(tmp_path, "--port", "0") as served:
        assert re.fullmatch(r"http://127\.0\.0\.1:[1-9]\d*/", served.address)
        with opened(served.address) as page:
            assert b"/run?run=a-run" in page.read()
        assert served.end() == (130, "")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_it_at_once_though_somebody_follows_a_run(
    tmp_path: Path, signum: signal.Signals
) -> None:
    with (
        open_run(tmp_path / "r"),
        serving(tmp_path, "--port", "0") as served,
        opened(f"{served.address}events?run=r") as following,
    ):
        assert following.readline().startswith(b"event: ")
        assert served.end(signum) == (130, "")


def test_beyond_this_machine_the_address_has_a_token(tmp_path: Path) -> None:
    with serving(tmp_path, "--host", "0.0.0.0", "--port", "0") as served:  # noqa: S104
        assert re.search(r"/\?token=[\w-]{32}$", served.address)


def test_a_port_in_use_is_told_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert app.run(["serve", str(tmp_path), "--port", port]) == 3
    said = capsys.readouterr().err
    assert f"error: port {port} of 127.0.0.1 is in use" in said
    assert "--port" in said


@pytest.mark.parametrize(
    ("options", "code", "told"),
    [
        (["--host", "192.0.2.1"], 3, "no address of this machine"),
        (["--host", "no such host"], 2, "no name or address of a host"),
        (["--host", "x" * 300], 2, "no name or address of a host"),
        (["--port", "65536"], 2, "65535"),
    ],
)
def test_where_it_cannot_listen_is_told(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    code: int,
    told: str,
) -> None:
    assert app.run(["serve", str(tmp_path), *options]) == code
    assert told in capsys.readouterr().err


def test_a_port_that_is_for_others_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*_given: object, **_keys: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket, "create_server", refused)
    assert app.run(["serve", str(tmp_path), "--port", "80"]) == 3
    assert "hint: give a --port above 1023" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["missing", "file"])
def test_a_directory_is_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    (tmp_path / "file").write_text("")
    assert app.run(["serve", str(tmp_path / name)]) == 2
    assert f"{name} is no directory" in capsys.readouterr().err


def test_the_handlers_of_signals_are_given_back(tmp_path: Path) -> None:
    before = signal.getsignal(signal.SIGINT)
    app.run(["serve", str(tmp_path / "missing")])
    assert signal.getsignal(signal.SIGINT) is before


def test_other_commands_do_not_load_the_web_framework() -> None:
    script = (
        "import sys\n"
        "import dutperf.cli.app\n"
        "loaded = {'starlette', 'uvicorn', 'anyio'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
