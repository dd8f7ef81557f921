"""Secrets of a testbed: used where they are needed, and in no file of a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from planning import TESTBED, Run, spec

from dutperf.api.places import planned_testbeds
from dutperf.config import Campaign, Testbed, load_campaign, load_testbed
from dutperf.config.testbed import COMMUNITY_VARIABLE, Hook
from dutperf.errors import InputError, SetupError
from dutperf.evidence import verify
from dutperf.results import ResultsFile
from dutperf.run.campaign_run import results_again
from dutperf.run.hook_runs import run_hooks
from dutperf.simulation.fake_engine import FakeEngine, step
from dutperf.simulation.simulated_gateway import SimulatedAgent

COMMUNITY = "xyzzy-1a"
"""As hexadecimal digits it would be in the packets of the journal."""
WAYS = [COMMUNITY, {"env": "LAB_COMMUNITY"}, {"file": "community"}]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def place_with(community: object) -> Testbed:
    data = TESTBED.model_dump(exclude_none=True)
    hook = {"command": ["sh", "-xc", "true $0", {"env": "LAB_PASSWORD"}]}
    more = {"snmp": {"community": community}, "hooks": {"after_trial": [hook]}}
    return Testbed.model_validate(data | more)


def give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAB_COMMUNITY", COMMUNITY)
    monkeypatch.setenv("LAB_PASSWORD", "hunter2")
    Path("community").write_text(f"{COMMUNITY}\n")


def take(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAB_COMMUNITY", raising=False)
    monkeypatch.delenv("LAB_PASSWORD", raising=False)
    Path("community").unlink(missing_ok=True)


def campaign_at(place: Testbed) -> Campaign:
    keys: Any = {"traffic": {"management": True}, "repeats": 2}
    return Campaign(name="secret", testbed=[place], procedures=[spec(**keys)])


def run_of(place: Testbed) -> Run:
    engine = FakeEngine(step(300_000), agent=SimulatedAgent(COMMUNITY))
    return Run(Path("run"), engine, testbed=place)


def run(place: Testbed) -> ResultsFile:
    return run_of(place)(campaign_at(place))


def everything() -> bytes:
    return b"".join(path.read_bytes() for path in Path("run").iterdir())


def stored() -> Campaign:
    return load_campaign(Path("run/campaign.yaml"), stored=True)


@pytest.mark.parametrize("community", WAYS)
def test_a_device_is_asked_with_its_community_and_no_file_has_it(
    community: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch)
    (cell,) = run(place_with(community)).cells
    assert cell.management
    assert cell.management.asked == cell.management.answered > 0
    assert cell.management.wrong == 0
    told = everything()
    for secret in (COMMUNITY, COMMUNITY.encode().hex(), "hunter2"):
        assert secret.encode() not in told
    assert b"{env: LAB_PASSWORD}" in told
    take(monkeypatch)
    found = verify(Path("run"), planned_testbeds, results_again)
    assert [told for check in found.checks for told in check.wrong] == []
    assert found.proven, "without any secret"


@pytest.mark.parametrize("community", WAYS)
def test_who_resumes_gives_them_again(
    community: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch)
    whole = run(place_with(community))
    Path("run/results.json").unlink()
    journal = Path("run/journal.jsonl")
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-3]))
    take(monkeypatch)
    again = stored()
    (place,) = again.testbeds
    with pytest.raises(SetupError, match=r"\$?\w+ should hold a secret"):
        run_of(place).resume(again)
    give(monkeypatch)
    if community == COMMUNITY:
        monkeypatch.setenv(COMMUNITY_VARIABLE, COMMUNITY)
    resumed = run_of(place).resume(again)
    assert [c.median for c in resumed.cells] == [c.median for c in whole.cells]
    assert COMMUNITY.encode() not in everything()


def test_the_campaigns_own_file_resumes_a_run_whose_community_stood_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    give(monkeypatch)
    place = place_with(COMMUNITY)
    run(place)
    Path("run/results.json").unlink()
    run_of(place).resume(campaign_at(place))


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ({"env": "NO_SUCH"}, r"\$NO_SUCH should hold a secret, and holds none"),
        ({"file": "none"}, "none should hold a secret: No such file"),
        ({"file": "/dev/null"}, "/dev/null should hold a secret, and holds none"),
        ({"file": "/dev/zero"}, "/dev/zero should hold a secret, and holds none"),
    ],
)
def test_a_secret_that_is_not_there_is_told_before_anything_is_sent(
    place: dict[str, str], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch)
    at = run_of(place_with(place))
    with pytest.raises(SetupError, match=why):
        at(campaign_at(place_with(place)))
    assert not at.engine.trials


def test_a_secret_that_is_written_wrongly_is_told_with_its_line() -> None:
    keys = "community: {evn: X}}\nhooks: {is_alive: {command: [a, {env: x, file: y}]}}"
    side = "{port: {interface: a}}"
    Path("t.yaml").write_text(f"name: x\nleft: {side}\nright: {side}\nsnmp: {{{keys}\n")
    with pytest.raises(InputError) as caught:
        load_testbed(Path("t.yaml"))
    first, second = caught.value.message.splitlines()
    assert first == "t.yaml:4: snmp.community.evn: unknown key; did you mean env?"
    assert second.startswith("t.yaml:5: hooks.is_alive.command[1]: give exactly one of")


def test_a_word_of_a_command_may_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch)
    words = ["sh", "-c", 'echo "got $0"; exit 3', {"env": "LAB_PASSWORD"}]
    (ran,) = run_hooks([Hook.model_validate({"command": words})], "before_trial")
    assert ran.exit_code == 3
    assert ran.output == "got {env: LAB_PASSWORD}\n"
    assert ran.command[-1] == "{env: LAB_PASSWORD}"
    take(monkeypatch)
    (ran,) = run_hooks([Hook.model_validate({"command": words})], "before_trial")
    assert ran.ended.startswith("could not be started: $LAB_PASSWORD should hold")
