"""Which runs are found below a directory, and what the list tells of each."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from report_sample import sample_environment, sample_results, store
from served import open_run, stored_run
from stored_samples import results_file

from dutperf.report import write_report
from dutperf.results import NotMeasured
from dutperf.serve import runs
from dutperf.serve.runs import RunList, ServedRun, find_run, summary_of


def all_runs(root: Path) -> list[ServedRun]:
    return RunList(root).runs()


def names(root: Path) -> list[str]:
    return [run.name for run in all_runs(root)]


def test_runs_are_listed_newest_first_however_deep_they_are(tmp_path: Path) -> None:
    stored_run(tmp_path / "old")
    stored_run(tmp_path / "paper" / "a" / "middle")
    stored_run(tmp_path / "new")
    for name, year in (("old", 2021), ("paper/a/middle", 2022), ("new", 2023)):
        journal = tmp_path / name / "journal.jsonl"
        header, rest = journal.read_text().split("\n", 1)
        began = f'"created_at":"{year}-03-04T05:06:07+00:00"'
        at = header.index('"created_at"')
        journal.write_text(f"{header[:at]}{began}}}\n{rest}")
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("no run")
    assert names(tmp_path) == ["new", "paper/a/middle", "old"]


def test_a_run_itself_can_be_served(tmp_path: Path) -> None:
    stored_run(tmp_path / "r")
    assert names(tmp_path / "r") == ["."]
    assert find_run(tmp_path / "r", ".")


@pytest.mark.parametrize(
    "name",
    [
        "../outside",
        "r/../../outside",
        "r/../r",
        "./r",
        "r/",
        "/r",
        "%2e%2e/outside",
        "linked",
        "way/outside",
        "",
        "r\x00",
        "r" * 5000,
        "empty",
        "loop",
    ],
)
def test_nothing_beside_the_runs_below_is_found(tmp_path: Path, name: str) -> None:
    root = tmp_path / "root"
    stored_run(root / "r")
    stored_run(tmp_path / "outside")
    (root / "empty").mkdir()
    (root / "linked").symlink_to(tmp_path / "outside")
    (root / "way").symlink_to(tmp_path)
    (root / "loop").symlink_to("loop")
    assert find_run(root, name) is None
    assert find_run(root, str(tmp_path / "outside")) is None
    assert find_run(root, "r")
    assert names(root) == ["r"]


def test_a_complete_run_tells_its_figures(tmp_path: Path) -> None:
    results = sample_results()
    store(tmp_path / "r", results, sample_environment()).close()
    (run,) = all_runs(tmp_path)
    told = summary_of(run)
    assert (told.state, told.why, told.title) == ("complete", "", results.name)
    assert told.created_at == results.created_at
    first = results.cells[0]
    assert f"{first.median:,.0f} fps" == told.found[0].value
    assert {found.what.partition(",")[0] for found in told.found} == {
        "Throughput",
        "Frame loss",
    }
    assert told.more == len(results.cells) - len(told.found)


def test_a_run_that_was_stopped_says_so(tmp_path: Path) -> None:
    stored_run(tmp_path / "r", complete=False)
    told = summary_of(all_runs(tmp_path)[0])
    assert told.state == "interrupted"
    assert "stopped" in told.why


def test_a_run_that_was_killed_says_so(tmp_path: Path) -> None:
    open_run(tmp_path / "r", results_file(2).trials).close()
    told = summary_of(all_runs(tmp_path)[0])
    assert (told.state, told.title, told.found) == ("interrupted", "going-on", ())


def test_a_run_that_lacks_a_testbed_says_why(tmp_path: Path) -> None:
    lost = NotMeasured(id="x", place="far", message="the lab cannot be brought up")
    stored_run(tmp_path / "r", not_measured=[lost])
    told = summary_of(all_runs(tmp_path)[0])
    assert (told.state, told.why) == ("incomplete", lost.message)


def test_a_run_that_goes_on_is_running_also_after_its_first_results(
    tmp_path: Path,
) -> None:
    with open_run(tmp_path / "r") as directory:
        assert summary_of(all_runs(tmp_path)[0]).state == "running"
        directory.write_results(results_file().model_copy(update={"complete": False}))
        told = summary_of(all_runs(tmp_path)[0])
        assert (told.state, told.why) == ("running", "")
    assert summary_of(all_runs(tmp_path)[0]).state == "interrupted"


def test_a_damaged_run_tells_why_and_costs_no_other(tmp_path: Path) -> None:
    stored_run(tmp_path / "good")
    for name, text in (
        ("cut", '{"schema_version": 3'),
        ("new", '{"schema_version":9}'),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.json").write_text(text)
    found = {run.name: summary_of(run) for run in all_runs(tmp_path)}
    assert found["good"].state == "complete"
    assert found["cut"].state == found["new"].state == "damaged"
    assert "not valid JSON" in found["cut"].why
    assert "schema version 9" in found["new"].why


def test_files_that_lead_elsewhere_are_not_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    for name in ("results.json", "report.html", "campaign.yaml", "environment.json"):
        run = tmp_path / "root" / f"link-{name}"
        stored_run(run)
        (run / name).unlink(missing_ok=True)
        (run / name).symlink_to(secret)
    pipe = tmp_path / "root" / "pipe"
    pipe.mkdir()
    os.mkfifo(pipe / "results.json")
    told = [summary_of(run) for run in all_runs(tmp_path / "root")]
    assert [each.state for each in told] == ["damaged"] * 5
    assert all("not a file of its own" in each.why for each in told)


def test_a_run_that_vanishes_while_it_is_listed_is_one_damaged_row(
    tmp_path: Path,
) -> None:
    stored_run(tmp_path / "r")
    (run,) = all_runs(tmp_path)
    shutil.rmtree(run.path)
    assert summary_of(run).state == "damaged"
    assert find_run(tmp_path, "r") is None
    assert all_runs(tmp_path) == []


def test_a_defect_in_one_row_does_not_cost_the_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_given: object, **_keys: object) -> None:
        raise ZeroDivisionError("oh")

    stored_run(tmp_path / "r", name="with a defect")
    monkeypatch.setattr("dutperf.serve.runs.read_source", fails)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    told = summary_of(all_runs(tmp_path)[0])
    assert told.state == "damaged"
    assert "defect in dutperf: ZeroDivisionError: oh" in told.why


def test_a_summary_is_made_again_only_when_something_was_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_run(tmp_path / "r")
    (run,) = all_runs(tmp_path)
    first = summary_of(run)
    monkeypatch.setattr("dutperf.serve.runs.read_source", None)
    assert summary_of(run) == first
    monkeypatch.undo()
    (run.path / "results.json").write_text("{}")
    assert summary_of(run).state == "damaged"


def test_the_stored_report_is_shown_while_it_is_as_new_as_the_results(
    tmp_path: Path,
) -> None:
    stored_run(tmp_path / "r")
    write_report(tmp_path / "r").write_text("stored")
    (run,) = all_runs(tmp_path)
    assert runs.report_of(run) == b"stored"
    later = (run.path / "report.html").stat().st_mtime_ns + 1
    os.utime(run.path / "results.json", ns=(later, later))
    before = sorted(path.name for path in run.path.iterdir())
    made = runs.report_of(run)
    assert isinstance(made, str)
    assert "dutperf measurement report" in made
    assert sorted(path.name for path in run.path.iterdir()) == before
    assert (run.path / "report.html").read_text() == "stored"


def test_the_list_reads_a_run_once_and_sees_what_comes_changes_and_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    stored_run(root / "r0", cells=[], trials=[])
    for number in range(1, 300):
        shutil.copytree(root / "r0", root / f"{number % 3}" / f"r{number}")
    read: list[str] = []

    def counted(directory: Path) -> float | None:
        read.append(directory.name)
        return began(directory)

    began = runs._began
    monkeypatch.setattr(runs, "_began", counted)
    monkeypatch.setattr(runs, "_LOOK_S", 0)
    listed = RunList(root)
    assert len(listed.runs()) == len(read) == 300

    def seen() -> set[str]:
        read.clear()
        return {run.name for run in listed.runs()}

    first = seen()
    assert read == []
    shutil.rmtree(root / "1" / "r1")
    stored_run(root / "2" / "new")
    assert seen() == first - {"1/r1"} | {"2/new"}
    assert read == ["new"]
    # Another of the same name, begun before all others.
    shutil.rmtree(root / "2" / "new")
    stored_run(root / "2" / "new")
    journal = root / "2" / "new" / "journal.jsonl"
    journal.write_text(
        journal.read_text().replace('"created_at":"2', '"created_at":"1')
    )
    assert "2/new" in seen()
    assert read == ["new"]
    assert listed.runs()[-1].name == "2/new"
    shutil.rmtree(root)
    assert seen() == set()


def test_a_run_whose_journal_is_not_written_yet_finds_its_place_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_LOOK_S", 0)
    stored_run(tmp_path / "old")
    journal = tmp_path / "old" / "journal.jsonl"
    whole = journal.read_text()
    journal.write_text("")
    stored_run(tmp_path / "r")
    listed = RunList(tmp_path)
    listed.runs()
    journal.write_text(whole.replace('"created_at":"2', '"created_at":"1'))
    assert [run.name for run in listed.runs()] == ["r", "old"]


def test_the_list_is_looked_through_once_for_all_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_LOOK_S", 1e9)
    stored_run(tmp_path / "r")
    listed = RunList(tmp_path)
    first = listed.runs()
    monkeypatch.setattr(runs, "_stamp_of", None)
    assert listed.runs() == first
