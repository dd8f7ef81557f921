"""CSV of a table: numbers that a program reads, and what is none beside them."""

from __future__ import annotations

import csv
from collections.abc import Callable

import pytest
from connection_sample import stateful_results
from report_sample import sample_results
from timed_sample import delay_results

from dutperf.export import csv_table, csv_tables
from dutperf.procedures.measurements import tables
from dutperf.results import ResultsFile
from dutperf.results.details import MeasuredValue
from dutperf.tables import Column, Row, Span, Table, Value, Verdict, subjects
from dutperf.tables.table_model import count, delay, duration, percent

SAMPLES = (sample_results, delay_results, stateful_results)


def read(table: Table) -> list[dict[str, str]]:
    heads, *rows = csv.reader(csv_table(table).splitlines())
    assert len(set(heads)) == len(heads), "a program finds each column by its name"
    return [dict(zip(heads, row, strict=True)) for row in rows]


def one(name: str, unit: str, *entries: Value | Span | Verdict | str) -> Table:
    rows = tuple(Row("", (entry,)) for entry in entries)
    return Table("k", "title", (Column(name, "It is.", unit),), rows)


def test_a_figure_has_all_its_digits_and_no_separators() -> None:
    told = read(one("rate", "fps", count(1234567.25), count(12)))
    assert [row["rate [fps]"] for row in told] == ["1234567.25", "12"]


def test_times_of_a_column_are_all_in_nanoseconds() -> None:
    times = [duration(value) for value in (12, 3456.5, 2e9, 5e12)]
    told = read(one("TL", "median", *times))
    assert [row["TL [ns median]"] for row in told] == [
        "12",
        "3456.5",
        "2000000000.0",
        "5000000000000.0",
    ]


def test_a_share_says_of_what_and_keeps_what_a_table_rounds() -> None:
    told = read(one("loss", "of frames", percent(99.999999), percent(0.0)))
    assert [row["loss [% of frames]"] for row in told] == ["99.999999", "0.0"]


def test_a_bound_is_marked_beside_its_figure_and_what_is_none_is_empty() -> None:
    entries = [
        count(5, "lower"),
        count(6),
        delay(MeasuredValue(value=None, absent="lost")),
        Value(absent="invalid"),
        Value(),
    ]
    told = read(one("rate", "", *entries))
    assert [row["rate"] for row in told] == ["5", "6", "", "", ""]
    assert [row["rate, mark"] for row in told] == [
        "at least",
        "",
        "infinite: frames were lost",
        "invalid",
        "",
    ]


def test_no_mark_stands_where_all_is_plain() -> None:
    assert list(read(one("rate", "", count(5)))[0]) == ["rate"]


def test_both_ends_of_a_span_have_a_column() -> None:
    told = read(one("ends", "", Span(duration(1000), duration(2e6))))
    assert told == [{"ends [ns], from": "1000", "ends [ns], to": "2000000.0"}]


def test_a_row_of_the_same_cell_has_its_name_too() -> None:
    columns = (Column("n", "It is."),)
    rows = (Row("a", (count(1),)), Row("", (count(2),)), Row("b", (count(3),)))
    told = read(Table("k", "title", columns, rows))
    assert [row["cell"] for row in told] == ["a", "a", "b"]


@pytest.mark.parametrize("made", SAMPLES)
def test_each_table_of_a_run_has_its_rows_and_columns_of_different_names(
    made: Callable[[], ResultsFile],
) -> None:
    results = made()
    found = list(tables(list(subjects(results)), results.scalability))
    assert found
    for table in found:
        assert len(read(table)) == len(table.rows)
    together = csv_tables(found)
    for table in found:
        assert f"# {table.key}: " in together
        assert csv_table(table) in together
