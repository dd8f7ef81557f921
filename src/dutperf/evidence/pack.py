"""What goes into the evidence of a run, and what its manifest says."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import tarfile
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from dutperf import __version__
from dutperf.errors import InputError, SetupError
from dutperf.plain_files import open_plain
from dutperf.results import load_environments, load_journal, load_results
from dutperf.results.directory import CAMPAIGN, RESULTS
from dutperf.results.environment import Environment
from dutperf.results.journal import JOURNAL
from dutperf.results.storage import read_bytes, storing
from dutperf.visible import visible

# One file with all that a result rests on: packed the same each time, opened warily.
#
# ``NAME.evidence.tar.gz`` holds one folder of plain files: those of a results
# directory, ``manifest.json``, and ``SHA256SUMS`` of all of them, which ``sha256sum
# -c`` reads, too. Names are sorted, times and owners are zero, so the same files make
# the same archive, but for ``SHA256SUMS.sig``, if it is signed.
#
# An archive comes from somebody else. Nothing of it is written anywhere before its
# names and sizes were looked at: no links, no paths that lead out, nothing twice, no
# bomb.


SUMS = "SHA256SUMS"
SIGNATURE = f"{SUMS}.sig"
MANIFEST = "manifest.json"
ENDING = ".evidence.tar.gz"
MOST_FILES = 10_000
MOST_BYTES = 2**31
"""Of all files together, unpacked."""
_BLOCK = tarfile.BLOCKSIZE
_HEADER_BYTES = 1 << 14
"""Of all that stands before the content of one file."""
_NAME_BYTES = 255
_LEVELS = 32
_LINE = re.compile(r"([0-9a-f]{64})  ([^\n]+)")
_DAMAGED = (
    "it was damaged on its way, or it is no evidence of dutperf: ask for it again"
)

Sign = Callable[[bytes], bytes]
Files = Mapping[str, bytes]
"""By their names in the archive's folder, as "frames/left.pcap"."""


def sums_of(files: Files) -> str:
    """What ``SHA256SUMS`` says of ``files``, sorted by name."""
    return "".join(
        f"{hashlib.sha256(content).hexdigest()}  {name}\n"
        for name, content in sorted(files.items())
    )


def wrong_sums(files: Files) -> list[str]:
    """Where ``files`` are not those that their ``SHA256SUMS`` is of, in sentences."""
    told: dict[str, str] = {}
    wrong = []
    for line in files[SUMS].decode(errors="replace").splitlines():
        found = _LINE.fullmatch(line)
        if found is None or found[2] in told:
            wrong.append(f"{SUMS}: this line is no sum of one file: {line[:80]!r}")
        else:
            told[found[2]] = found[1]
    for name, digest in sorted(told.items()):
        if name not in files:
            wrong.append(f"{name} is missing: {SUMS} has its sum")
        elif hashlib.sha256(files[name]).hexdigest() != digest:
            wrong.append(f"{name} was changed: its SHA-256 sum is another one")
    unknown = sorted(set(files) - set(told) - {SUMS, SIGNATURE})
    return [*wrong, *(f"{name} was added: {SUMS} does not have it" for name in unknown)]


def packed(
    name: str, files: Files, about: Mapping[str, Any], sign: Sign | None = None
) -> bytes:
    """An archive of ``files``; ``about``: what its manifest says.

    Args:
        name: of its folder.
        files: without manifest and sums.
        about: plain data.
        sign: makes the signature of the sums; None: there is none.
    """
    manifest = json.dumps({**about, "files": sorted(files)}, indent=2) + "\n"
    whole = {**files, MANIFEST: manifest.encode()}
    whole[SUMS] = sums_of(whole).encode()
    if sign:
        whole[SIGNATURE] = sign(whole[SUMS])
    stream = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=stream, mode="wb", mtime=0, filename="") as packing,
        tarfile.open(fileobj=packing, mode="w", format=tarfile.PAX_FORMAT) as archive,
    ):
        for member, content in sorted(whole.items()):
            record = tarfile.TarInfo(f"{name}/{member}")
            record.size, record.mode = len(content), 0o644
            archive.addfile(record, io.BytesIO(content))
    return stream.getvalue()


