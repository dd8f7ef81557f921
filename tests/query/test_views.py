"""The views have what the stored files have: no more, no less, nothing obeyed."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import duckdb
import pytest
from connection_sample import stateful_results
from hostile import NASTY, SHOWN, hostile_environment, hostile_results
from many_runs import CELL, stored_run
from report_sample import (
    LOSSES_4,
    sample_environment,
    sample_results,
    store,
    throughput_cell,
)
from stored_samples import STORED
from timed_sample import delay_results
from told_cells import retyped

from dutperf import query
from dutperf.errors import InputError, StorageError
from dutperf.model.traffic import Beside, BesideKind
from dutperf.protocol.result_messages import BesideResult
from dutperf.query.database import selected
from dutperf.results import CellResult, MeasuredValue, ResultsFile, load_results
from dutperf.results.rate_results import BesideCount, ManagementCount
from dutperf.stats import median


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of throughputs and frame loss, two directories down."""
    path = tmp_path_factory.mktemp("base") / "one" / "two"
    path.parent.mkdir()
    store(path, sample_results(), sample_environment()).close()
    return path.parents[1]


def asked(path: Path | Sequence[Path], sql: str) -> list[tuple[Any, ...]]:
    paths = [path] if isinstance(path, Path) else path
    with query.connect(paths) as database:
        return list(selected(database, sql).rows())


def test_what_a_researcher_types_gives_the_medians_of_the_files(tmp_path: Path) -> None:
    rates = {64: [3e5, 2.9e5, 3.2e5], 128: [2.5e5, 2.4e5]}
    for size, found in rates.items():
        for number, rate in enumerate(found):
            cell = throughput_cell(f"throughput-ip4-{size}-both", 4, size, [rate])
            stored_run(tmp_path / "deep" / f"{size}-{number}", [cell], number + 1)
    sql = "select device, frame_size, median(rate_fps) from results group by all"
    told = sorted(asked(tmp_path, sql))
    assert told == [("bench", size, median(found)) for size, found in rates.items()]


def test_a_trial_counts_the_frames_of_all_its_directions(base: Path) -> None:
    sql = (
        "select trial, sent_frames, received_frames, lost_frames, lost_frames_forward, "
        "loss_percent, load_fps, verdict from trials order by trial"
    )
    for trial, row in zip(sample_results().trials, asked(base, sql), strict=True):
        streams = [s for d in trial.result.directions for s in d.streams]
        sent, lost = sum(s.sent for s in streams), sum(s.lost for s in streams)
        assert row[:2] == (trial.number, sent)
        assert row[2:4] == (sum(s.received for s in streams), lost)
        assert row[4] == trial.result.directions[0].streams[0].lost
        assert row[5] == pytest.approx(100 * lost / sent)
        assert row[6:] == (trial.load_fps, trial.result.verdict.kind)


def test_delays_of_a_trial_lie_in_the_buckets_of_their_samples(base: Path) -> None:
    sql = "select delay_min_ns, delay_median_ns, delay_p99_ns, delay_max_ns from trials"
    trial = sample_results().trials[0]
    buckets = sorted(
        (high, low, count)
        for d in trial.result.directions
        for low, high, count in d.streams[0].delay_ns.buckets
    )
    samples = sum(count for _, _, count in buckets)
    seen, at = 0, {}
    for high, _, count in buckets:
        for share in (0.5, 0.99):
            if seen < math.ceil(share * samples) <= seen + count:
                at[share] = high
        seen += count
    told = asked(base, f"{sql} where trial = 1")[0]
    histograms = [d.streams[0].delay_ns for d in trial.result.directions]
    assert told[0] == min(h.min for h in histograms if h.min is not None)
    assert told[1] == pytest.approx(at[0.5], rel=0.05)
    assert told[2] == at[0.99]
    assert told[3] == max(h.max for h in histograms if h.max is not None)


def test_a_loss_curve_has_a_row_for_each_load(base: Path) -> None:
    sql = (
        "select load_percent, loss_percent, rate_fps from results "
        "where cell = 'frame-loss-ip4-64-both' order by load_percent desc"
    )
    assert asked(base, sql) == [(load, loss, None) for load, loss in LOSSES_4.items()]


