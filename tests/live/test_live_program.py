"""The whole program on the lab: what it prints, what it stores, and its exit code."""

from __future__ import annotations

import json
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from labtools import Wire, is_test_frame, leftovers, tolerant
from livetools import DRIVERS, LAB, SHORT, dutperf, kept_lab, needs_engine
from ruamel.yaml import YAML

from dutperf.busy import owned
from dutperf.config.testbed import Testbed
from dutperf.protocol.base import Driver, IpVersion
from dutperf.results import load_campaign, load_environment, load_journal, load_results
from dutperf.run.engine_session import port_names

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [*needs_engine, *tolerant]

EXAMPLES = Path(__file__).parents[2] / "examples"
STORED = {
    "campaign.yaml",
    "environment.json",
    "journal.jsonl",
    "results.json",
    "report.html",
    "engine.log",
}
SEARCH = ("--max-rate", "20000", "--resolution", "25%")
NOISE = {"unstable", "sender_behind", "sender_lag", "sender_burst", "receiver_lag"}


@pytest.fixture
def lab_up() -> Iterator[Testbed]:
    with kept_lab() as testbed:
        yield testbed


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "results"


def measured(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """The one JSON object on standard output; noise may have spoilt the run."""
    results: dict[str, Any] = json.loads(done.stdout)
    invalid = [c for c in results["cells"] if c["verdict"] == "invalid"]
    assert done.returncode == (1 if invalid else 0), done.stderr
    assert all(r["code"] in NOISE for c in invalid for r in c["reasons"])
    return results


def test_a_lab_that_another_dutperf_measures_is_refused(
    lab_up: Testbed, output: Path
) -> None:
    """Neither of two would get its frames, and both would blame the device."""
    with owned(port_names(lab_up)):
        done = dutperf("throughput", "--lab", LAB, "--output", str(output), *SHORT)
    assert done.returncode == 3, done.stderr
    assert "is in use by process" in done.stderr
    assert not output.exists()


@pytest.mark.parametrize("ip", [4, 6])
def test_throughput_of_the_lab_is_one_json_object(output: Path, ip: IpVersion) -> None:
    where = ("--lab", LAB, "--ip", str(ip), "--json", "--output", str(output))
    results = measured(dutperf("throughput", *where, *SHORT, *SEARCH))
    assert (results["schema_version"], results["procedure"]) == (3, "throughput")
    assert results["complete"] is True
    assert "trials" not in results
    (cell,) = results["cells"]
    assert cell["unit"] == "fps"
    assert cell["parameters"]["ip"] == ip
    assert 0 <= cell["median"] <= 20_000
    assert {d["rfc"] for d in cell["deviations"]} >= {"RFC 2544 24"}
    assert leftovers() == []


def test_results_directory_is_complete_and_agrees_with_the_output(output: Path) -> None:
    where = ("--lab", LAB, "--ip", "4", "--json", "--output", str(output))
    printed = measured(dutperf("throughput", *where, *SHORT, *SEARCH))
    assert {p.name for p in output.iterdir()} == STORED
    stored = load_results(output)
    assert stored.model_dump(mode="json", exclude={"trials"}) == printed
    journal = load_journal(output)
    assert not journal.truncated
    assert list(journal.records) == stored.trials
    assert [t.number for t in stored.trials] == list(range(1, len(stored.trials) + 1))
    own = [trial for trial in stored.trials if trial.role == "trial"]
    assert sum(r["trials"] for c in printed["cells"] for r in c["repeats"]) == len(own)
    assert load_campaign(output)["procedures"][0]["procedure"] == "throughput"
    assert load_environment(output).engine_version


def test_stored_campaign_can_be_run_again(output: Path, tmp_path: Path) -> None:
    where = ("--lab", LAB, "--ip", "4", "--output", str(output))
    dutperf("frame-loss", *where, *SHORT, "--load", "1", "--max-rate", "20000")
    again = tmp_path / "again"
    with kept_lab():
        campaign = str(output / "campaign.yaml")
        measured(dutperf("run", campaign, "--json", "--output", str(again)))
    first, second = load_results(output), load_results(again)
    assert [c.id for c in first.cells] == [c.id for c in second.cells]
    assert first.trials[0].request == second.trials[0].request


def test_frame_loss_measures_each_load(output: Path) -> None:
    loads = [part for load in (100, 50, 25) for part in ("--load", str(load))]
    where = ("--lab", LAB, "--json", "--output", str(output))
    results = measured(
        dutperf("frame-loss", *where, *SHORT, *loads, "--max-rate", "4000")
    )
    cells = {c["parameters"]["ip"]: c for c in results["cells"]}
    assert set(cells) == {4, 6}
    for cell in cells.values():
        assert [p["load_fps"] for p in cell["points"]] == [4000, 2000, 1000]
        assert all(0 <= (p["loss_percent"] or 0) <= 100 for p in cell["points"])
    for trial in load_results(output).trials:
        if trial.role != "trial":
            continue
        for direction in trial.result.directions:
            (stream,) = direction.streams
            assert stream.intended == trial.load_fps // 10
            assert stream.lost == stream.sent - stream.received


@pytest.mark.parametrize("driver", [*DRIVERS, "auto"])
def test_a_testbed_file_on_a_kept_lab_measures_with_either_driver(
    lab_up: Testbed, output: Path, tmp_path: Path, driver: Driver | str
) -> None:
    testbed = write_testbed(tmp_path, lab_up, driver)
    where = (str(testbed), "--ip", "4", "--json", "--output", str(output))
    measured(dutperf("throughput", *where, *SHORT, *SEARCH))
    expected = {"af_xdp", "af_packet"} if driver == "auto" else {driver}
    assert {p.driver for p in load_environment(output).ports} <= expected
    assert all(
        s.received > 0
        for t in load_results(output).trials
        if t.role != "probe"  # its frames are nobody's
        for d in t.result.directions
        for s in d.streams
    )


def write_testbed(directory: Path, testbed: Testbed, driver: str) -> Path:
    data = testbed.model_dump(mode="json", exclude_none=True)
    for side in ("left", "right"):
        data[side]["port"]["driver"] = driver
    path = directory / "testbed.yaml"
    YAML().dump(data, path)
    return path


def test_lab_commands_bring_a_lab_up_and_down() -> None:
    assert f"lab {LAB} is up" in dutperf("lab", "up", LAB).stdout
    assert json.loads(dutperf("lab", "list", "--json").stdout)["labs"][0]["name"] == LAB
    assert f"lab {LAB} is down" in dutperf("lab", "down").stdout
    assert dutperf("lab", "list").stdout == "no lab is up\n"
    assert leftovers() == []


def test_no_test_frame_reaches_the_root_namespace_while_measuring(
    output: Path,
) -> None:
    over = threading.Event()
    seen: list[bytes] = []

    def listen(wire: Wire) -> None:
        while not over.is_set():
            seen.extend(filter(is_test_frame, wire.received(0.1)))

    with Wire(None) as root:
        ear = threading.Thread(target=listen, args=(root,))
        ear.start()
        where = ("--lab", LAB, "--json", "--output", str(output))
        done = dutperf("throughput", *where, *SHORT, "--max-rate", "5000")
        over.set()
        ear.join()
    measured(done)
    trials = load_results(output).trials
    assert all(s.sent for t in trials for d in t.result.directions for s in d.streams)
    assert seen == []


def test_the_demo_ends_with_the_path_of_its_report(
    output: Path, tmp_path: Path
) -> None:
    demo = YAML(typ="safe").load(EXAMPLES / "demo.yaml")
    for procedure in demo["procedures"]:
        procedure["trial_duration_s"] = 0.1
        procedure["residual_wait_s"] = 0.05
        procedure["settle_wait_s"] = procedure["restabilise_wait_s"] = 0.02
        if procedure["procedure"] == "latency":
            procedure |= {"first_tag_s": 0.03, "tags": 500}
        else:
            procedure["max_rate_fps"] = 100_000
    campaign = tmp_path / "demo.yaml"
    YAML().dump(demo, campaign)
    done = dutperf("run", str(campaign), "--output", str(output))
    assert done.returncode in {0, 1}
    assert done.stdout.splitlines()[-1] == str(output / "report.html")
    assert len(load_results(output).cells) == 12  # two devices
    assert (output / "report.html").stat().st_size > 100_000


def test_a_link_that_is_down_is_an_error_that_names_the_next_hop(
    lab_up: Testbed, output: Path, tmp_path: Path
) -> None:
    command = ["ip", "-n", "dut", "link", "set", "right", "down"]
    subprocess.run(command, check=True)
    testbed = str(write_testbed(tmp_path, lab_up, "af_packet"))
    done = dutperf("throughput", testbed, "--ip", "4", "--output", str(output), *SHORT)
    assert done.returncode == 3
    assert "198.19.0.1" in done.stderr
    assert "hint: " in done.stderr


def test_a_driver_that_is_refused_is_an_error_with_a_hint(
    lab_up: Testbed, output: Path, tmp_path: Path
) -> None:
    testbed = write_testbed(tmp_path, lab_up, "af_packet")
    wrong = testbed.read_text().replace("interface: left", "interface: gone0")
    testbed.write_text(wrong)
    done = dutperf("throughput", str(testbed), "--output", str(output), *SHORT)
    assert done.returncode == 3
    assert "gone0" in done.stderr
    assert "does not exist" in done.stderr


@pytest.mark.browser
def test_the_report_of_a_real_run_is_drawn_without_console_errors(
    output: Path, browser: Browser
) -> None:
    loads = ("--load", "100", "--load", "50")
    where = ("--lab", LAB, "--ip", "4", "--output", str(output))
    dutperf("frame-loss", *where, *SHORT, *loads, "--max-rate", "5000")
    page = browser.new_page()
    troubles: list[str] = []
    page.on("console", lambda m: troubles.extend([m.text] * (m.type == "error")))
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("requestfailed", lambda r: troubles.append(r.url))
    page.goto((output / "report.html").as_uri())
    page.wait_for_selector(".main-svg", state="attached")
    assert page.locator(".js-plotly-plot").count() >= 1
    assert troubles == []