def opened(path: Path, most_bytes: int = MOST_BYTES) -> dict[str, bytes]:
    """The files of an archive; nothing is written.

    Raises:
        InputError: it is none, or not one that dutperf packs.
    """
    try:
        with (
            open_plain(path) as file,
            gzip.GzipFile(fileobj=file) as unpacking,
        ):
            return dict(_members(unpacking, path, most_bytes))
    except FileNotFoundError:
        raise InputError(
            f"{path} does not exist", "give an archive, or a results directory"
        ) from None
    except (
        tarfile.TarError,
        EOFError,
        zlib.error,
        ValueError,
        RecursionError,  # headers of headers of headers
    ) as error:
        raise InputError(f"{path} cannot be unpacked: {error}", _DAMAGED) from error
    except OSError as error:  # a file that is no gzip is one, too
        told = error.strerror or error
        raise InputError(f"cannot read {path}: {told}", _DAMAGED) from error


class _Headers(io.BufferedIOBase):
    """What tarfile reads of an archive, which would be headers of any size."""

    def __init__(self, file: gzip.GzipFile) -> None:
        self._file = file
        self.left = _HEADER_BYTES

    def read(self, size: int | None = -1) -> bytes:
        assert size is not None  # noqa: S101 - tarfile says how much
        self.left -= size
        if size < 0 or self.left < 0:
            raise tarfile.ReadError(
                f"a header has more than {_HEADER_BYTES:,} bytes, or none can be read"
            )
        return self._file.read(size)

    def seek(self, place: int, whence: int = io.SEEK_SET) -> int:
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()