def test_an_interrupted_run_has_its_trials_and_says_where_it_ended(
    base: Path, tmp_path: Path
) -> None:
    cut = tmp_path / "cut"
    shutil.copytree(base / "one" / "two", cut)
    (cut / "results.json").unlink()
    whole = asked(base, "select count(*), sum(lost_frames) from trials")
    assert asked(cut, "select count(*), sum(lost_frames) from trials") == whole
    assert asked(cut, "select count(*) from results") == [(0,)]
    open_cells = "select distinct cell from findings where kind = 'not_finished'"
    assert len(asked(cut, open_cells)) == len(sample_results().cells)


def test_no_room_for_the_views_is_told_with_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(STORED, tmp_path / "run")
    assert asked(tmp_path, "select count(*) from trials") == [(5,)]
    opened = duckdb.connect

    def full(
        database: str | Path = ":memory:",
        **keys: Any,  # noqa: ANN401 - of duckdb
    ) -> duckdb.DuckDBPyConnection:
        if "views" in str(database):
            raise duckdb.IOException("IO Error: No space left on device")
        return opened(database, **keys)

    monkeypatch.setattr(duckdb, "connect", full)
    with pytest.raises(StorageError, match=r"cannot write .*No space left") as told:
        query.connect([tmp_path])
    assert "TMPDIR" in told.value.hint


def test_a_bound_is_named_and_an_invalid_result_is_no_figure(tmp_path: Path) -> None:
    exact = throughput_cell("a", 4, 64, [3e5])
    bound = throughput_cell("b", 4, 64, [2e5]).model_copy(
        update={"bound": "lower", "bound_cause": "tester"}
    )
    # What did pass before the search went wrong is stored, and is no result.
    invalid = bound.model_copy(update={"id": "c", "verdict": "invalid"})
    stored_run(tmp_path / "r", [exact, bound, invalid])
    sql = "select rate_fps, bound, bound_cause, verdict from results order by cell"
    assert asked(tmp_path, sql) == [
        (3e5, None, None, "pass"),
        (2e5, "lower", "tester", "pass"),
        (None, None, None, "invalid"),
    ]


def test_an_end_of_an_interval_that_may_be_higher_is_not_told(tmp_path: Path) -> None:
    cell = throughput_cell("a", 4, 64, [float(n) for n in range(100, 110)])
    assert cell.spread
    at_least = cell.spread.model_copy(update={"lower_bounds": ["interval_upper"]})
    other = cell.model_copy(update={"id": "b", "spread": at_least})
    stored_run(tmp_path / "r", [cell, other])
    sql = "select interval_lower, interval_upper from results order by cell"
    first, second = asked(tmp_path, sql)
    assert first == (cell.spread.interval_lower, cell.spread.interval_upper)
    assert second == (cell.spread.interval_lower, None)


def _with_lost_delays() -> ResultsFile:
    results = delay_results()
    cell = next(cell for cell in results.cells if cell.procedure == "latency")
    lost = MeasuredValue(value=None, absent="lost")
    measures = [m.model_copy(update={"result": lost}) for m in cell.measures]
    update = {"measures": measures, "median": None}
    return results.model_copy(
        update={"cells": [cell.model_copy(update=update)], "trials": []}
    )


def test_a_delay_of_lost_frames_is_infinite_and_ranked_so(tmp_path: Path) -> None:
    store(tmp_path / "r", _with_lost_delays()).close()
    sql = "select distinct verdict, delay_ns from results"
    assert asked(tmp_path, sql) == [("pass", math.inf)]


def test_each_figure_stands_in_the_column_of_its_unit(tmp_path: Path) -> None:
    store(tmp_path / "r", stateful_results()).close()
    sql = (
        "select procedure, connections_per_s, capacity_connections from results "
        "where procedure in ('connection-rate', 'table-capacity')"
    )
    found = {cell.procedure: cell.median for cell in stateful_results().cells}
    assert sorted(asked(tmp_path, sql)) == [
        ("connection-rate", found["connection-rate"], None),
        ("table-capacity", None, found["table-capacity"]),
    ]


