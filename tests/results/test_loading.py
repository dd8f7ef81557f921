"""What no JSON of ours can hold is refused where it stands."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from report_sample import sample_environment
from stored_samples import results_file

from dutperf.errors import InputError
from dutperf.report.source import read_source
from dutperf.results import journal as journal_module
from dutperf.results import load_campaign, load_environments, load_journal, load_results


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_figure_that_is_no_number_is_refused(tmp_path: Path, number: str) -> None:
    path = tmp_path / "results.json"
    text = results_file().stored_text().replace('"median":1000.0', f'"median":{number}')
    assert number in text
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=r"results\.json: cells\.0\.median: "):
        load_results(path)


def test_an_integer_that_no_float_holds_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "environment.json"
    text = sample_environment().stored_text()
    path.write_text(re.sub(r'"tsc_hz":\d+', f'"tsc_hz":1{"0" * 400}', text), "utf-8")
    with pytest.raises(InputError, match=r"environment\.json .* of 401 digits"):
        load_environments(tmp_path)


def test_brackets_without_end_are_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text("[" * 1_000_000, "utf-8")
    with pytest.raises(InputError, match="nested too deeply"):
        load_results(path)


def test_a_line_that_is_longer_than_any_record_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "LONGEST_LINE_BYTES", 1000)
    path = tmp_path / "journal.jsonl"
    header = {"schema_version": 3, "campaign": "x", "created_at": "2026-01-01"}
    path.write_text(f"{json.dumps(header)}\n{'[' * 1001}\n", "utf-8")
    with pytest.raises(InputError, match=r"journal\.jsonl:2 is longer"):
        load_journal(path)


@pytest.mark.parametrize(
    "text",
    ["a: 2001-99-99", "? [[x]]\n: 1", "{" * 90_000, "a: " + "9" * 5000, "a: \x00"],
)
def test_yaml_that_only_python_trips_over_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(InputError, match=str(path)):
        load_campaign(path)


def test_a_description_that_repeats_itself_does_not_fill_the_memory(
    tmp_path: Path,
) -> None:
    """Nine lines that are a thousand million words once they are written out."""
    lines = ["a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol, lol]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]
    lines.append("testbed: {name: *a9, description: *a9}")
    (tmp_path / "campaign.yaml").write_text("\n".join(lines), "utf-8")
    (tmp_path / "results.json").write_text(results_file().stored_text(), "utf-8")
    (testbed,) = read_source(tmp_path).testbeds
    assert testbed.words == ""
