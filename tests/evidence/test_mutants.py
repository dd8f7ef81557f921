"""Every number and word of a small run, changed as somebody would who knows the files.

Each is found by ``verify``, or on the list of those that nothing follows from. Kinds of
places are changed, one of each: ``result.directions.*.streams.*.lost`` is one.
"""

from __future__ import annotations

import io
import json
import random
import re
import shutil
import tarfile
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from planning import Run, campaign, spec
from ruamel.yaml import YAML

from dutperf.api.places import planned_testbeds
from dutperf.config import document
from dutperf.errors import InputError
from dutperf.evidence import pack, verify
from dutperf.evidence.pack import SUMS, opened, sums_of, wrong_sums
from dutperf.report import write_report
from dutperf.results import directory
from dutperf.results.environment import environment_sum
from dutperf.run.campaign_run import results_again
from dutperf.simulation.fake_engine import FakeEngine, buffered

Json = dict[str, Any]
Place = tuple[str | int, ...]
_DIRECTION = r"result\.directions\.\*\."
OF_TRIALS = {
    r"result\.ports\.\*\.before\.(rx|tx)_frames": (
        "what a port counted is more than what the trial did"
    ),
    r"result\.ports\.\*\.(announced|damaged_on_wire|foreign|fragments|incomplete)": (
        "counted once, and no verdict here follows from it"
    ),
    r"result\.ports\.\*\.(interface_drops|neighbour_conflicts|neighbour_requests)": (
        "the same"
    ),
    r"result\.ports\.\*\.(other_vlan|reassembled|send_drops|stale)": "the same",
    r"result\.ports\.\*\.(handed_over|not_taken_over)": "the same",
    r"result\.input_queue_drops": "the same",
    _DIRECTION + r"streams\.\*\.(reordered|inspected\.frames)": "the same",
    _DIRECTION + r"(delay_bound|delay_floor|port_full|sending)_ns": (
        "the tester's own times: no figure in a trial without delays"
    ),
    _DIRECTION + r"(offered_rate_fps|ring_full|tx_full)": (
        "what the tester reached is not held to the verdict"
    ),
    r"result\.(overhead_ns|total_ns|generator|shares)": (
        "what the engine says of itself"
    ),
    r"result\.verdict\.reasons\.\*\.(hint|message)": "words; the code is checked",
}
"""Places in a trial, as a pattern, and why a change of them is not found."""
OF_RESULTS = {
    "complete": "a run may have been interrupted behind its last trial",
    "dutperf_version": "who wrote the results; the journal has who measured",
}
OF_ENVIRONMENT = {
    "clock_offset_ns|cores_used.*|governor.*|hugepages.*|main_core|tsc_hz": (
        "the tester as it was: no figure follows from it"
    ),
    "cpu_model|cpus_total|hypervisor|kernel|memory_mb|numa_nodes|os": "the same",
    "(dpdk|dutperf|engine|protocol|python)_version": "the same",
    "dut": "words of whoever owns the device",
    r"ports\.\*\.(device|dpdk_name|driver|flow_control|mac|mtu)": (
        "an equal testbed may have other ones"
    ),
    r"ports\.\*\.link_speed_mbps": "no figure here: the highest rate was given",
}
"""Found by the sum in the journal, but for those who repair that, too."""
OF_CAMPAIGN = {
    r"testbed\.(cores\.\*|description|memory_mb)": "an equal one has others",
    r"testbed\.(left|right)\.port\.(interface|mtu)": "the same",
    r"testbed\.(routing|snmp)\..*": "no cell asks for routes or for management",
    r"testbed\.translates": "no cell has two versions of IP",
}
OF_HEADER = {
    "dutperf_version": "it alone changes nothing; with a difference: not proven"
}
OF_MANIFEST = {"packed_by": "another version may say other things"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results directory; nobody writes to it."""
    path = tmp_path_factory.mktemp("mutants") / "run"
    Run(path, FakeEngine(buffered(999, 200_000)))(
        campaign(spec(resolution="50%", repeats=2, trial_duration_s=1))
    )
    return path


@pytest.fixture
def run(whole: Path, tmp_path: Path) -> Path:
    """A copy that a test may change."""
    return Path(shutil.copytree(whole, tmp_path / "run"))


@pytest.fixture(autouse=True)
def _yaml_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Most of the time of ``verify`` of a small run is that of reading its campaign."""
    parse, through = document._parse, directory._through_yaml

    @lru_cache
    def parsed(text: str) -> object:
        return parse("campaign.yaml", text)

    @lru_cache
    def passed_through(text: str) -> object:
        return through(json.loads(text))

    monkeypatch.setattr(document, "_parse", lambda _name, text: parsed(text))
    monkeypatch.setattr(
        directory, "_through_yaml", lambda data: passed_through(json.dumps(data))
    )


def is_believed(path: Path) -> bool:
    try:
        found = verify(path, planned_testbeds, results_again)
    except InputError:
        return False
    return found.proven


def hold(missed: set[str], most: int, unproven: dict[str, str]) -> None:
    """What was missed, ``most`` kinds, is listed, and nothing is that was found."""
    unlisted = {k for k in missed if not any(re.fullmatch(p, k) for p in unproven)}
    assert unlisted == set()
    unused = {p for p in unproven if not any(re.fullmatch(p, k) for k in missed)}
    assert unused == set()
    assert len(missed) <= most


def mutants(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - JSON
    """Of each kind of place one, and ``value`` with another value there."""
    draw = random.Random(7)  # noqa: S311 - test data
    found: dict[str, list[Place]] = {}
    for place in _leaves(value):
        found.setdefault(_kind(place), []).append(place)
    for kind, places in found.items():
        copy = json.loads(json.dumps(value))
        _change(copy, draw.choice(places))
        yield kind, copy


def test_each_value_of_a_trial_is_held_to_others(run: Path) -> None:
    """Changed alike in journal and results."""
    header, *lines = (run / "journal.jsonl").read_text().splitlines()
    results = json.loads((run / "results.json").read_text())
    missed, kinds = set(), 0
    for kind, trials in mutants([json.loads(line) for line in lines]):
        kinds += 1
        text = "\n".join([header, *map(json.dumps, trials)]) + "\n"
        (run / "journal.jsonl").write_text(text)
        (run / "results.json").write_text(json.dumps(results | {"trials": trials}))
        if is_believed(run):
            missed.add(kind.removeprefix("*."))
    assert kinds > 100
    hold(missed, 33, OF_TRIALS)


def test_each_value_of_the_results_is_held_to_the_journal(run: Path) -> None:
    results = json.loads((run / "results.json").read_text())
    trials = results.pop("trials")
    missed, kinds = set(), 0
    for kind, changed in mutants(results):
        kinds += 1
        (run / "results.json").write_text(json.dumps(changed | {"trials": trials}))
        if is_believed(run):
            missed.add(kind)
    assert kinds > 60
    hold(missed, 2, OF_RESULTS)


def test_each_value_of_the_environment_is_in_its_sum(run: Path) -> None:
    path = run / "environment.json"
    for kind, changed in mutants(json.loads(path.read_text())):
        path.write_text(json.dumps(changed))
        assert not is_believed(run), kind


def test_each_value_of_the_environment_is_held_to_others(run: Path) -> None:
    """Its sum in the journal was repaired, and the copy of that in the results."""
    path = run / "environment.json"
    stored = json.loads(path.read_text())
    names = [run / "journal.jsonl", run / "results.json"]
    before, texts = environment_sum(stored, 1), [file.read_text() for file in names]
    missed = set()
    for kind, changed in mutants(stored):
        path.write_text(json.dumps(changed))
        for file, text in zip(names, texts, strict=True):
            file.write_text(text.replace(before, environment_sum(changed, 1)))
        if is_believed(run):
            missed.add(kind)
    hold(missed, 28, OF_ENVIRONMENT)


def test_each_value_of_the_campaign_is_held_to_others(run: Path) -> None:
    path = run / "campaign.yaml"
    yaml = YAML(typ="safe", pure=True)
    missed = set()
    for kind, changed in mutants(yaml.load(path.read_text())):
        stream = io.StringIO()
        yaml.dump(changed, stream)
        path.write_text(stream.getvalue())
        if is_believed(run):
            missed.add(kind)
    hold(missed, 17, OF_CAMPAIGN)


def test_each_value_of_the_journals_first_line_is_held_to_others(run: Path) -> None:
    header, rest = (run / "journal.jsonl").read_text().split("\n", 1)
    missed = set()
    for kind, changed in mutants(json.loads(header)):
        (run / "journal.jsonl").write_text(f"{json.dumps(changed)}\n{rest}")
        if is_believed(run):
            missed.add(kind)
    hold(missed, 1, OF_HEADER)


def test_each_value_of_the_manifest_is_held_to_the_run(run: Path) -> None:
    path = pack(run).path
    files = opened(path)
    stored = json.loads(files.pop("manifest.json"))
    del files[SUMS]
    missed = set()
    for kind, changed in mutants(stored):
        manifest = json.dumps(changed).encode()
        whole = {**files, "manifest.json": manifest}
        path.write_bytes(archived({**whole, SUMS: sums_of(whole).encode()}))
        if is_believed(path):
            missed.add(kind)
    hold(missed, 1, OF_MANIFEST)


def test_any_byte_of_any_file_of_an_archive_is_in_its_sum(run: Path) -> None:
    files = opened(pack(run).path)
    draw = random.Random(3)  # noqa: S311 - test data
    for name, content in files.items():
        for _ in range(20):
            at = draw.randrange(len(content))
            changed = bytearray(content)
            changed[at] ^= 1 << draw.randrange(8)
            assert wrong_sums({**files, name: bytes(changed)}), (name, at)


def test_any_byte_of_the_report_is_held_to_the_results(
    run: Path, tmp_path: Path
) -> None:
    """It is made anew; here once."""
    made = tmp_path / "made.html"
    shutil.move(write_report(run), made)
    content = made.read_bytes()
    draw = random.Random(3)  # noqa: S311 - test data
    for _ in range(10):
        changed = bytearray(content)
        changed[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        (run / "report.html").write_bytes(changed)
        found = verify(run, planned_testbeds, results_again, lambda _directory: made)
        assert [check.name for check in found.checks if check.wrong] == ["report"]


def archived(files: dict[str, bytes]) -> bytes:
    """An archive of just these, made by somebody else."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=1) as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"run/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def _leaves(value: Any) -> Iterator[Place]:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ((key, *rest) for rest in _leaves(inner))
    elif isinstance(value, list):
        for key, inner in enumerate(value):
            yield from ((key, *rest) for rest in _leaves(inner))
    elif value is not None:
        yield ()


def _kind(place: Place) -> str:
    return ".".join("*" if isinstance(step, int) else step for step in place)


def _change(trial: Json, place: Place) -> None:
    holder: Any = trial
    for step in place[:-1]:
        holder = holder[step]
    old = holder[place[-1]]
    if isinstance(old, bool):
        holder[place[-1]] = not old
    else:
        holder[place[-1]] = f"{old}x" if isinstance(old, str) else old + 1