def _with_beside(name: str, kind: BesideKind, percent: float) -> CellResult:
    cell = throughput_cell(name, 4, 64, [1e5])
    counts = [
        BesideCount(direction="forward", sent=70, received=7),
        BesideCount(direction="reverse", sent=60, received=0),
    ]
    told = cell.parameters | {"beside": Beside(kind, percent).words}
    return retyped(cell.model_copy(update={"parameters": told, "beside": counts}))


def test_what_was_beside_the_stream_can_be_selected(tmp_path: Path) -> None:
    cells = [
        _with_beside("a", "broadcast", 1),
        _with_beside("b", "hop-by-hop", 0.25),
        throughput_cell("c", 4, 64, [1e5]),
    ]
    stored_run(tmp_path / "r", cells)
    sql = (
        "select broadcast_percent, hop_by_hop_percent, beside_sent_frames, "
        "beside_received_frames from results order by cell"
    )
    assert asked(tmp_path, sql) == [
        (1, None, 130, 7),
        (None, 0.25, 130, 7),
        (None, None, None, None),
    ]


def test_a_figure_of_one_direction_has_what_was_beside_it_there(tmp_path: Path) -> None:
    results = delay_results()
    beside = _with_beside("a", "broadcast", 1).beside
    cells = [cell.model_copy(update={"beside": beside}) for cell in results.cells]
    store(tmp_path / "r", results.model_copy(update={"cells": cells})).close()
    sql = "select distinct direction, beside_sent_frames from results order by all"
    told = [("both", 130), ("forward", 70), ("reverse", 60)]
    assert asked(tmp_path, sql) == told


def test_queries_of_management_can_be_selected(tmp_path: Path) -> None:
    plain = throughput_cell("a", 4, 64, [1e5])
    count = ManagementCount(asked=20, answered=18, wrong=1, slowest_ns=1_250_000)
    other = plain.model_copy(update={"id": "b", "management": count})
    stored_run(tmp_path / "r", [plain, other])
    sql = (
        "select queries_asked, queries_answered, queries_wrong, queries_slowest_ns "
        "from results order by cell"
    )
    assert asked(tmp_path, sql) == [(None,) * 4, (20, 18, 1, 1_250_000)]


def test_a_trial_counts_frames_beside_its_streams_apart(tmp_path: Path) -> None:
    plain = sample_results().trials[0]
    beside = BesideResult(intended=10, sent=9, received=4)
    ways = [
        way.model_copy(update={"beside": beside}) for way in plain.result.directions
    ]
    result = plain.result.model_copy(update={"directions": ways})
    other = plain.model_copy(update={"number": 2, "result": result})
    run = sample_results().model_copy(update={"trials": [plain, other]})
    store(tmp_path / "r", run).close()
    sql = (
        "select beside_sent_frames, beside_received_frames, sent_frames from trials "
        "order by trial"
    )
    sent = sum(s.sent for d in ways for s in d.streams)
    assert asked(tmp_path, sql) == [(None, None, sent), (18, 8, sent)]


def test_several_testbeds_are_told_apart(tmp_path: Path) -> None:
    cells = [
        throughput_cell(f"{CELL}@{place}", 4, 64, [1e5]).model_copy(
            update={"place": place}
        )
        for place in ("east", "west")
    ]
    path = stored_run(tmp_path / "r", cells)
    (path / "campaign.yaml").write_text("testbed: [{name: east}, {name: west}]\n")
    told = asked(tmp_path, "select device, cell from results order by all")
    assert told == [("east", f"{CELL}@east"), ("west", f"{CELL}@west")]


def test_reasons_deviations_and_the_machine_are_findings(base: Path) -> None:
    sql = "select kind, count(distinct cell) from findings where about = 'deviation'"
    told = dict(asked(base, f"{sql} group by kind"))
    assert told == {"RFC 2544 24": 4, "RFC 2544 23": 2}


