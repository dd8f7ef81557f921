"""Archives and SQL that somebody sent are at most refused, and change nothing."""

from __future__ import annotations

import contextlib
import gzip
import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from duckdb import DuckDBPyConnection
from fuzzing import damaged_bytes, seeded
from hypothesis import given
from hypothesis import strategies as st
from many_runs import nightly

from dutperf.errors import InputError
from dutperf.evidence.pack import opened, packed
from dutperf.evidence.verify import unpacked
from dutperf.query.database import connect, selected

RUN = {"results.json": b"{}", "frames/cell-forward.pcap": bytes(100), "a.txt": b"a"}
ARCHIVE = packed("run", RUN, {"schema_version": 1})
TAR = gzip.decompress(ARCHIVE)
TYPES = [getattr(tarfile, name) for name in dir(tarfile) if name.endswith("TYPE")]
NAMES = st.one_of(
    st.sampled_from(
        [
            *("", ".", "..", "/", "run", "run/", "run/..", "run/../x", "/etc/passwd"),
            *("run/results.json", "run/results.json/x", "run/frames", "other/x"),
            *("run/" + "x" * 300, "run/" + "d/" * 3000 + "x", "run/\x1b[2J", "run/.x"),
            *("run/a\\..\\x", "run/\u202e", "run/\udcff", "run/SHA256SUMS"),
        ]
    ),
    st.text(max_size=12).map("run/{}".format),
)


@st.composite
def strange_archives(draw: st.DrawFn) -> bytes:
    """Members of every kind and name, behind those of a run."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        for name, content in RUN.items():
            member = tarfile.TarInfo(f"run/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
        for _ in range(draw(st.integers(1, 4))):
            member = tarfile.TarInfo(draw(NAMES))
            member.type = draw(
                st.sampled_from([b for b in TYPES if isinstance(b, bytes)])
            )
            member.linkname = draw(NAMES)
            member.size = draw(st.sampled_from([0, 0, 1, 600]))
            with contextlib.suppress(ValueError, UnicodeError):  # it cannot be written
                archive.addfile(member, io.BytesIO(bytes(member.size)))
    return stream.getvalue()


def at_most_refused(folder: Path, content: bytes) -> None:
    path = folder / "run.tar.gz"
    path.write_bytes(content)
    with contextlib.suppress(InputError):
        assert opened(path)
        with unpacked(path) as directory:
            names = {f.relative_to(directory).as_posix() for f in directory.rglob("*")}
            assert opened(path).keys() <= names
    assert [each.name for each in folder.iterdir()] == ["run.tar.gz"]


def test_the_archive_is_whole(tmp_path: Path) -> None:
    (tmp_path / "run.tar.gz").write_bytes(ARCHIVE)
    assert opened(tmp_path / "run.tar.gz").keys() > RUN.keys()


def test_damaged_archives_are_at_most_refused(tmp_path: Path) -> None:
    @seeded
    @given(damaged_bytes([ARCHIVE]))
    def check(content: bytes) -> None:
        at_most_refused(tmp_path, content)

    check()


def test_damaged_headers_are_at_most_refused(tmp_path: Path) -> None:
    @seeded
    @given(damaged_bytes([TAR]))
    def check(content: bytes) -> None:
        at_most_refused(tmp_path, gzip.compress(content, 1))

    check()


def test_strange_members_are_at_most_refused(tmp_path: Path) -> None:
    @seeded
    @given(strange_archives())
    def check(content: bytes) -> None:
        at_most_refused(tmp_path, content)

    check()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return nightly(tmp_path_factory.mktemp("runs") / "runs", [1000.0, 1001.0])


@pytest.fixture(scope="module")
def database(runs: Path) -> Iterator[DuckDBPyConnection]:
    with connect([runs]) as database:
        yield database


STATEMENTS = [
    "select * from results",
    "select campaign, median(value) from results group by all",
    "pivot results on procedure using count(*)",
    "explain analyze select 1",
    "with t as materialized (select * from trials) select * from t",
]
PLACES = ["'x.csv'", "'../x'", "'/etc/passwd'", "'.dutperf-index/x.parquet'", "results"]
PIECES = st.sampled_from(
    [
        *("explain", "explain analyze", "select", "from", "copy", "to", "(", ")", ";"),
        *(
            "export database",
            "import database",
            "attach",
            "detach",
            "create table t as",
        ),
        *("create or replace view results as", "drop view results", "insert into"),
        *("delete from results", "update results set value = 1", "prepare p as"),
        *("execute p", "call", "pragma", "set", "reset", "install", "load", "vacuum"),
        *("checkpoint", "begin", "commit", "use memory", "read_csv(", "read_text("),
        *("read_blob(", "glob(", "sniff_csv(", "getenv('HOME')", "query('select 1')"),
        *("memory_limit = '1GB'", "enable_external_access = true", "*", ",", "1", "'"),
        *(
            "values (1)",
            "format csv",
            "--",
            "/*",
            "\x00",
            "\u202e",
            "where",
            "union all",
        ),
        *PLACES,
    ]
)


def tree(folder: Path) -> dict[str, bytes]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return {str(f.relative_to(folder)): f.read_bytes() for f in files}


def test_sql_reads_alone(
    runs: Path,
    database: DuckDBPyConnection,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    before = tree(runs)
    views = "select view_name, sql from duckdb_views() order by all"
    defined = selected(database, views).relation.fetchall()

    @seeded
    @given(st.sampled_from(["", *STATEMENTS]), st.lists(PIECES, max_size=8))
    def check(statement: str, pieces: list[str]) -> None:
        sql = " ".join([statement, *pieces])
        with contextlib.suppress(InputError):
            for _ in zip(range(100), selected(database, sql).rows(), strict=False):
                pass
        assert list(tmp_path.iterdir()) == []

    check()
    assert tree(runs) == before
    assert selected(database, views).relation.fetchall() == defined


@pytest.mark.parametrize(
    "sql",
    [
        "explain analyze copy (select 1) to '{}/x.parquet' (format parquet)",
        "explain analyze drop view results",
        "explain analyze create table t as select 1",
        "explain analyze delete from results",
    ],
)
def test_nothing_is_done_to_be_explained(
    sql: str, runs: Path, database: DuckDBPyConnection
) -> None:
    (index,) = runs.glob(".dutperf-index*")
    before = tree(runs)
    with pytest.raises(InputError, match="reads"):
        selected(database, sql.format(index))
    assert tree(runs) == before
