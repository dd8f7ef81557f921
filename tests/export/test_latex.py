"""LaTeX of a table: complete, and nothing in it but text."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from connection_sample import stateful_results
from hostile import NASTY
from report_sample import sample_results
from timed_sample import delay_results

from dutperf.errors import InputError
from dutperf.export import escaped, for_readers, latex, with_columns
from dutperf.procedures.measurements import tables
from dutperf.results import ResultsFile
from dutperf.tables import Column, Row, Table, Value, subjects
from dutperf.tables.table_model import count, duration, percent


def table(*values: Value, unit: str = "fps", note: str = "") -> Table:
    rows = tuple(Row(f"cell_{n}", (value,)) for n, value in enumerate(values))
    notes = (note,) if note else ()
    return Table("k", "title", (Column("rate", "It is.", unit),), rows, notes)


def test_units_stand_below_the_names_and_bounds_before_the_figures() -> None:
    told = latex(table(count(12345, "lower"), percent(1.5), duration(-1500)))
    assert "    cell & rate \\\\\n     & fps \\\\\n    \\midrule\n" in told
    assert r"cell\_0 & $\geq$~12,345 \\" in told
    assert r"cell\_1 & 1.5~\% \\" in told
    assert r"cell\_2 & $-$1.5~\textmu{}s \\" in told


def test_there_is_no_line_of_units_where_there_are_none() -> None:
    assert "    cell & rate \\\\\n    \\midrule\n" in latex(table(count(1), unit=""))


def test_every_special_character_is_text() -> None:
    special = "\\ { } $ & # % _ ^ ~ < > | \" ' ` [ ] -- ---"
    told = escaped(special)
    bare = re.sub(r"\\(?:[{}$&#%_]|text[a-z]+\{\})|\{[\[\]]\}|-\{\}", "", told)
    assert not re.search(r"[\\{}$&#%_^~<>|\"'`\[\]]|--", bare)


@pytest.mark.parametrize("text", [NASTY, "a\nb", r"\input{/etc/passwd}", "%", "x & y"])
def test_hostile_words_end_no_line_and_begin_no_command(text: str) -> None:
    told = latex(table(count(1), note=text, unit=text))
    harmless = latex(table(count(1), note="x", unit="x"))
    assert told.count("\n") == harmless.count("\n")
    commands = re.compile(r"\\(begin|end|input|caption|par)\b")
    assert commands.findall(told) == commands.findall(harmless)
    assert told.isprintable() or told.replace("\n", "").isprintable()


@pytest.mark.parametrize("made", [sample_results, delay_results, stateful_results])
def test_each_line_of_each_table_has_as_many_entries_as_columns(
    made: Callable[[], ResultsFile],
) -> None:
    results = made()
    for each in tables(list(subjects(results)), results.scalability):
        told = latex(each)
        kinds = re.search(r"\\begin\{tabular\}\{(\w+)\}", told)
        assert kinds
        lines = [line for line in told.splitlines() if line.endswith(r" \\")]
        for line in lines:
            assert len(re.findall(r"(?<!\\)&", line)) == len(kinds[1]) - 1
        assert told.count(r"\begin") == told.count(r"\end") == 2


def test_where_the_rfc_has_a_column_for_each_experiment_it_has_one_here() -> None:
    results = stateful_results()
    found = list(tables(list(subjects(results)), results.scalability))
    (each, *_) = [table for table in found if table.sideways]
    told = latex(each)
    assert told.count(r" \\") == len(each.columns) + 1


def throughputs() -> Table:
    return next(
        t for t in tables(list(subjects(sample_results())), []) if t.key == "throughput"
    )


def test_readers_get_no_ids_where_words_tell_the_rows() -> None:
    told = latex(for_readers(throughputs()))
    assert "throughput-ip" not in told
    assert "IPv4, 64 bytes &" in told
    unnamed = table(count(1))
    assert for_readers(unnamed) == unnamed


def test_chosen_columns_stand_in_the_order_that_was_asked_for() -> None:
    told = latex(
        with_columns(throughputs(), ["throughput", "traffic"]), "A & B", "tab:x"
    )
    assert "  \\caption{A \\& B}\n  \\label{tab:x}\n" in told
    assert "\\begin{tabular}{rl}" in told
    assert "    throughput & traffic \\\\\n" in told
    first = next(cell for cell in subjects(sample_results()) if cell.median)
    assert f"    {first.median:,.0f} & {first.stream} \\\\\n" in told


def test_ids_are_a_column_that_may_be_asked_for() -> None:
    told = latex(with_columns(throughputs(), ["cell", "throughput"]))
    assert "    cell & throughput \\\\\n" in told
    assert "throughput-ip4-64-both &" in told


def test_a_column_that_there_is_not_is_named_with_those_that_there_are() -> None:
    with pytest.raises(InputError, match="--columns speed: the table throughput") as no:
        with_columns(throughputs(), ["speed"])
    assert "cell, traffic, directions" in no.value.hint


@pytest.mark.parametrize("made", [sample_results, delay_results, stateful_results])
def test_without_ids_lines_have_as_many_entries(
    made: Callable[[], ResultsFile],
) -> None:
    for each in map(for_readers, tables(list(subjects(made())), made().scalability)):
        told = latex(each)
        (kinds,) = re.findall(r"\\begin\{tabular\}\{([lr]+)\}", told)
        lines = re.findall(r"    (.*) \\\\", told)
        assert {line.count(" & ") + 1 for line in lines} == {len(kinds)}