def test_what_cannot_be_read_is_told_and_left_out(tmp_path: Path) -> None:
    good = stored_run(tmp_path / "good", [throughput_cell(CELL, 4, 64, [1e5])])
    text = (good / "results.json").read_text()
    newer = text.replace('"schema_version":3', '"schema_version":99')
    for name, said in (("damaged", text[:-9]), ("newer", newer), ("alien", "[]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(said)
    told: list[str] = []
    with query.connect([tmp_path], told.append) as database:
        rows = list(selected(database, "select run from results").rows())
    assert rows == [(str(good),)]
    assert [line.partition(" ")[0] for line in told] == ["left", "left", "left"]
    assert any("schema version 99" in line for line in told)


def test_a_number_that_no_column_holds_costs_its_run_alone(tmp_path: Path) -> None:
    cell = throughput_cell(CELL, 4, 64, [1e5])
    stored_run(tmp_path / "a", [cell])
    many = [repeat.model_copy(update={"trials": 10**40}) for repeat in cell.repeats]
    huge = cell.model_copy(update={"repeats": many})
    stored_run(tmp_path / "b", [huge])
    told: list[str] = []
    with query.connect([tmp_path], told.append) as database:
        rows = list(selected(database, "select run from results").rows())
    assert rows == [(str(tmp_path / "a"),)]
    assert len(told) == 1
    assert str(tmp_path / "b") in told[0]


def test_a_directory_that_is_given_twice_counts_once(base: Path) -> None:
    sql = "select count(*) from results"
    assert asked([base, base / "one"], sql) == asked(base, sql)


@pytest.mark.parametrize("name", ["nowhere", ""])
def test_no_results_are_an_input_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError):
        query.connect([tmp_path / name])


def test_names_that_mean_harm_are_shown_wherever_they_go(tmp_path: Path) -> None:
    store(tmp_path / "r", hostile_results(), hostile_environment()).close()
    campaign, cell = asked(tmp_path, "select campaign, cell from results limit 1")[0]
    assert campaign == SHOWN
    assert cell.endswith(SHOWN)
    assert asked(tmp_path, "select distinct kernel from environment") == [(SHOWN,)]
    settings = json.loads(asked(tmp_path, "select settings from results")[0][0])
    assert NASTY in settings


SECRET = "not for SQL"  # noqa: S105 - a file's content


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_text('{file}')",
        "select * from '{file}'",
        "select * from read_csv('{file}')",
        "select * from glob('{directory}/*')",
        "copy (select 1) to '{file}'",
        "attach '{directory}/x.db'",
        "export database '{directory}/x'",
        "install httpfs",
        "load '{file}'",
        "set enable_external_access = true",
        "set allowed_paths = ['{file}']",
        "set lock_configuration = false",
        "select * from SECRET",
        "drop view results; drop table nowhere",
        "drop view results; from trials",
        "copy results to '{directory}/.dutperf-index/x.parquet'",
        "explain analyze copy results to '{directory}/.dutperf-index/x.parquet'",
        "EXPLAIN (ANALYZE) copy results to '{directory}/.dutperf-index/x.parquet'",
        "explain /**/ analyze copy results to '{directory}/.dutperf-index/x.parquet'",
        "from trials; explain analyze copy trials to '{directory}/x.parquet'",
        "explain analyze drop view results",
    ],
)
def test_sql_reads_and_writes_no_file_and_changes_no_setting(
    tmp_path: Path, sql: str
) -> None:
    stored_run(tmp_path / "r", [throughput_cell(CELL, 4, 64, [1e5])])
    file = tmp_path / "file.csv"
    file.write_text(SECRET)
    database = query.connect([tmp_path])
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(InputError) as caught:
        list(selected(database, sql.format(file=file, directory=tmp_path)).rows())
    assert "\n" not in caught.value.message
    assert SECRET not in caught.value.message
    assert file.read_text() == SECRET
    assert sorted(tmp_path.rglob("*")) == before


def test_a_select_can_be_explained(base: Path) -> None:
    database = query.connect([base])
    for how in ("explain", "explain analyze", "EXPLAIN (ANALYZE, FORMAT json)"):
        found = selected(database, f"{how} from trials")
        assert len(list(found.rows())) == 1


def test_views_agree_with_what_is_stored_of_a_run(base: Path) -> None:
    """As many figures as the file has, and the medians of its cells."""
    results = load_results(base / "one" / "two")
    cells = {c.id: c.median for c in results.cells if c.procedure == "throughput"}
    told = asked(base, "select cell, rate_fps from results where rate_fps is not null")
    assert dict(told) == cells
