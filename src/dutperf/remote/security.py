"""Who may take part: TLS for all, and certificates that one CA has signed.

Jobs are measured by root, so there is no way in without a certificate. Whoever measures
on one machine alone needs to do nothing: the scheduler makes keys that only its own
account can read.
"""

from __future__ import annotations

import asyncio
import ipaddress
import os
import re
import shutil
import socket
import ssl
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, TypeAdapter, ValidationError

from dutperf.errors import InputError, SetupError
from dutperf.plain_files import read_plain
from dutperf.results.units import Stored

LOOPBACK = "127.0.0.1"
PORT = 8786
SCHEDULER, RUN, WORKER = "scheduler", "run", "worker"
MAKE_KEYS = "dutperf worker --make-keys DIR --host NAME"
_OPTIONS = "--tls-ca, --tls-cert and --tls-key"
_FOLDER_OF_CA = "ca"
_CA, _CERT, _KEY, _CA_KEY = "ca.pem", "cert.pem", "key.pem", "ca-key.pem"
_DAYS = "3650"


@dataclass(frozen=True)
class Certificates:
    """Files in PEM: who is trusted, and who this is; all three or none."""

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None

    @property
    def given(self) -> bool:
        """Whether there are any.

        Raises:
            InputError: only some were given, a file cannot be read, or others may read
                the key.
        """
        files = {"--tls-ca": self.ca, "--tls-cert": self.cert, "--tls-key": self.key}
        missing = [option for option, file in files.items() if file is None]
        if len(missing) == len(files):
            return False
        if missing:
            raise InputError(
                f"{' and '.join(missing)} must be given, too: TLS needs all three",
                f"{MAKE_KEYS} makes them",
            )
        for option, file in files.items():
            try:
                read_plain(file or Path())
            except OSError as error:
                raise InputError(f"{option} {file}: {error.strerror}") from error
        _check_private(self.key or Path())
        return True

    def or_own(self, role: str) -> Certificates:
        """These, or if none were given those of this account; see ``own_keys``.

        Raises:
            InputError: there are none, or they cannot be used.
        """
        if self.given:
            return self
        folder = own_keys()
        if role == SCHEDULER and not folder.exists():
            make_keys(folder, [WORKER])
        if not folder.exists():
            raise InputError(
                f"no keys: {_OPTIONS} are missing, and this account has none "
                f"in {folder}",
                "on one machine: start dutperf scheduler first, by the same user; "
                f"between users or machines: {MAKE_KEYS}",
            )
        _check_private(folder)
        files = (folder / role / name for name in (_CA, _CERT, _KEY))
        own = Certificates(*files)
        return own if own.given else self

    def context(self, *, is_server: bool) -> ssl.SSLContext:
        """TLS that asks the other side for a certificate of the same CA.

        Raises:
            InputError: a file is not what it should be.
        """
        kind = ssl.PROTOCOL_TLS_SERVER if is_server else ssl.PROTOCOL_TLS_CLIENT
        context = ssl.SSLContext(kind)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # what it may be is said, not where it is
        context.verify_mode = ssl.CERT_REQUIRED
        try:
            context.load_verify_locations(self.ca)
            context.load_cert_chain(self.cert or "", self.key)
        except ssl.SSLError as error:
            raise InputError(
                f"{self.ca}, {self.cert} and {self.key} are no certificates and their "
                f"key: {error.reason}",
                f"{MAKE_KEYS} makes them",
            ) from error
        return context


def own_keys() -> Path:
    """The folder with keys of this account, for its own machine."""
    user = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(user) / "dutperf" / "keys"


def make_keys(folder: Path, hosts: Sequence[str]) -> list[Path]:
    """Make a CA, and a key for the scheduler, for runs and for each worker's host.

    What is there already stays, so that hosts can be added. Returns the folders that
    are new; each has ``ca.pem``, ``cert.pem`` and ``key.pem``.

    Raises:
        InputError: a host cannot be called so.
        SetupError: openssl is missing or fails, or the folder cannot be written.
    """
    for host in hosts:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", host) or host in (
            _FOLDER_OF_CA,
            SCHEDULER,
            RUN,
        ):
            raise InputError(
                f"--host {host}: no name for a key",
                "letters, digits, '.', '_' and '-', up to 64; not ca, scheduler or run",
            )
    roles = {SCHEDULER: SCHEDULER, RUN: RUN} | dict.fromkeys(hosts, WORKER)
    ca = folder / _FOLDER_OF_CA
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        _check_private(folder)
        if not ca.exists():
            extensions = ["basicConstraints=critical,CA:TRUE"]
            _make(ca, "/CN=dutperf", extensions, key=_CA_KEY, cert=_CA)
        new = [name for name in roles if not (folder / name).exists()]
        for name in new:
            purpose = "serverAuth" if roles[name] == SCHEDULER else "clientAuth"
            extensions = [
                "basicConstraints=critical,CA:FALSE",
                f"extendedKeyUsage={purpose}",
            ]
            subject = f"/OU={roles[name]}/CN={name}"
            _make(folder / name, subject, extensions, ca=ca)
    except OSError as error:
        raise SetupError(f"cannot make keys in {folder}: {error.strerror}") from error
    return [folder / name for name in new]


