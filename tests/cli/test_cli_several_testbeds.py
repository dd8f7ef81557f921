"""Campaigns at several testbeds on the command line, with labs that are not there."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dutperf import lab
from dutperf.api import places
from dutperf.cli import app
from dutperf.config import Testbed
from dutperf.config.campaign import LabKeys
from dutperf.config.testbed import Hooks
from dutperf.errors import SetupError
from dutperf.lab import LabStatus, lifecycle
from dutperf.results import ResultsFile, load_environments, load_results
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.simulation.fake_engine import FakeEngine, step

MATRIX = Path(__file__).parents[2] / "examples" / "matrix.yaml"
DEVICES = {"linux-router": 200_000, "tayga-siit": 50_000}


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def device_of(given: str | LabKeys) -> Testbed:
    """The lab's testbed, as its device is simulated."""
    return lab.plan(given).model_copy(update={"hooks": Hooks()})


@pytest.fixture
def labs(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Puts simulated devices into the labs; gives the log of what was done to them."""

    def use(*refusing: str) -> list[str]:
        log: list[str] = []

        @contextlib.contextmanager
        def session(given: LabKeys) -> Iterator[Testbed]:
            log.append(f"up {given.name}")
            if given.name in refusing:
                raise SetupError("lab is in use by process 1", "wait for it")
            yield device_of(given)
            log.append(f"down {given.name}")

        def prepare(testbed: Testbed, _notify: Notify) -> EngineStarter:
            engine = FakeEngine(step(DEVICES[testbed.name]))
            return lambda _log_path: contextlib.nullcontext(engine)

        monkeypatch.setattr(lifecycle, "session", session)
        monkeypatch.setattr(lifecycle, "running", list)
        monkeypatch.setattr(lab, "dut_alive", lambda _name: True)
        monkeypatch.setattr(places, "prepare_engine", prepare)
        return log

    return use


def run(*more: str) -> int:
    return app.run(["run", str(MATRIX), *more])


def test_the_example_measures_one_lab_after_the_other(
    labs: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    log = labs()
    assert run("--json", "--output", "run") == 0
    results = ResultsFile.model_validate(json.loads(capsys.readouterr().out))
    assert log == [f"{what} {name}" for name in DEVICES for what in ("up", "down")]
    assert results.complete
    assert {cell.place for cell in results.cells} == set(DEVICES)
    for cell in results.cells:
        assert cell.id.endswith(f"@{cell.place}")
        if cell.procedure == "throughput":
            assert cell.median == pytest.approx(DEVICES[cell.place or ""], rel=0.06)
    assert set(load_environments(Path("run"))) == set(DEVICES)
    page = Path("run/report.html").read_text()
    for name in DEVICES:
        assert f", at {name}" in page
        assert f'id="environment-{name}"' in page


def test_a_lab_that_refuses_is_named_and_made_up_for(
    labs: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    labs("linux-router")
    assert run("--output", "run") == 3
    captured = capsys.readouterr()
    assert "error: linux-router: lab is in use by process 1" in captured.err
    assert "hint: then go on where it ended: dutperf run --resume run" in captured.err
    assert "not measured at linux-router: throughput-ip4-128-both@linux" in captured.out
    assert {cell.place for cell in load_results(Path("run")).cells} == {"tayga-siit"}
    page = Path("run/report.html").read_text()
    assert "lab is in use by process 1" in page
    log = labs()
    assert run("--resume", "run") == 0
    assert log == ["up linux-router", "down linux-router"]
    assert load_results(Path("run")).complete


def kept(name: str, *, alive: bool) -> LabStatus:
    since = datetime(2026, 1, 2, tzinfo=UTC)
    return LabStatus(name, since, None, alive, ("tester", "dut"), ())


def test_a_kept_lab_is_used_and_stays(
    labs: Callable[..., list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = labs()
    monkeypatch.setattr(
        lifecycle, "running", lambda: [kept("linux-router", alive=True)]
    )
    monkeypatch.setattr(lifecycle, "attached", device_of)
    assert run("--output", "run") == 0
    assert log == ["up tayga-siit", "down tayga-siit"]
    assert load_results(Path("run")).complete


def test_each_number_of_filters_is_a_testbed_of_its_own(
    labs: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    speeds = {"linux-firewall-1": 200_000, "linux-firewall-25": 100_000}
    monkeypatch.setitem(DEVICES, "linux-firewall-1", 200_000)
    monkeypatch.setitem(DEVICES, "linux-firewall-25", 100_000)
    log = labs()
    campaign = tmp_path / "filters.yaml"
    campaign.write_text(
        "name: filters\npreset: quick\n"
        "lab: [{name: linux-firewall, rules: 1}, {name: linux-firewall, rules: 25}]\n"
        "procedures: [{procedure: throughput, ip: [4], max_rate_fps: 1000000}]\n"
    )
    assert app.run(["run", str(campaign), "--output", "run"]) == 0
    assert log == ["up linux-firewall", "down linux-firewall"] * 2
    cells = load_results(Path("run")).cells
    assert {cell.place: cell.median for cell in cells} == {
        name: pytest.approx(speed, rel=0.06) for name, speed in speeds.items()
    }
    page = Path("run/report.html").read_text()
    for name, filters in (("linux-firewall-1", 1), ("linux-firewall-25", 25)):
        assert f'id="environment-{name}"' in page
        assert f"{filters} filter" in page


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("throughput", "--lab", "linux-router"), "linux-router has no filters"),
        (("throughput", "bed.yaml"), "--rules is of the lab linux-firewall"),
        (("lab", "up", "nft-nat44"), "nft-nat44 has no filters"),
        (("bench",), "--rules is of a lab"),
        (("bench", "--lab", "linux-router"), "linux-router has no filters"),
        (("frames", "--lab", "linux-router", "--pcap", "x.pcap"), "has no filters"),
    ],
)
def test_rules_of_what_has_none_are_refused_before_anything_starts(
    labs: Callable[..., list[str]],
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    told: str,
) -> None:
    log = labs()
    assert app.run([*arguments, "--rules", "25"]) == 2
    assert told in capsys.readouterr().err
    assert not log


def test_a_kept_lab_whose_device_has_gone_is_told_and_not_replaced(
    labs: Callable[..., list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What the user told the device is lost with it: another one is not the same."""
    log = labs()
    monkeypatch.setattr(
        lifecycle, "running", lambda: [kept("linux-router", alive=False)]
    )
    assert run("--output", "run") == 3
    errors = capsys.readouterr().err
    assert "the device of lab linux-router, which 'lab up' keeps, has gone" in errors
    assert "dutperf lab up linux-router" in errors
    assert log == ["up tayga-siit", "down tayga-siit"]
    assert {cell.place for cell in load_results(Path("run")).cells} == {"tayga-siit"}


def test_a_lab_without_any_result_leaves_nothing_behind(
    labs: Callable[..., list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    labs(*DEVICES)
    assert run("--output", "run") == 3
    assert not Path("run").exists()
    assert not capsys.readouterr().out


def test_the_plan_is_grouped_by_testbed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    heads = [n for n, line in enumerate(lines) if line.startswith("lab ")]
    assert [lines[n].partition(":")[0] for n in heads] == [f"lab {n}" for n in DEVICES]
    rows = [n for n, line in enumerate(lines) if "@tayga-siit" in line]
    assert rows
    assert min(rows) > heads[1]
    assert "10 test cases" in lines[heads[0]]


def test_the_plan_as_json_names_testbeds(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--dry-run", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert {cell["place"] for cell in data["cells"]} == set(DEVICES)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (
            "[linux-router, tayga-siit]",
            "[linux-router, taiga-siit]",
            "wrong.yaml:13: lab[1]: there is no lab named 'taiga-siit'",
        ),
        (
            "[linux-router, tayga-siit]",
            "[linux-router, tayga-siit, linux-router]",
            "wrong.yaml:13: lab[2]: linux-router is listed twice",
        ),
        (
            "[linux-router, tayga-siit]",
            "linux-rooter",
            "wrong.yaml:13: lab: there is no lab named 'linux-rooter'",
        ),
        (
            "[tayga-siit]",
            "[tayga]",
            "wrong.yaml:41: procedures[2].testbeds[0]: tayga is no testbed of this",
        ),
        (
            "frame_size: [128, 1024]",
            "frame_size: [128, 9000]",
            "wrong.yaml:18: procedures[0].frame_size: at linux-router: 9000 does not",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    capsys: pytest.CaptureFixture[str], old: str, new: str, told: str
) -> None:
    text = MATRIX.read_text()
    assert text.count(old) == 1
    Path("wrong.yaml").write_text(text.replace(old, new))
    for more in ("--dry-run",), ("--output", "run"):
        assert app.run(["run", "wrong.yaml", *more]) == 2
        assert f"error: {told}" in capsys.readouterr().err
    assert not Path("run").exists()
