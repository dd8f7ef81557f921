"""Whatever stands in a stored file, only InputError comes out of its reader.

Whoever reports on results that somebody sent has files that nobody vouches for.
"""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fuzzing import DEEP, as_bytes, damaged_bytes, damaged_data, seeded
from hypothesis import given
from report_sample import sample_environment, sample_results
from stored_samples import STORED, results_file

from dutperf.errors import InputError
from dutperf.report.source import read_source
from dutperf.results import load_campaign, load_environment, load_journal, load_results
from dutperf.results.journal import JournalHeader

Load = Callable[[Path], object]


def _journal() -> bytes:
    lines = [JournalHeader(campaign="demo", created_at="2026-03-04T05:06:07+00:00")]
    texts = [header.stored_text() for header in lines]
    texts += [record.stored_text() for record in results_file(2).trials]
    return "".join(f"{text}\n" for text in texts).encode()


def _first(name: str) -> bytes:
    return (STORED / name).read_bytes()


RESULTS = [results_file().stored_text().encode(), _first("results.json")]
WIDE = sample_results()
RESULTS.append(
    WIDE.model_copy(update={"trials": WIDE.trials[:1]}).stored_text().encode()
)
ENVIRONMENTS = [
    sample_environment().stored_text().encode(),
    _first("environment.json"),
]
JOURNALS = [_journal(), b"".join(_first("journal.jsonl").splitlines(True)[:3])]
CAMPAIGNS = [_first("campaign.yaml")]
SAMPLES: dict[Load, list[bytes]] = {
    load_results: RESULTS,
    load_environment: ENVIRONMENTS,
    load_journal: JOURNALS,
    load_campaign: CAMPAIGNS,
}
HOSTILE = [
    b"",
    b"\n",
    b"\x00",
    b"\xff\xfe{\x00}\x00",
    b"\xef\xbb\xbf{}",
    b"null",
    b"[]",
    b"{}",
    b'{"schema_version": true}',
    b'{"schema_version": 1e999}',
    b'{"schema_version": -1}',
    b'{"schema_version": 3, "schema_version": 1}',
    b'{"schema_version": ' + b"9" * 5000 + b"}",
    b'{"schema_version": 3, "trials": [null, 1, "a", {}]}',
    DEEP.encode(),
    b'{"a": ' * 100_000,
    b"a: &a [*a]",
    b"a: 2001-99-99",
    b"{a: !!python/object:os.system x}",
    b"a: &a [x]\nb: &b [*a, *a, *a, *a]\n" + b"? [*b]\n: 1",
]


def refused(load: Load, content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stored"
        path.write_bytes(content)
        with contextlib.suppress(InputError):
            load(path)


@pytest.mark.parametrize("load", SAMPLES)
def test_the_samples_are_whole(load: Load, tmp_path: Path) -> None:
    for content in SAMPLES[load]:
        (tmp_path / "stored").write_bytes(content)
        load(tmp_path / "stored")


@pytest.mark.parametrize("load", SAMPLES)
@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_such_file_is_named(
    load: Load, content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "stored"
    path.write_bytes(content)
    message = ""
    try:
        load(path)
    except InputError as error:
        message = error.message
    assert not message or str(path) in message  # it may be such a file after all
    assert len(message) < 2000


@pytest.mark.parametrize("load", SAMPLES)
def test_damaged_files_are_at_most_refused(load: Load) -> None:
    @seeded
    @given(damaged_bytes(SAMPLES[load]))
    def check(content: bytes) -> None:
        refused(load, content)

    check()


@pytest.mark.parametrize("load", [load_results, load_environment, load_journal])
def test_other_values_are_at_most_refused(load: Load) -> None:
    lines = load is load_journal
    samples = [
        [json.loads(line) for line in (sample.splitlines() if lines else [sample])]
        for sample in SAMPLES[load]
    ]

    @seeded
    @given(damaged_data(samples))
    def check(data: list[Any]) -> None:
        refused(load, b"".join(as_bytes(line) + b"\n" for line in data))

    check()


def test_what_a_report_is_made_of_is_at_most_refused() -> None:
    @seeded
    @given(damaged_bytes(CAMPAIGNS), damaged_bytes(ENVIRONMENTS))
    def check(campaign: bytes, environment: bytes) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder)
            (path / "results.json").write_bytes(RESULTS[0])
            (path / "campaign.yaml").write_bytes(campaign)
            (path / "environment.json").write_bytes(environment)
            with contextlib.suppress(InputError):
                read_source(path)

    check()