def _make(
    folder: Path,
    subject: str,
    extensions: Sequence[str],
    ca: Path | None = None,
    key: str = _KEY,
    cert: str = _CERT,
) -> None:
    """A key and its certificate, signed by ``ca`` or itself: ``folder``, whole."""
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".new-") as made:
        command = [
            *("openssl", "req", "-x509", "-config", "/dev/stdin", "-days", _DAYS),
            *("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
            *("-keyout", f"{made}/{key}", "-out", f"{made}/{cert}", "-subj", subject),
            *(word for each in extensions for word in ("-addext", each)),
        ]
        if ca:
            command += ["-CA", str(ca / _CA), "-CAkey", str(ca / _CA_KEY)]
            shutil.copy(ca / _CA, made)
        try:
            done = subprocess.run(
                command,
                input="[req]\ndistinguished_name = dn\n[dn]\n",
                capture_output=True,
                text=True,
                check=False,
            )
        except FileNotFoundError as error:
            raise SetupError(
                "openssl is missing, which makes the keys", "apt install openssl"
            ) from error
        if done.returncode:
            raise SetupError(f"openssl failed: {done.stderr.strip()}")
        Path(made).rename(folder)


def _check_private(path: Path) -> None:
    """Refuse a key, or a folder of keys, that others may read or write."""
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise InputError(
            f"{path} belongs to another user",
            "use keys of your own: copy them, or start this as that user",
        )
    if stat.S_IMODE(found.st_mode) & 0o077:
        raise InputError(
            f"others may read {path}: whoever has a key has dutperf measure as root",
            f"chmod go= {path}",
        )


def checked_address(address: str, certificates: Certificates) -> str:
    """The address of a scheduler, complete.

    Raises:
        InputError: it is none, or not one that may be asked like that.
    """
    full = address if "://" in address else f"tls://{address}"
    try:
        parts = urlsplit(full)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in ("tcp", "tls"):
        raise InputError(
            f"{address} is not the address of a scheduler",
            f"it is like tls://{LOOPBACK}:{PORT}",
        )
    shown = f"[{host}]" if ":" in host else host
    full = f"tls://{shown}:{port or PORT}"
    if parts.scheme != "tls":
        raise InputError(
            f"{address} is without encryption, so anybody may measure as root",
            f"all is by TLS: {full}",
        )
    check_loopback(host, certificates)
    return full


def check_loopback(host: str, certificates: Certificates) -> None:
    """Refuse other machines where no certificates were given.

    Raises:
        InputError: ``host`` is elsewhere, or nobody knows it.
    """
    if certificates.given:
        return
    try:
        found = {info[4][0] for info in socket.getaddrinfo(host, None)}
    except OSError as error:
        raise InputError(
            f"no host is called {host}: {error.strerror or error}",
            "give an address like tls://HOST:PORT",
        ) from error
    if not all(ipaddress.ip_address(str(each)).is_loopback for each in found):
        raise InputError(
            f"{host} is not this machine: between machines each needs a key of its own",
            f"{MAKE_KEYS} makes them; then give {_OPTIONS}",
        )


# The connections of scheduler, workers and runs: frames of JSON over mutual TLS.
#
# A frame is its length in four bytes, then one of the models below. What comes is
# parsed by them alone: nothing that a peer sends is ever loaded as an object, or
# executed. Workers and runs connect to the scheduler, which passes calls on; so it
# alone listens.


WIRE_VERSION = 1
CONNECT_S = 10.0
_LENGTH_BYTES = 4
_MOST_BYTES = 256 << 20
"""A frame: what a testbed has stored when its run is resumed is the longest."""


class Hello(Stored):
    """The first frame of a worker, or of a run, which owns no testbeds."""

    kind: Literal["hello"] = "hello"
    version: int = WIRE_VERSION
    name: str
    testbeds: list[str] = Field(default=[])


class Members(Stored):
    """The scheduler tells each run which workers there are, by their addresses."""

    kind: Literal["members"] = "members"
    workers: list[str]


class Call(Stored):
    """What a run wants of the worker ``to``; which keys it has depends on ``what``."""

    kind: Literal["call"] = "call"
    number: int
    to: str
    what: Literal["claim", "fetch", "alive", "stop", "measure"]
    run: str = ""
    answers: dict[int, str] = Field(default={})
    keys: list[str] = Field(default=[])
    ticket: str = ""


class Reply(Stored):
    """Of a worker to the call ``number``; of the scheduler to Hello, which is 0.

    ``refused``: why nothing was done.
    """

    kind: Literal["reply"] = "reply"
    number: int = 0
    text: str = ""
    refused: str = ""


Frame = Hello | Members | Call | Reply
_FRAME: TypeAdapter[Frame] = TypeAdapter(Annotated[Frame, Field(discriminator="kind")])


class Line:
    """One connection, in the loop where it was made."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._reader, self._writer = reader, writer
        # A host that lost its power says nothing: it has gone after half a minute.
        own: socket.socket = writer.get_extra_info("socket")
        for option, value in (
            (socket.TCP_KEEPIDLE, 15),
            (socket.TCP_KEEPINTVL, 5),
            (socket.TCP_KEEPCNT, 3),
            (socket.TCP_USER_TIMEOUT, 30_000),
        ):
            own.setsockopt(socket.IPPROTO_TCP, option, value)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    @property
    def peer(self) -> str:
        """Its address, of which there is one at a time."""
        host, port = self._writer.get_extra_info("peername")[:2]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    @property
    def role(self) -> str:
        """What its certificate lets it be; empty: it says nothing."""
        subject = self._writer.get_extra_info("peercert")["subject"]
        names = dict(name for part in subject for name in part)
        return str(names.get("organizationalUnitName", ""))

    async def receive(self) -> Frame:
        """The next frame.

        Raises:
            OSError: the connection has gone, or what came is no frame.
        """
        try:
            length = int.from_bytes(await self._reader.readexactly(_LENGTH_BYTES))
            if length > _MOST_BYTES:
                raise ConnectionError(f"a frame of {length} bytes")
            return _FRAME.validate_json(await self._reader.readexactly(length))
        except (EOFError, ValidationError) as error:
            raise ConnectionError(str(error)) from error

    def send(self, frame: Frame) -> None:
        """Without waiting; who does not take it is cut off.

        Raises:
            InputError: it is too long.
        """
        if self._writer.is_closing():
            return
        text = frame.model_dump_json().encode()
        if len(text) > _MOST_BYTES:
            raise InputError(
                f"{len(text) >> 20} MiB for one testbed are too much to be sent",
                "divide the campaign",
            )
        self._writer.write(len(text).to_bytes(_LENGTH_BYTES))
        self._writer.write(text)
        if self._writer.transport.get_write_buffer_size() > 2 * _MOST_BYTES:
            self._writer.transport.abort()

    async def close(self) -> None:
        """Send what waits, for a while at most."""
        self._writer.close()
        try:
            await asyncio.wait_for(self._writer.wait_closed(), CONNECT_S)
        except (OSError, TimeoutError):
            self._writer.transport.abort()


async def connect(address: str, certificates: Certificates, hello: Hello) -> Line:
    """Join the scheduler at ``address``.

    Raises:
        SetupError: none answers, or it does not trust this certificate, nor this it.
        InputError: it refuses.
    """
    parts = urlsplit(address)
    context = certificates.context(is_server=False)
    try:
        async with asyncio.timeout(CONNECT_S):
            line = Line(
                *await asyncio.open_connection(parts.hostname, parts.port, ssl=context)
            )
            line.send(hello)
            reply = await line.receive()
    except (OSError, TimeoutError) as error:
        raise no_scheduler(address, certificates) from error
    if isinstance(reply, Reply) and not reply.refused:
        return line
    await line.close()
    if not isinstance(reply, Reply):
        raise no_scheduler(address, certificates)
    message, _, hint = reply.refused.partition("\n")
    raise InputError(message, hint)


def no_scheduler(address: str, certificates: Certificates) -> SetupError:
    """Nothing, or something else, is at ``address``."""
    host, _, port = address.partition("://")[2].rpartition(":")
    return SetupError(
        f"no scheduler that {certificates.ca} has signed answers at {address}",
        f"start one: dutperf scheduler --host {host} --port {port}, with keys of the "
        "same CA (or of the same user); a firewall may be in the way",
    )