def _members(
    unpacking: gzip.GzipFile, path: Path, most_bytes: int
) -> Iterator[tuple[str, bytes]]:
    seen: set[str] = set()
    folders: set[str] = set()
    left = most_bytes
    headers = _Headers(unpacking)
    archive = tarfile.TarFile(fileobj=headers)
    end = 0
    while member := archive.next():
        name = _name_of(member, path)
        if member.offset != end:  # Python 3.13 passes over what it cannot read
            raise _refused(path, f"something else stands before {name}")
        end = member.offset_data + -(-member.size // _BLOCK) * _BLOCK
        if archive.pax_headers:
            raise _refused(path, "it has a header for all files")
        if not member.isreg() or member.issparse() or member.size < 0:
            raise _refused(path, f"{name} is no plain file: links are not followed")
        if name in seen:
            raise _refused(path, f"{name} is in it twice")
        seen.add(name)
        folders.add(PurePosixPath(member.name).parts[0])
        left -= member.size
        if left < 0 or len(seen) > MOST_FILES:
            raise _refused(
                path,
                f"it unpacks to more than {most_bytes} bytes or {MOST_FILES} files",
            )
        unpacking.seek(member.offset_data)
        content = unpacking.read(member.size)
        if len(content) != member.size:
            raise _refused(path, f"{name} is cut off")
        yield name, content
        archive.members.clear()  # type: ignore[attr-defined] # it keeps all headers
        headers.left = _HEADER_BYTES
    unpacking.seek(end)
    if unpacking.read(2 * tarfile.RECORDSIZE).strip(b"\0"):
        raise _refused(path, "something else stands behind its last file")
    if len(folders) != 1:
        raise _refused(path, f"it has {len(folders)} folders, not one")
    for name in sorted(seen):
        for folder in map(str, PurePosixPath(name).parents):
            if folder in seen:
                raise _refused(path, f"{folder} is a file and a folder in it")
    for needed in (SUMS, MANIFEST):
        if needed not in seen:
            raise _refused(path, f"{needed} is missing")


def _name_of(member: tarfile.TarInfo, path: Path) -> str:
    """Its name within the folder of the archive, which any file system can have."""
    place = PurePosixPath(member.name)
    if (
        place.is_absolute()
        or len(place.parts) < 2
        or ".." in place.parts
        or "\0" in member.name
    ):
        raise _refused(path, f"the name {member.name[:80]!r} leads out of its folder")
    longest = max(len(part.encode()) for part in place.parts)
    if longest > _NAME_BYTES or len(place.parts) > _LEVELS:
        raise _refused(
            path,
            f"the name {member.name[:80]!r}... has a part of more than {_NAME_BYTES} "
            f"bytes, or more than {_LEVELS} parts",
        )
    return "/".join(place.parts[1:])


def _refused(path: Path, why: str) -> InputError:
    return InputError(f"{path} is refused: {why}", _DAMAGED)


def write_new(path: Path, content: bytes) -> None:
    """Write a file that is not there yet.

    Raises:
        InputError: it is.
        StorageError: the file system refused.
    """
    try:
        with storing(path), path.open("xb") as file:
            file.write(content)
    except FileExistsError:
        raise InputError(
            f"{path} exists: evidence is never overwritten", "give another name: --out"
        ) from None


VERSION = 1
REPORT = "report.html"
NEEDED = (CAMPAIGN, JOURNAL, RESULTS)
OWN = {MANIFEST, SUMS, SIGNATURE}


class Packed(NamedTuple):
    """An archive that was written: where, and what is in it."""

    path: Path
    files: tuple[str, ...]
    size_bytes: int


def files_of(directory: Path) -> dict[str, bytes]:
    """All plain files of a results directory, by name; hidden ones are left out.

    Raises:
        InputError: it holds no run, or a link.
    """
    if not directory.is_dir():
        raise InputError(
            f"{directory} is no directory", "give the results directory of a run"
        )
    found: dict[str, bytes] = {}
    for path in sorted(directory.rglob("*")):
        name = path.relative_to(directory).as_posix()
        if any(part.startswith(".") for part in name.split("/")):
            continue
        if path.is_symlink():
            raise InputError(f"{path} is a link", "put the file itself in its place")
        if path.is_file() and name not in OWN and not name.endswith(ENDING):
            found[name] = read_bytes(path)
    missing = [name for name in NEEDED if name not in found]
    if missing:
        raise InputError(
            f"{directory} is no evidence of a run: {' and '.join(missing)} missing",
            "give the results directory of a run that has measured something",
        )
    return found


def pack(
    directory: Path,
    out: Path | None = None,
    more: Mapping[str, bytes] | None = None,
    sign: Sign | None = None,
) -> Packed:
    """Write the evidence of the run in ``directory`` into one archive.

    Args:
        directory: of the results.
        out: the archive; None: beside the directory, with its name.
        more: files that are made for it.
        sign: see ``packed``.

    Raises:
        InputError: it holds no run, a file is damaged, or the archive exists.
        StorageError: the file system refused.
    """
    files = {**files_of(directory), **(more or {})}
    name = directory.resolve().name
    path = out or directory.resolve().with_name(f"{name}{ENDING}")
    content = packed(name, files, manifest_of(directory), sign)
    write_new(path, content)
    own = (MANIFEST, SUMS, SIGNATURE) if sign else (MANIFEST, SUMS)
    return Packed(path, (*sorted(files), *own), len(content))


def manifest_of(directory: Path) -> dict[str, Any]:
    """What a reader wants to know before he unpacks it."""
    results, journal = load_results(directory), load_journal(directory)
    environments = load_environments(directory).values()
    return {
        "schema_version": VERSION,
        "what": "evidence of a run of dutperf; check it with: dutperf verify FILE",
        "packed_by": f"dutperf {__version__}",
        "name": results.name,
        "created_at": results.created_at,
        "complete": results.complete,
        "cells": len(results.cells),
        "trials": len(journal.records),
        "versions": sorted({_versions(each) for each in environments}),
        "seeds": sorted({each.seed for each in environments}),
        "machines": [_machine(each) for each in environments],
    }


def _versions(environment: Environment) -> str:
    return (
        f"dutperf {environment.dutperf_version}, engine {environment.engine_version}, "
        f"{environment.dpdk_version}"
    )


def _machine(environment: Environment) -> dict[str, Any]:
    told = environment.model_dump(
        include={"place", "os", "kernel", "cpu_model", "cpus_total", "hypervisor"}
    )
    return dict(json.loads(json.dumps(told)))


# Who signed a run: with the ssh key that one has, by ``ssh-keygen -Y``.
#
# What is signed are the sums, and they are of everything else. Whose key it was is
# known from a file of allowed signers alone, in ssh's own format.


NAMESPACE = "dutperf-evidence"
LONGEST_BYTES = 1 << 16
"""Of a signature: ten times those of the longest keys."""
_TIMEOUT_S = 60
_GOOD = re.compile(r'Good "dutperf-evidence" signature with (\S+) key (SHA256:\S+)')


class BadSignatureError(Exception):
    """It is none of these sums, or of nobody who may sign; said in words."""


class Signer(NamedTuple):
    """Whose key it was; ``identity``: None if nobody said whose keys are known."""

    key: str
    identity: str | None


def sign(sums: bytes, key: Path) -> bytes:
    """The signature of ``sums``; ``key``: a private one, or one of ssh-agent's (.pub).

    Its passphrase is asked for at the terminal, if there is one.

    Raises:
        InputError: the key cannot sign.
        SetupError: ssh-keygen is missing, or does not end.
    """
    if key.exists() and not key.is_file():  # ssh-keygen would wait for a FIFO
        raise InputError(f"{key} is not a plain file", "give --sign the key's own file")
    with tempfile.TemporaryDirectory(prefix="dutperf-sign-") as folder:
        file = Path(folder) / "sums"
        file.write_bytes(sums)
        of = ["-f", str(key.absolute()), "-n", NAMESPACE, str(file)]
        done = _ssh_keygen("sign", *of, data=None if os.isatty(0) else b"")
        made = file.with_name("sums.sig")
        if done.returncode or not made.exists():
            raise InputError(
                f"{key} cannot sign: {_why(done)}",
                "give --sign the file of your ssh key, or the .pub file of one that "
                "ssh-agent has; a passphrase can be typed at a terminal alone",
            )
        return made.read_bytes()


def signer(sums: bytes, signature: bytes, allowed: Path | None) -> Signer:
    """Whose ``signature`` of ``sums`` it is.

    Args:
        sums: what should be signed.
        signature: as it came; whoever made it.
        allowed: a file of allowed signers; None: nobody knows whose key it is.

    Raises:
        BadSignatureError: it is of something else, or of none of the allowed signers.
        SetupError: ssh-keygen is missing, or does not end.
    """
    if len(signature) > LONGEST_BYTES:
        raise BadSignatureError(f"{len(signature):,} bytes are no signature")
    with _stored(signature) as file:
        of = ["-n", NAMESPACE, "-s", file]
        done = _ssh_keygen("check-novalidate", *of, data=sums)
        found = _GOOD.fullmatch(_text(done.stdout).strip())
        if done.returncode or found is None:
            raise BadSignatureError(f"it is no signature of these sums: {_why(done)}")
        key = f"{found[2]} ({found[1]})"
        if allowed is None:
            return Signer(key, None)
        known = ["-f", str(allowed.absolute())]
        named = _ssh_keygen("find-principals", "-s", file, *known)
        for name in _text(named.stdout).splitlines() if not named.returncode else ():
            done = _ssh_keygen("verify", "-I", name, *known, *of, data=sums)
            if done.returncode == 0:
                return Signer(key, visible(name))
            named = done
        raise BadSignatureError(
            f"{key} signed it, who is none of {allowed}: {_why(named)}"
        )


@contextmanager
def _stored(signature: bytes) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="dutperf-verify-") as folder:
        file = Path(folder) / "sums.sig"
        file.write_bytes(signature)
        yield str(file)


def _ssh_keygen(
    action: str, *arguments: str, data: bytes | None = b""
) -> subprocess.CompletedProcess[bytes]:
    """``data``: its input; None: the terminal, which may be asked, and waited for."""
    alone = data is not None
    try:
        return subprocess.run(
            ["ssh-keygen", "-Y", action, *arguments],
            input=data,
            capture_output=True,
            check=False,
            env={**os.environ, "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"},
            start_new_session=alone,  # else it asks at the terminal all the same
            timeout=_TIMEOUT_S if alone else None,
        )
    except FileNotFoundError as error:
        raise SetupError(
            "signatures need ssh-keygen, which is not installed",
            "install the Debian package openssh-client",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise SetupError(
            f"ssh-keygen did not end within {_TIMEOUT_S} s",
            "see whether ssh-agent, or the token that holds the key, answers",
        ) from error


def _why(done: subprocess.CompletedProcess[bytes]) -> str:
    """The last thing that it complained about."""
    lines = _text(done.stderr).strip().splitlines()
    return visible(lines[-1]) if lines else f"exit code {done.returncode}"


def _text(output: bytes) -> str:
    return output.decode(errors="replace")
