"""A campaign that somebody else stored: its commands are run by consent alone."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import simulated_program
from planning import TESTBED
from simulated_program import PLACE

from dutperf.config import Testbed
from dutperf.run.campaign_run import acts

PROCEDURES = """\
procedures:
  - procedure: frame-loss
    frame_size: [64]
    load_percent: [100]
    repeats: 1
    max_rate_fps: 1000
    restabilise_wait_s: 0
"""
HOOKS = """\
  hooks:
    before_campaign:
      - command: [touch, {made}]
"""

Dutperf = Callable[..., str]


@pytest.fixture
def dutperf(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Dutperf:
    """Runs the program as one of two users; what it printed, if it ends so."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, by: str, code: int = 0) -> str:
        capfd.readouterr()
        with monkeypatch.context() as called:
            called.setattr(sys, "argv", ["dutperf", *arguments])
            called.setenv("XDG_STATE_HOME", str(tmp_path / by))
            ended = simulated_program.main()
        told = capfd.readouterr()
        assert ended == code, told
        assert "Traceback" not in told.err
        return told.out + told.err

    return run


@pytest.fixture(autouse=True)
def made(tmp_path: Path) -> Path:
    """What the hook of the campaign makes."""
    path = tmp_path / "made by the hook"
    hooks = HOOKS.format(made=f'"{path}"')
    (tmp_path / "campaign.yaml").write_text(f"name: demo\n{PLACE}{hooks}{PROCEDURES}")
    return path


def test_a_strangers_hooks_are_shown_and_not_run_when_measured_again(
    dutperf: Dutperf, made: Path
) -> None:
    dutperf("run", "campaign.yaml", "--output", "run", by="stranger")
    told = dutperf("evidence", "run", by="stranger", code=2)
    assert "hooks.before_campaign[0]: touch" in told
    assert not Path("run.evidence.tar.gz").exists()
    dutperf("evidence", "run", "--yes", by="stranger")
    for what in ("run", "run.evidence.tar.gz"):
        made.unlink(missing_ok=True)
        told = dutperf("verify", what, "--rerun", by="me", code=2)
        assert "hooks.before_campaign[0]: touch" in told
        assert "--allow-hooks" in told
        assert not made.exists()
    dutperf("verify", what, "--rerun", "--allow-hooks", by="me")
    assert made.exists()
    made.unlink()
    dutperf("verify", what, "--rerun", by="me")
    assert made.exists(), "what was allowed once is not asked again"


@pytest.mark.parametrize(
    "again", [["--resume", "run"], ["run/campaign.yaml"], ["run/campaign.yaml", "-n"]]
)
def test_nor_by_run(dutperf: Dutperf, made: Path, again: list[str]) -> None:
    if again[-1] == "-n":
        again = [again[0], "--resume", "run"]
    dutperf("run", "campaign.yaml", "--output", "run", by="stranger")
    Path("run/results.json").unlink()
    made.unlink()
    told = dutperf("run", *again, by="me", code=2)
    assert "hooks.before_campaign[0]: touch" in told
    assert not made.exists()
    dutperf("run", *again, "--allow-hooks", by="me")


def test_who_began_a_run_goes_on_without_being_asked(
    dutperf: Dutperf,
) -> None:
    dutperf("run", "campaign.yaml", "--output", "run", by="me")
    Path("run/results.json").unlink()
    Path("run").rename("moved")
    dutperf("run", "--resume", "moved", by="me")
    dutperf("verify", "moved", "--rerun", by="me")


def test_who_gives_the_campaign_himself_is_not_asked(
    dutperf: Dutperf,
) -> None:
    dutperf("run", "campaign.yaml", "--output", "run", by="stranger")
    Path("run/results.json").unlink()
    dutperf("run", "campaign.yaml", "--resume", "run", by="me")


def test_in_another_directory_a_command_may_be_another_one(
    dutperf: Dutperf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dutperf("run", "campaign.yaml", "--output", "run", by="me")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    dutperf("verify", "../run", "--rerun", by="me", code=2)


def test_what_others_can_write_is_no_consent(dutperf: Dutperf) -> None:
    dutperf("run", "campaign.yaml", "--output", "run", by="me")
    (Path("me") / "dutperf/allowed").chmod(0o777)
    dutperf("verify", "run", "--rerun", by="me", code=2)


def test_a_run_without_commands_is_measured_again_unasked(
    dutperf: Dutperf, tmp_path: Path
) -> None:
    (tmp_path / "campaign.yaml").write_text(f"name: demo\n{PLACE}{PROCEDURES}")
    dutperf("run", "campaign.yaml", "--output", "run", by="stranger")
    dutperf("verify", "run", "--rerun", by="me")


def test_a_received_campaign_names_no_testbed_by_its_file(
    dutperf: Dutperf,
) -> None:
    dutperf("run", "campaign.yaml", "--output", "run", by="stranger")
    Path("secret").write_text("password: 1234\n")
    Path("run/campaign.yaml").write_text(
        f"name: demo\ntestbed: ../secret\n{PROCEDURES}"
    )
    for command in (
        ["verify", "run", "--rerun", "--allow-hooks"],
        ["run", "--resume", "run", "--allow-hooks"],
    ):
        told = dutperf(*command, by="me", code=2)
        assert "stored campaign" in told
        assert "password" not in told
    told = dutperf("verify", "run", by="me", code=1)
    assert "password" not in told


def test_who_packs_a_run_without_commands_is_not_asked(
    dutperf: Dutperf, tmp_path: Path
) -> None:
    (tmp_path / "campaign.yaml").write_text(f"name: demo\n{PLACE}{PROCEDURES}")
    dutperf("run", "campaign.yaml", "--output", "run", by="me")
    dutperf("evidence", "run", by="me")


def test_all_that_reaches_beyond_the_frames_is_shown() -> None:
    data = TESTBED.model_dump(exclude_none=True)
    data["left"]["port"] = {"vdev": "net_pcap,tx_pcap=/etc/passwd"}
    data["right"]["port"] = {"memif": "/run/vpp.sock"}
    ssh = {"host": "dut", "user": "root", "identity_file": "key", "known_hosts": "k"}
    data["snmp"] = {"community": {"file": "/etc/shadow"}}
    data["hooks"] = {
        "is_alive": {"command": ["sh", "-c", "a b", {"env": "KEY"}]},
        "after_trial": [{"command": ["reboot"], "ssh": ssh}],
    }
    data["nat_log"] = {"command": ["tail", "-F", "log"], "ssh": ssh}
    data["nat_log"]["format"] = "conntrack"
    by_ssh = (
        "reboot (by ssh, port 22 of root@dut, identity_file 'key', known_hosts 'k')"
    )
    assert acts([Testbed.model_validate(data)]) == [
        "simulated: left.port.vdev: net_pcap,tx_pcap=/etc/passwd",
        "simulated: right.port.memif: /run/vpp.sock",
        f"simulated: hooks.after_trial[0]: {by_ssh}",
        "simulated: hooks.is_alive: sh -c 'a b' '{env: KEY}' (on this machine)",
        f"simulated: nat_log: {by_ssh.replace('reboot', 'tail -F log')}",
        "simulated: snmp.community: {file: /etc/shadow} (sent to the gateway)",
    ]
    data = TESTBED.model_dump(exclude_none=True)
    data["nat_log"] = {"file": "/etc/shadow", "format": "conntrack"}
    told = ["simulated: nat_log: /etc/shadow"]
    assert acts([Testbed.model_validate(data)]) == told
    assert acts([TESTBED]) == []
