"""The archive: the same bytes each time, and nothing of a hostile one is believed."""

from __future__ import annotations

import gzip
import io
import subprocess
import tarfile
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from dutperf.errors import InputError
from dutperf.evidence.pack import opened, packed, sums_of, wrong_sums

FILES = {"journal.jsonl": b"{}\n", "frames/left.pcap": b"\xd4\xc3", "empty": b""}


def stored(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def made_of(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    """An archive of whatever somebody puts into it."""
    whole = (*members, *((entry(f"run/{n}"), b"{}") for n in ("SHA256SUMS",)))
    with tarfile.open(path, "w:gz") as archive:
        for member, content in (*whole, (entry("run/manifest.json"), b"{}")):
            if member.isreg():
                member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return path


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.type, member.linkname = kind, link
    return member


def test_the_same_files_make_the_same_archive() -> None:
    backwards = dict(reversed(FILES.items()))
    assert packed("run", FILES, {"a": 1}) == packed("run", backwards, {"a": 1})


def test_what_was_packed_comes_out_and_its_sums_are_right(tmp_path: Path) -> None:
    path = stored(tmp_path / "x.evidence.tar.gz", packed("run", FILES, {}))
    files = opened(path)
    assert {name: files[name] for name in FILES} == FILES
    assert wrong_sums(files) == []


def test_sha256sum_reads_the_sums(tmp_path: Path) -> None:
    path = stored(tmp_path / "x.tar.gz", packed("run", FILES, {}))
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, filter="data")
    done = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],
        cwd=tmp_path / "run",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count(": OK\n") == len(FILES) + 1


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda f: f | {"empty": b"x"}, "empty was changed"),
        (lambda f: {n: f[n] for n in f if n != "empty"}, "empty is missing"),
        (lambda f: f | {"more": b""}, "more was added"),
        (lambda f: f | {"SHA256SUMS": b"nonsense\n"}, "no sum of one file"),
        (lambda f: f | {"SHA256SUMS": 2 * f["SHA256SUMS"]}, "no sum of one file"),
        (lambda f: f | {"SHA256SUMS": b""}, "empty was added"),
    ],
)
def test_what_was_changed_is_named(
    change: Callable[[dict[str, bytes]], dict[str, bytes]], told: str
) -> None:
    files = {**FILES, "SHA256SUMS": sums_of(FILES).encode()}
    assert wrong_sums(files) == []
    assert any(told in line for line in wrong_sums(change(files)))


@pytest.mark.parametrize(
    ("member", "told"),
    [
        (entry("../outside"), "leads out"),
        (entry("run/../../outside"), "leads out"),
        (entry("/etc/passwd"), "leads out"),
        (entry("alone"), "leads out"),
        (entry("run/link", tarfile.SYMTYPE, "/etc/passwd"), "links are not followed"),
        (entry("run/link", tarfile.LNKTYPE, "run/manifest.json"), "no plain file"),
        (entry("run/pipe", tarfile.FIFOTYPE), "no plain file"),
        (entry("run/disk", tarfile.BLKTYPE), "no plain file"),
        (entry("run/folder", tarfile.DIRTYPE), "no plain file"),
        (entry("run/manifest.json"), "in it twice"),
        (entry("other/file"), "2 folders"),
        (entry("run/manifest.json/file"), "is a file and a folder"),
        (entry("run/" + "x" * 256), "more than 255 bytes"),
        (entry("run/" + "d/" * 3000 + "file"), "more than 32 parts"),
        (entry("run/\udcff"), "cannot be unpacked"),
    ],
)
def test_a_hostile_archive_is_refused(
    tmp_path: Path, member: tarfile.TarInfo, told: str
) -> None:
    path = made_of(tmp_path / "x.tar.gz", (member, b""))
    with pytest.raises(InputError, match=told):
        opened(path)
    assert [each.name for each in tmp_path.iterdir()] == ["x.tar.gz"]


def test_what_unpacks_to_too_much_is_refused(tmp_path: Path) -> None:
    path = made_of(tmp_path / "x.tar.gz", (entry("run/big"), bytes(10_000)))
    with pytest.raises(InputError, match="more than 9999 bytes"):
        opened(path, most_bytes=9999)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([(tarfile.GNUTYPE_LONGNAME, 16 << 20)], id="long name"),
        pytest.param([(tarfile.XHDTYPE, 16 << 20)], id="pax"),
        pytest.param([(tarfile.XGLTYPE, 16 << 20)], id="pax for all"),
        pytest.param([(tarfile.XHDTYPE, 0)] * 2000, id="headers of headers"),
    ],
)
def test_headers_are_no_bomb(tmp_path: Path, headers: list[tuple[bytes, int]]) -> None:
    path = tmp_path / "x.tar.gz"
    with gzip.open(path, "wb", 1) as packing:
        for kind, size in headers:
            header = entry("x", kind)
            header.size = size
            packing.write(header.tobuf() + bytes(size))
        packing.write(entry("run/file").tobuf() + bytes(1024))
    tracemalloc.start()
    with pytest.raises(InputError, match="a header has more than"):
        opened(path)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


@pytest.mark.parametrize("size", [-1, 1000, 1 << 40])
def test_a_size_that_is_none_is_refused(tmp_path: Path, size: int) -> None:
    member = entry("run/file")
    member.pax_headers = {"size": str(size)}
    path = made_of(tmp_path / "x.tar.gz", (member, b""))
    with pytest.raises(InputError):
        opened(path)


def test_nothing_stands_behind_the_last_file(tmp_path: Path) -> None:
    """Behind a header that is none tarfile sees the end, and tar the next file."""
    whole = gzip.decompress(packed("run", FILES, {}))
    end = -(-len(whole.rstrip(b"\0")) // tarfile.BLOCKSIZE) * tarfile.BLOCKSIZE
    behind = b"x" * tarfile.BLOCKSIZE + whole
    content = gzip.compress(whole[:end] + behind, mtime=0)
    with pytest.raises(InputError, match="something else stands behind"):
        opened(stored(tmp_path / "x.tar.gz", content))


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"no archive", id="text"),
        pytest.param(gzip.compress(b"no tar", mtime=0), id="gzip"),
        pytest.param(packed("r", FILES, {})[:-40], id="cut"),
    ],
)
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(InputError):
        opened(stored(tmp_path / "x.tar.gz", content))


def test_an_archive_that_is_not_there_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        opened(tmp_path / "absent.tar.gz")
