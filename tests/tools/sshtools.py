"""An OpenSSH server of the test's own: own keys, own port on loopback, own end.

``from sshtools import SshServer, needs_sshd``; pytest puts this directory on the path.
"""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import pytest

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
PATIENCE_S = 20
TRIES = 5

needs_sshd = pytest.mark.skipif(
    SSHD is None or shutil.which("ssh") is None,
    reason="needs Debian's openssh-server and openssh-client",
)

_CONFIG = """\
ListenAddress 127.0.0.1
Port {port}
HostKey {directory}/host_key
AuthorizedKeysFile {directory}/user_key.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
StrictModes no
UsePAM no
PidFile none
"""
_WITH_OWN_RUN = """
mount -t tmpfs tmpfs /run && mkdir -m 755 /run/sshd && exec "$@"
"""
"""Root's sshd wants its directory in /run; nobody else should see it."""


class SshServer:
    """Runs in the block; lets the user who runs the tests in, by key, and nobody else.

    Attributes:
        known_hosts: says which key is the host's.
        user_key: the private key that opens the door.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.port = 0
        self.user_key = make_key(directory / "user_key")
        host_key = make_key(directory / "host_key")
        self._public = host_key.with_suffix(".pub").read_text()
        self.known_hosts = directory / "known_hosts"

    def __enter__(self) -> Self:
        for _ in range(TRIES):
            self.port = _free_port()
            self.start()
            if self._listens():
                self.known_hosts.write_text(known_host(self.port, self._public))
                return self
            self.stop()  # somebody was faster
        raise AssertionError(self._log())

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Let it run, on its port."""
        config = self.directory / "sshd_config"
        config.write_text(_CONFIG.format(port=self.port, directory=self.directory))
        command = [str(SSHD), "-D", "-e", "-f", str(config)]
        if os.geteuid() == 0:
            command = ["unshare", "-m", "sh", "-c", _WITH_OWN_RUN, "sh", *command]
        with (self.directory / "sshd.log").open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def stop(self) -> None:
        """End it, and it alone."""
        self._process.kill()
        self._process.wait(PATIENCE_S)

    def door(self, **other: object) -> dict[str, object]:
        """The key ``ssh`` of a hook that gets in; ``other`` replaces what is given."""
        return {
            "host": "127.0.0.1",
            "user": getpass.getuser(),
            "port": self.port,
            "identity_file": str(self.user_key),
            "known_hosts": str(self.known_hosts),
        } | other

    def _listens(self) -> bool:
        end = time.monotonic() + PATIENCE_S
        while "Server listening" not in self._log():
            if self._process.poll() is not None:
                return False
            assert time.monotonic() < end, self._log()
            time.sleep(0.02)
        return True

    def _log(self) -> str:
        return (self.directory / "sshd.log").read_text()


def make_key(path: Path) -> Path:
    """A new private key; the public one is beside it, with the suffix .pub."""
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def known_host(port: int, public_key: str) -> str:
    """A line of a known_hosts file."""
    return f"[127.0.0.1]:{port} {public_key}"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
