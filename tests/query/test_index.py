"""The index has what reading each run would give, whatever becomes of it or of them."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hostile import SHOWN, hostile_environment, hostile_results
from many_runs import CELL, nightly, stored_run
from report_sample import sample_environment, sample_results, store, throughput_cell
from stored_samples import STORED
from timed_sample import delay_results

from dutperf import query
from dutperf.cli import app
from dutperf.errors import InputError, StorageError
from dutperf.query import reader, run_index
from dutperf.query import rows as run_rows
from dutperf.query.views import TABLES, VIEWS
from dutperf.report.source import read_source
from dutperf.results import storage
from dutperf.visible import visible

INDEX = ".dutperf-index"
Rows = dict[str, list[tuple[Any, ...]]]


@pytest.fixture(autouse=True)
def _place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that were just written count as settled; the cache is a place of ours."""
    monkeypatch.setattr(reader, "_TICK_NS", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def _stored(place: Path) -> Path:
    """Small runs at two depths, one that ended early, one damaged."""
    nightly(place, [3e5, 2e5])
    shutil.copytree(STORED, place / "deep" / "er" / "old")
    shutil.copytree(STORED, place / "cut")
    (place / "cut" / "results.json").unlink()
    (place / "damaged").mkdir()
    (place / "damaged" / "results.json").write_text('{"schema_version": 3, ')
    return place


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _stored(tmp_path_factory.mktemp("stored"))


@pytest.fixture(scope="module")
def of_all_kinds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Those, and runs with all that the views have."""
    place = _stored(tmp_path_factory.mktemp("all"))
    store(place / "sample", sample_results(), sample_environment()).close()
    store(place / "delays", delay_results()).close()
    store(place / "hostile", hostile_results(), hostile_environment()).close()
    return place


@pytest.fixture
def runs(stored: Path, tmp_path: Path) -> Path:
    """A copy of them, which may be changed."""
    shutil.copytree(stored, tmp_path / "runs")
    return tmp_path / "runs"


def rows_of(paths: Path | Sequence[Path], told: list[str] | None = None) -> Rows:
    """All rows of all views, sorted."""
    given = [paths] if isinstance(paths, Path) else paths
    notices: list[str] = [] if told is None else told
    with query.connect(given, notices.append) as database:
        found = {v.name: database.sql(f"from {v.name}").fetchall() for v in VIEWS}
    return {name: sorted(rows, key=repr) for name, rows in found.items()}


def read_one_by_one(place: Path) -> Rows:
    """The slow way: every run read, its values as they are."""
    found: Rows = {view.name: [] for view in VIEWS}
    for directory in sorted({path.parent for path in place.rglob("*.json*")}):
        if directory.name == "damaged" or INDEX in directory.parts:
            continue
        source = read_source(directory)
        of_run = {
            "run": str(directory),
            "campaign": source.name,
            "created_at": run_rows.moment(source.created_at),
        }
        rows = run_rows.rows_of(source)
        for view in VIEWS:
            names = [column.name for column in view.columns]
            for row in rows[view.name]:
                told = {**of_run, **row}
                found[view.name].append(tuple(_shown(told[name]) for name in names))
    return found


def _shown(value: object) -> object:
    """Texts as the views have them."""
    if isinstance(value, list):
        return [_shown(each) for each in value]
    return visible(value) if isinstance(value, str) else value


def same(found: Rows, expected: Rows) -> None:
    """Equal, as their columns' types are."""
    for view in VIEWS:
        kinds = [column.type for column in view.columns]
        told, asked = (
            sorted(repr([*map(_figure, row, kinds)]) for row in rows[view.name])
            for rows in (found, expected)
        )
        assert told == asked, view.name


def _figure(value: object, kind: str) -> object:
    if isinstance(value, list):
        return [_figure(each, kind.removesuffix("[]")) for each in value]
    if value is None:
        return None
    return {"VARCHAR": str, "DOUBLE": float, "BIGINT": int}.get(kind, _same)(value)


def _same(value: object) -> object:
    return value


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The runs that are read, as they are."""
    seen: list[str] = []
    real = read_source

    def spy(directory: Path) -> Any:  # noqa: ANN401 - as read_source
        seen.append(directory.name)
        return real(directory)

    monkeypatch.setattr(reader, "read_source", spy)
    return seen


def test_its_rows_are_those_of_each_run_read_alone(of_all_kinds: Path) -> None:
    expected = read_one_by_one(of_all_kinds)
    assert all(expected.values())
    same(rows_of(of_all_kinds), expected)
    same(rows_of(of_all_kinds), expected)  # now of the index alone
    assert SHOWN in {row[1] for row in rows_of(of_all_kinds)["results"]}


@pytest.mark.parametrize("at_once", [1, 3, 10_000])
def test_they_are_the_same_in_however_many_pieces_it_is_made(
    runs: Path, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(run_index, "_ROUND", at_once)
    monkeypatch.setattr(reader, "_SHARE", 2)
    monkeypatch.setattr(reader, "_AT_ONCE", 3 * at_once)
    same(rows_of(runs), read_one_by_one(runs))


def test_they_are_the_same_after_a_hundred_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_SHARE", 1000)  # in this process
    draw = random.Random(1)  # noqa: S311 - figures, no secrets
    place = tmp_path / "many"
    for step in range(12):
        for _ in range(5):
            name = place / f"{draw.randrange(12)}"
            if name.exists():
                shutil.rmtree(name)
            if draw.random() < 0.7 or step == 11:
                cell = throughput_cell(CELL, 4, 64, [draw.uniform(1e5, 2e5)])
                run = stored_run(name, [cell], draw.randrange(1, 28))
                text = (run / "results.json").read_text()
                month = f"2026-{draw.randrange(1, 13):02d}-"
                (run / "results.json").write_text(text.replace("2026-01-", month))
        if any(place.iterdir()):
            same(rows_of(place), read_one_by_one(place))


def test_only_what_is_new_or_has_changed_is_read(runs: Path, read: list[str]) -> None:
    rows_of(runs)
    assert sorted(read) == sorted(["cut", "damaged", "night01", "night02", "old"])
    read.clear()
    before = rows_of(runs)
    assert not read
    stored_run(runs / "new", [throughput_cell(CELL, 4, 64, [1e5])], 9)
    campaign = runs / "night01" / "campaign.yaml"
    campaign.write_text(campaign.read_text().replace("bench", "other"))
    shutil.rmtree(runs / "night02")
    after = rows_of(runs)
    assert sorted(read) == ["new", "night01"]
    same(after, read_one_by_one(runs))
    assert after != before


def test_a_journal_that_grows_is_read_again_without_results_alone(
    runs: Path, read: list[str]
) -> None:
    rows_of(runs)
    read.clear()
    for name in ("cut", "deep/er/old"):
        journal = runs / name / "journal.jsonl"
        last = journal.read_text().splitlines()[-1]
        with journal.open("a") as file:
            file.write(last + "\n")
    after = rows_of(runs)
    assert read == ["cut"]
    same(after, read_one_by_one(runs))


def test_what_may_still_change_unseen_is_read_again(
    runs: Path, read: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reader, "_TICK_NS", 10**15)
    rows_of(runs)
    read.clear()
    rows_of(runs)
    assert len(read) == 5


def test_a_run_that_changes_while_it_is_read_is_read_again(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = read_source
    campaign = runs / "night01" / "campaign.yaml"

    def changing(directory: Path) -> Any:  # noqa: ANN401 - as read_source
        source = real(directory)
        if directory.name == "night01":
            campaign.write_text(campaign.read_text().replace("bench", "after"))
        return source

    monkeypatch.setattr(reader, "read_source", changing)
    rows_of(runs)
    monkeypatch.undo()
    monkeypatch.setattr(reader, "_TICK_NS", 0)
    same(rows_of(runs), read_one_by_one(runs))


def test_it_is_a_file_that_others_can_read(runs: Path) -> None:
    import duckdb

    expected = rows_of(runs)
    (file,) = (runs / INDEX).glob("runs-*.parquet")
    for view in VIEWS:
        rows = duckdb.read_parquet(str(file)).filter(f"table_name = '{view.name}'")
        assert rows.count("*").fetchall() == [(len(expected[view.name]),)]
    times = duckdb.read_parquet(str(file)).filter("table_name = 'trials'")
    found = [time for (time,) in times.select("created_at").fetchall()]
    assert found == sorted(found)


def test_what_was_left_out_is_told_each_time_as_the_directory_is_called(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first: list[str] = []
    rows_of(runs, first)
    (told,) = [line for line in first if line.startswith("left out")]
    assert f"{runs}/damaged/results.json is not valid JSON" in told
    monkeypatch.chdir(runs.parent)
    second: list[str] = []
    rows_of(Path("runs"), second)
    assert second == [told.replace(str(runs), "runs")]


def _file(home: Path) -> Path:
    (file,) = home.glob("runs-*.parquet")
    return file


def _truncated(home: Path) -> None:
    _file(home).write_bytes(_file(home).read_bytes()[:-20])


def _emptied(home: Path) -> None:
    _file(home).write_bytes(b"")


def _flipped(home: Path) -> None:
    data = bytearray(_file(home).read_bytes())
    data[len(data) // 2] ^= 0xFF
    _file(home).write_bytes(data)


def _renamed(home: Path) -> None:
    _file(home).rename(home / f"runs-{'0' * 32}.parquet")


@pytest.mark.parametrize("harm", [_truncated, _emptied, _flipped, _renamed])
def test_an_index_that_cannot_be_used_is_made_anew_and_that_is_said(
    runs: Path, harm: Callable[[Path], None]
) -> None:
    expected = rows_of(runs)
    harm(runs / INDEX)
    _made_anew(runs, expected)


@pytest.mark.parametrize(
    ("name", "value"), [("__version__", "0.0.1"), ("TABLES", TABLES[::-1])]
)
def test_one_of_another_version_is_made_anew_and_that_is_said(
    runs: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(run_index, name, value)
        expected = rows_of(runs)
    _made_anew(runs, expected)


def _made_anew(runs: Path, expected: Rows) -> None:
    told: list[str] = []
    assert rows_of(runs, told) == expected
    (said,) = [line for line in told if "made anew" in line]
    assert "it is damaged, of another version, or was made elsewhere" in said
    told.clear()
    assert rows_of(runs, told) == expected
    assert not [line for line in told if "made anew" in line]


def test_a_copy_of_all_is_not_believed_before_it_is_read(
    runs: Path, tmp_path: Path, read: list[str]
) -> None:
    rows_of(runs)
    shutil.copytree(runs, tmp_path / "copy")
    read.clear()
    same(rows_of(tmp_path / "copy"), read_one_by_one(tmp_path / "copy"))
    assert len(read) == 5


def test_nothing_is_left_of_what_does_not_count(runs: Path) -> None:
    rows_of(runs)
    home = runs / INDEX
    before = _file(home)
    (home / f".{before.name}.0123456789abcdef.new").write_text("of one who was killed")
    shutil.rmtree(runs / "night02")
    rows_of(runs)
    assert _file(home) != before
    assert {path.name for path in home.iterdir()} == {"lock", _file(home).name}


@pytest.mark.parametrize(
    "name", ["mine.parquet", "runs-mine.parquet", ".runs-mine.parquet.1.new", "results"]
)
def test_what_is_no_index_of_ours_stays(runs: Path, name: str) -> None:
    rows_of(runs)
    (runs / INDEX / name).write_text("mine")
    shutil.rmtree(runs / "night02")
    rows_of(runs)
    assert (runs / INDEX / name).read_text() == "mine"


NAMES = ["lock", f"runs-{'0' * 32}.parquet", f".runs-{'0' * 32}.parquet.{'0' * 16}.new"]


@pytest.mark.parametrize("name", ["", *NAMES])
def test_no_link_leads_an_index_elsewhere(
    runs: Path, tmp_path: Path, name: str
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "mine.parquet").write_text("mine")
    link = runs / INDEX / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(victim / "mine.parquet" if name else victim)
    told: list[str] = []
    same(rows_of(runs, told), read_one_by_one(runs))
    assert [path.name for path in victim.iterdir()] == ["mine.parquet"]
    assert (victim / "mine.parquet").read_text() == "mine"
    assert link.is_symlink()
    left_alone = [line for line in told if line.startswith("no index in")]
    assert len(left_alone) == (name in ("", "lock"))


def test_a_link_in_place_of_an_index_that_is_written_leads_nowhere(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "victim").mkdir()
    real = read_source

    def exchanging(directory: Path) -> Any:  # noqa: ANN401 - as read_source
        if not (runs / INDEX).is_symlink():
            (runs / INDEX).rename(tmp_path / "moved")
            (runs / INDEX).symlink_to(tmp_path / "victim")
        return real(directory)

    monkeypatch.setattr(reader, "read_source", exchanging)
    same(rows_of(runs), read_one_by_one(runs))
    assert not list((tmp_path / "victim").iterdir())
    assert _file(tmp_path / "moved")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", NAMES)
def test_nobody_waits_for_a_fifo_in_an_index(runs: Path, name: str) -> None:
    fifo = runs / INDEX / name
    fifo.parent.mkdir()
    os.mkfifo(fifo)
    same(rows_of(runs), read_one_by_one(runs))
    same(rows_of(runs), read_one_by_one(runs))
    assert fifo.is_fifo()


def test_who_reads_keeps_the_files_that_another_replaces(runs: Path) -> None:
    with query.connect([runs]) as database:
        before = database.sql("select count(*) from trials").fetchall()
        shutil.rmtree(runs / "deep")
        rows_of(runs)
        assert database.sql("select count(*) from trials").fetchall() == before


def test_one_that_is_killed_leaves_the_index_as_it_was(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_of(runs)
    stored_run(runs / "new", [throughput_cell(CELL, 4, 64, [1e5])], 9)

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run_index, "write_atomically", killed)
        with pytest.raises(KeyboardInterrupt):
            rows_of(runs)
    same(rows_of(runs), read_one_by_one(runs))


def test_what_was_read_before_an_interruption_is_kept(
    runs: Path, monkeypatch: pytest.MonkeyPatch, read: list[str]
) -> None:
    monkeypatch.setattr(run_index, "_ROUND", 3)
    rounds: list[int] = []
    real = storage.write_atomically

    def second_fails(*given: Any, **keys: Any) -> None:  # noqa: ANN401 - as it
        rounds.append(1)
        if len(rounds) == 2:
            raise KeyboardInterrupt
        real(*given, **keys)

    with monkeypatch.context() as patch:
        patch.setattr(run_index, "write_atomically", second_fails)
        with pytest.raises(KeyboardInterrupt):
            rows_of(runs)
    first = set(read[:3])
    read.clear()
    same(rows_of(runs), read_one_by_one(runs))
    assert not first & set(read)


def test_several_at_once_do_no_harm(runs: Path) -> None:
    program = (
        "import sys; from dutperf import query; "
        "d = query.connect([sys.argv[1]]); "
        "print(d.sql('select count(*) from trials').fetchall()[0][0])"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(runs)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(3)
    ]
    told = [process.communicate() for process in started]
    expected = read_one_by_one(runs)
    assert [(out, err) for out, err in told] == [
        (f"{len(expected['trials'])}\n".encode(), b"")
    ] * 3
    same(rows_of(runs), expected)


def test_who_finds_another_writing_says_so_and_waits(runs: Path) -> None:
    import fcntl

    home = runs / INDEX
    home.mkdir()
    lock = os.open(home / "lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(lock, fcntl.LOCK_EX)
    told: list[str] = []
    waited = threading.Event()

    def hear(notice: str) -> None:
        told.append(notice)
        if notice.startswith("waiting: "):
            os.close(lock)
            waited.set()

    query.connect([runs], hear).close()
    assert waited.is_set()


def _blocked(runs: Path) -> None:
    """Nobody, not even root, makes a directory where a file is."""
    (runs / INDEX).write_text("")


def test_where_the_directory_cannot_be_written_the_index_is_in_the_cache(
    runs: Path, tmp_path: Path, read: list[str]
) -> None:
    _blocked(runs)
    told: list[str] = []
    same(rows_of(runs, told), read_one_by_one(runs))
    assert [line for line in told if line.startswith(f"no index in {runs / INDEX}")]
    assert _file(next((tmp_path / "cache" / "dutperf").glob("index-*")))
    read.clear()
    rows_of(runs)
    assert not read


def test_a_full_disk_costs_no_run_a_second_reading(
    runs: Path, monkeypatch: pytest.MonkeyPatch, read: list[str]
) -> None:
    real = storage.write_atomically
    full: list[Path] = []

    def first_is_full(path: Path, *given: Any, **keys: Any) -> None:  # noqa: ANN401
        if not full:
            full.append(path)
            raise StorageError(f"cannot write {path}: No space left on device")
        real(path, *given, **keys)

    monkeypatch.setattr(run_index, "write_atomically", first_is_full)
    told: list[str] = []
    same(rows_of(runs, told), read_one_by_one(runs))
    (said,) = [line for line in told if line.startswith("no index in")]
    assert said.count(str(runs / INDEX)) == 2
    assert "No space left" in said
    assert len(read) == len(set(read)) == 5


def test_where_no_place_is_left_it_is_made_for_the_moment(
    runs: Path, tmp_path: Path
) -> None:
    _blocked(runs)
    (tmp_path / "cache").write_text("")
    told: list[str] = []
    same(rows_of(runs, told), read_one_by_one(runs))
    assert f"the index of {runs} is made for this time only" in told


def test_a_run_alone_is_left_as_it_is(runs: Path) -> None:
    alone = runs / "night01"
    before = sorted(alone.iterdir())
    same(rows_of(alone), read_one_by_one(alone))
    assert sorted(alone.iterdir()) == before
    assert {row[0] for row in rows_of(alone)["results"]} == {str(alone)}


def test_directories_that_overlap_give_each_run_once(runs: Path) -> None:
    expected = rows_of(runs)
    assert rows_of([runs, runs / "deep"]) == expected
    assert rows_of([runs / "deep", runs]) == expected
    assert rows_of([runs, runs]) == expected


def test_runs_are_called_as_their_directory_is(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows_of(runs)
    for where, given, called in (
        (runs.parent, "runs", "runs/night01"),
        (runs, ".", "night01"),
        (runs, "../runs", "../runs/night01"),
    ):
        monkeypatch.chdir(where)
        names = {row[0] for row in rows_of(Path(given))["results"]}
        assert called in names


def test_every_process_reads_its_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    monkeypatch.setattr(reader, "_SHARE", 3)
    nightly(tmp_path / "many", [1e5 + day for day in range(20)])
    same(rows_of(tmp_path / "many"), read_one_by_one(tmp_path / "many"))


def test_a_process_that_is_killed_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    monkeypatch.setattr(reader, "_SHARE", 3)
    monkeypatch.setattr(sys, "executable", "/bin/false")
    nightly(tmp_path / "many", [1e5 + day for day in range(9)])
    assert app.run(["query", str(tmp_path / "many"), "from results"]) == 3
    told = capsys.readouterr().err
    assert "a process that read runs ended early (exit code 1)" in told
    assert "Traceback" not in told


def test_a_directory_without_runs_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError):
        query.connect([tmp_path / "empty"])
    assert not list((tmp_path / "empty").iterdir())


@pytest.fixture
def address(runs: Path) -> str:
    """The same runs at an address."""
    pytest.importorskip("fsspec")
    return f"file://{runs}"


def test_runs_at_an_address_are_those_of_the_directory(
    runs: Path, address: str, read: list[str]
) -> None:
    with query.connect([address]) as database:
        told = {v.name: database.sql(f"from {v.name}").fetchall() for v in VIEWS}
    plain = {
        name: [(row[0].removeprefix("file://"), *row[1:]) for row in rows]
        for name, rows in told.items()
    }
    same(plain, read_one_by_one(runs))
    assert not (runs / INDEX).exists()
    read.clear()
    notices: list[str] = []
    query.connect([address], notices.append).close()
    assert not read
    (left_out,) = notices
    assert f"{address}/damaged/results.json is not valid JSON" in left_out
    stored_run(runs / "new", [throughput_cell(CELL, 4, 64, [1e5])], 9)
    query.connect([address]).close()
    assert len(read) == 1


@pytest.mark.parametrize("name", ["nonsense://x", "file:///nowhere/at/all"])
def test_an_address_that_leads_nowhere_is_an_input_error(
    capsys: pytest.CaptureFixture[str], name: str
) -> None:
    pytest.importorskip("fsspec")
    assert app.run(["query", name, "from results"]) == 2
    told = capsys.readouterr().err
    assert name in told
    assert "Traceback" not in told
