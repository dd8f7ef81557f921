"""Evidence that is whole is good; one changed digit is found, sums repaired or not."""

from __future__ import annotations

import itertools
import json
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from planning import TESTBED, Run, campaign, spec

from dutperf.cli import app, verify_command
from dutperf.config import Campaign, PlannedTestbed
from dutperf.errors import InputError, SetupError
from dutperf.evidence import Verification, pack, verify
from dutperf.evidence.pack import opened, packed
from dutperf.run.campaign_run import results_again
from dutperf.simulation.fake_engine import FakeEngine, buffered, jitter
from oracle import Compared, Source, compare_cell, compared_run, derived_cell

Json = dict[str, Any]
Edit = Callable[[str], str]
SHORT = {"trial_duration_s": 1, "first_tag_s": 0.1}
WHAT = campaign(
    spec(resolution="5%", repeats=3, trial_duration_s=1),
    spec(procedure="frame-loss", load_percent=[100, 50, 10], trial_duration_s=1),
    spec(procedure="back-to-back", repeats=2),
    spec(
        procedure="latency", rate_fps="50% of throughput", tags=600, repeats=3, **SHORT
    ),
    spec(procedure="pdv", rate_fps=20_000, repeats=3, trial_duration_s=1),
)


def plan(_campaign: Campaign) -> list[PlannedTestbed]:
    return [PlannedTestbed(testbed=TESTBED)]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results directory; nobody writes to it."""
    path = tmp_path_factory.mktemp("evidence") / "run"
    engine = FakeEngine(buffered(999, 200_000), delays=jitter(20_000, 90_000))
    Run(path, engine)(WHAT)
    return path


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


def verified(path: Path) -> Verification:
    return verify(path, plan, results_again)


def wrong(path: Path) -> list[str]:
    return [told for check in verified(path).checks for told in check.wrong]


def edited(path: Path, edit: Edit) -> None:
    text = path.read_text()
    assert edit(text) != text
    path.write_text(edit(text))


def test_a_run_and_its_archive_are_good(run: Path) -> None:
    assert wrong(run) == []
    made = pack(run)
    assert made.path == run.parent / "run.evidence.tar.gz"
    assert verified(made.path).good
    figures = compared_run(run)
    assert figures.differ == []
    assert figures.derived > 200


def test_what_more_flows_cost_is_derived_again(tmp_path: Path) -> None:
    """Of a device that is a little slower each time: no two figures are the same."""
    services = (int(200_000 * 0.999**n) for n in itertools.count())
    told = {"flows": [1, 4], "trial_duration_s": 1}
    what = campaign(
        spec(resolution="4%", repeats=2, **told),
        spec(procedure="frame-loss", load_percent=[100, 50], **told),
        spec(procedure="back-to-back", repeats=2, flows=[1, 4]),
        spec(
            procedure="latency", rate_fps="50% of throughput", tags=60, **SHORT | told
        ),
        spec(procedure="pdv", rate_fps=20_000, **told),
    )

    def slower_each_time(rate_fps: float, frames: int) -> int:
        return buffered(999, next(services))(rate_fps, frames)

    engine = FakeEngine(slower_each_time, delays=jitter(20_000, 90_000))
    Run(tmp_path / "run", engine)(what)
    assert wrong(tmp_path / "run") == []
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    assert len(results["scalability"]) == 13
    keys = ("rate_fps", "value", "degradation_percent", "upper_percent")
    for row in results["scalability"]:
        last = row["points"][-1]
        last |= {key: (last[key] or 0) + 1 for key in keys}
    (tmp_path / "run" / "results.json").write_text(json.dumps(results))
    places = [line.partition(":")[0] for line in wrong(tmp_path / "run")]
    changed = [f"scalability[{n}].points[1].{key}" for n in range(13) for key in keys]
    assert sorted(places) == sorted(changed)


def test_intervals_of_what_more_flows_cost_are_derived_again(tmp_path: Path) -> None:
    services = (int(200_000 * 0.999**n) for n in itertools.count())
    told = {"flows": [1, 4], "repeats": 9, "trial_duration_s": 1}
    what = campaign(
        spec(resolution="10%", **told),
        spec(procedure="latency", rate_fps="9000 per flow", tags=60, **SHORT | told),
    )

    def slower_each_time(rate_fps: float, frames: int) -> int:
        return buffered(999, next(services))(rate_fps, frames)

    engine = FakeEngine(slower_each_time, delays=jitter(20_000, 90_000))
    Run(tmp_path / "run", engine)(what)
    assert wrong(tmp_path / "run") == []
    results = json.loads((tmp_path / "run" / "results.json").read_text())
    known = [row["points"][1]["lower_percent"] for row in results["scalability"]]
    assert sum(low is not None for low in known) > 3


def test_the_same_run_is_packed_into_the_same_bytes(run: Path, tmp_path: Path) -> None:
    one, other = (pack(run, tmp_path / name).path for name in ("a.gz", "b.gz"))
    assert one.read_bytes() == other.read_bytes()


def test_evidence_is_never_overwritten(run: Path) -> None:
    pack(run)
    with pytest.raises(InputError, match="never overwritten"):
        pack(run)


def test_one_changed_digit_in_a_packed_journal_is_refused(run: Path) -> None:
    """By the sum; and by what follows from it, if somebody repaired the sums."""
    path = pack(run).path
    files = opened(path)
    lost = re.compile(rb'"lost":(\d*[1-9]\d*),')
    changed = lost.sub(
        lambda m: b'"lost":%d,' % (int(m[1]) + 1), files["journal.jsonl"], 1
    )
    tampered = {**files, "journal.jsonl": changed}
    path.write_bytes(_packed_with_old_sums(tampered))
    assert "journal.jsonl was changed: its SHA-256 sum is another one" in wrong(path)
    for name in ("SHA256SUMS", "manifest.json"):
        del tampered[name]
    path.write_bytes(packed("run", tampered, {"schema_version": 1}))
    told = wrong(path)
    assert any("sent less" in line for line in told)
    assert any("is another one" in line for line in told)


def _packed_with_old_sums(files: dict[str, bytes]) -> bytes:
    import gzip
    import io
    import tarfile

    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"run/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(stream.getvalue())


def test_a_digit_changed_in_journal_and_results_alike_is_found(run: Path) -> None:
    """Then the copies agree, and only what follows from the counts tells."""

    def more(text: str) -> str:
        return text.replace('"kind":"fail"', '"kind":"pass"', 1)

    for name in ("journal.jsonl", "results.json"):
        edited(run / name, more)
    assert any("it passed, and" in line for line in wrong(run))


def test_every_figure_of_a_cell_is_held_to_the_journal(whole: Path) -> None:
    """Whatever number of a result is changed: it is found, or was said to be no result.

    A digit of each number of all cells, chosen by a fixed seed.
    """
    stored = json.loads((whole / "results.json").read_text())["cells"]
    trials = [
        json.loads(t) for t in (whole / "journal.jsonl").read_text().split("\n")[1:-1]
    ]
    ports = json.loads((whole / "environment.json").read_text())["ports"]
    draw = random.Random(5)  # noqa: S311 - test data
    done: dict[str, Json] = {}
    changed = 0
    for cell in stored:
        own = [trial for trial in trials if trial["cell"] == cell["id"]]
        derived = done[cell["id"]] = derived_cell(Source(cell, own, ports, done))
        for place in _numbers(cell):
            if place[0] in ("cell", "parameters", "findings"):
                continue
            changed += 1
            found = Compared()
            compare_cell(_with_another_digit(cell, place, draw), derived, found)
            assert found.differ, place
    assert changed > 200


def _with_another_digit(
    cell: Json, place: tuple[Any, ...], draw: random.Random
) -> Json:
    copy: Json = json.loads(json.dumps(cell))
    holder: Any = copy
    *way, last = place
    for step in way:
        holder = holder[step]
    holder[last] = _another_digit(holder[last], draw)
    return copy


def _numbers(value: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        return [(k, *rest) for k, v in value.items() for rest in _numbers(v)]
    if isinstance(value, list):
        return [(n, *rest) for n, v in enumerate(value) for rest in _numbers(v)]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return [()] if number else []


def _another_digit(value: float, draw: random.Random) -> float:
    """One of its first ten digits is another one."""
    text = repr(value)
    digits = [n for n, letter in enumerate(text) if letter.isdigit()][:10]
    at = draw.choice(digits)
    digit = draw.choice([d for d in "123456789" if d != text[at]])
    found: float = json.loads(text[:at] + digit + text[at + 1 :])
    return found


def _write(path: Path, data: Json) -> None:
    path.write_text(json.dumps(data, separators=(",", ":")))


@pytest.mark.parametrize(
    ("edit", "told"),
    [
        (lambda lines: [*lines[:3], lines[2], *lines[3:]], "stands where"),
        (lambda lines: [*lines[:4], *lines[5:]], "stands where"),
        (lambda lines: lines[:-1], "the journal"),
    ],
)
def test_a_trial_twice_or_missing_is_found(
    run: Path, edit: Callable[[list[str]], list[str]], told: str
) -> None:
    path = run / "journal.jsonl"
    path.write_text("".join(edit(path.read_text().splitlines(keepends=True))))
    assert any(told in line for line in wrong(run))


def test_cells_that_are_not_the_campaigns_are_found(run: Path) -> None:
    results = json.loads((run / "results.json").read_text())
    gone = results["cells"].pop()
    _write(run / "results.json", results)
    assert f"{gone['id']} of the campaign has no result" in wrong(run)


def test_settings_that_are_not_the_campaigns_are_found(run: Path) -> None:
    edited(run / "campaign.yaml", lambda text: text.replace("repeats: 3", "repeats: 4"))
    assert any("repeats is 3, in the campaign 4" in line for line in wrong(run))


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing"):
        verified(tmp_path)


@pytest.mark.parametrize("name", ["journal.jsonl", "results.json"])
def test_a_file_that_was_emptied_is_refused_in_a_sentence(run: Path, name: str) -> None:
    (run / name).write_text("")
    with pytest.raises(InputError, match=f"{run}/{name}"):
        verified(run)


def test_the_commands(
    run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_engine(*_: object) -> dict[str, bytes]:
        raise SetupError("the engine needs root")

    monkeypatch.setattr(verify_command, "recorded_frames", no_engine)
    assert app.run(["evidence", str(run)]) == 0
    archive = f"{run}.evidence.tar.gz"
    told_of_packing = capsys.readouterr()
    assert f"dutperf verify {archive}" in told_of_packing.out.replace("\n", "")
    assert "without the first frames" in told_of_packing.err
    assert app.run(["verify", archive]) == 0
    assert re.search("good +replay", capsys.readouterr().out)
    assert app.run(["verify", archive, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["schema_version"], data["good"]) == (2, True)
    edited(
        run / "results.json", lambda text: text.replace('"median":', '"median":1', 1)
    )
    assert app.run(["verify", str(run)]) == 1
    assert "refused: replay\n" in capsys.readouterr().out
