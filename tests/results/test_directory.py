"""A run's directory: what is stored comes back, and nothing is overwritten."""

from __future__ import annotations

import json
import os
import shutil
import signal
from pathlib import Path

import pytest
from stored_samples import STORED, results_file, trial_record

from dutperf.errors import DutperfError, InputError
from dutperf.results import (
    ResultsDirectory,
    load_campaign,
    load_journal,
    load_results,
)
from dutperf.results.directory import begin_journal
from dutperf.results.journal import JournalHeader


def test_results_come_back_as_they_were_stored(tmp_path: Path) -> None:
    ResultsDirectory.create(tmp_path, "demo").write_results(results_file())
    assert load_results(tmp_path) == results_file()


def test_results_can_be_loaded_from_the_file_itself(tmp_path: Path) -> None:
    ResultsDirectory.create(tmp_path, "demo").write_results(results_file())
    assert load_results(tmp_path / "results.json") == results_file()


def test_results_may_be_written_again(tmp_path: Path) -> None:
    directory = ResultsDirectory.create(tmp_path, "demo")
    directory.write_results(results_file(trials=1))
    directory.write_results(results_file(trials=2))
    assert len(load_results(tmp_path).trials) == 2


def test_campaign_comes_back_as_plain_data(tmp_path: Path) -> None:
    campaign = {"name": "demo", "procedures": [{"ip": [4, 6], "resolution": "5%"}]}
    ResultsDirectory.create(tmp_path, "demo").write_campaign(campaign)
    assert load_campaign(tmp_path) == campaign


def test_trials_are_on_disk_before_any_result(tmp_path: Path) -> None:
    directory = ResultsDirectory.create(tmp_path, "demo")
    directory.append(trial_record(1))
    directory.append(trial_record(2))
    assert load_journal(tmp_path).records == (trial_record(1), trial_record(2))
    assert directory.records == (trial_record(1), trial_record(2))


def test_an_interrupt_while_a_trial_is_stored_waits_until_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = ResultsDirectory.create(tmp_path, "demo")
    sync = os.fsync

    def interrupted(descriptor: int) -> None:
        signal.raise_signal(signal.SIGINT)
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        directory.append(trial_record(1))
    assert load_journal(tmp_path).records == directory.records == (trial_record(1),)


def test_default_directory_is_named_after_campaign_and_utc_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = ResultsDirectory.create(None, "demo").path
    assert path.parent == Path("results")
    assert path.name.startswith("demo-20")
    assert path.name.endswith("Z")


def test_runs_of_one_second_have_directories_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    header = JournalHeader(campaign="demo", created_at="2026-03-04T05:06:07+00:00")
    taken = [begin_journal(None, "demo-1", header)[0].name for _ in range(3)]
    assert taken == ["demo-1", "demo-1-2", "demo-1-3"]


def test_a_default_place_that_cannot_be_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("results").touch()
    with pytest.raises(DutperfError, match="results"):
        ResultsDirectory.create(None, "demo")


def test_parents_of_the_directory_are_made(tmp_path: Path) -> None:
    assert ResultsDirectory.create(tmp_path / "a/b", "demo").path.is_dir()


def test_directory_of_another_run_is_refused(tmp_path: Path) -> None:
    ResultsDirectory.create(tmp_path, "first")
    with pytest.raises(InputError, match="holds the files of another run") as caught:
        ResultsDirectory.create(tmp_path, "second")
    assert "never overwritten" in caught.value.hint
    assert load_journal(tmp_path).header.campaign == "first"


def test_a_newer_results_file_is_refused_with_its_writer(tmp_path: Path) -> None:
    newer = {"schema_version": 7, "dutperf_version": "9.8", "future": True}
    (tmp_path / "results.json").write_text(json.dumps(newer))
    with pytest.raises(InputError, match=r"version 7, written by dutperf 9\.8"):
        load_results(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", "not a JSON object"),
        ("{}", "no schema_version"),
        ('{"schema_version": 3, "cells": []}', "procedure: Field required"),
        (b"\xff", "cannot read"),
    ],
)
def test_a_damaged_results_file_is_an_input_error(
    tmp_path: Path, content: str | bytes, message: str
) -> None:
    raw = content if isinstance(content, bytes) else content.encode()
    (tmp_path / "results.json").write_bytes(raw)
    with pytest.raises(InputError, match=message):
        load_results(tmp_path)


def test_missing_results_are_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"results\.json does not exist"):
        load_results(tmp_path)


@pytest.mark.parametrize("content", ["- a\n- b\n", "a: [", ""])
def test_a_damaged_campaign_is_an_input_error(tmp_path: Path, content: str) -> None:
    (tmp_path / "campaign.yaml").write_text(content)
    with pytest.raises(InputError, match=r"campaign\.yaml is not"):
        load_campaign(tmp_path)


def test_a_run_of_another_schema_version_is_not_resumed(tmp_path: Path) -> None:
    path = tmp_path / "old"
    shutil.copytree(STORED, path)
    journal = path / "journal.jsonl"
    for version in (2, 4):
        changed = b'"schema_version":%d' % version
        now = journal.read_bytes()
        journal.write_bytes(now.replace(b'"schema_version":3', changed))
        before = journal.read_bytes()
        with pytest.raises(InputError, match=f"has schema version {version}"):
            ResultsDirectory.resume(path, "simulation", {})
        assert journal.read_bytes() == before
        journal.write_bytes(before.replace(changed, b'"schema_version":3'))


def test_a_directory_is_free_again_after_a_refusal(tmp_path: Path) -> None:
    with ResultsDirectory.create(tmp_path, "demo") as directory:
        directory.write_campaign({"name": "demo"})
    for _ in range(2):
        with pytest.raises(InputError, match="name: was demo, is other"):
            ResultsDirectory.resume(tmp_path, "demo", {"name": "other"})


def test_a_new_directory_is_locked_until_it_is_closed(tmp_path: Path) -> None:
    with (
        ResultsDirectory.create(tmp_path, "demo"),
        pytest.raises(InputError, match="in use by another run"),
    ):
        ResultsDirectory.resume(tmp_path, "demo", {})


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("file", "file is a file"),
        ("file/below", "file is a file"),
        ("/proc/x", "/proc holds no files"),
        ("/proc/1/x/y", "/proc holds no files"),
    ],
)
def test_what_can_be_no_results_directory_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    with pytest.raises(InputError, match=told) as caught:
        ResultsDirectory.create(Path(path), "demo")
    assert "resume" not in caught.value.hint
