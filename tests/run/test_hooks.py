"""Hooks of the testbed: what runs, what is stored, and what a failure does."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from planning import Recording, Run, campaign, cell, spec, with_hooks

from dutperf.config.testbed import Hook
from dutperf.errors import SetupError
from dutperf.procedures.trials import Ask
from dutperf.protocol.result_messages import TrialResult
from dutperf.results import load_journal
from dutperf.run.hook_runs import MOST_OUTPUT_BYTES, command_line, run_hooks
from dutperf.simulation.fake_engine import FakeEngine, perfect, step


def shell(text: str, **keys: object) -> dict[str, object]:
    return {"command": ["sh", "-c", text], **keys}


def recording(**hooks: object) -> Recording:
    return Recording(FakeEngine(step(500_000)), testbed=with_hooks(**hooks))


def test_hooks_run_around_each_trial_and_their_output_is_stored() -> None:
    seen = recording(
        before_trial=[shell("echo clear"), shell("echo flush >&2")],
        after_trial=[shell("echo counters")],
    )
    for _ in range(2):
        record = seen.runner.run(Ask(cell(), 1000))
        told = [(run.moment, run.output) for run in record.hooks]
        assert told == [
            ("before_trial", "clear\n"),
            ("before_trial", "flush\n"),
            ("after_trial", "counters\n"),
        ]
        assert record.result.verdict.kind == "pass"


@pytest.mark.parametrize("moment", ["before_trial", "after_trial"])
def test_a_hook_that_fails_makes_the_trial_invalid(moment: str) -> None:
    seen = recording(**{moment: [shell("echo why; exit 3"), shell("echo not run")]})
    record = seen.runner.run(Ask(cell(), 1000))
    (run,) = record.hooks
    (reason,) = record.result.verdict.reasons
    assert record.result.verdict.kind == "invalid"
    assert reason.code == "hook_failed"
    assert f"the {moment} hook" in reason.message
    assert "ended with exit code 3: why" in reason.message
    assert (run.exit_code, run.output) == (3, "why\n")


def test_a_search_gives_up_when_a_hook_keeps_failing(tmp_path: Path) -> None:
    run = Run(
        tmp_path / "run",
        FakeEngine(perfect()),
        testbed=with_hooks(after_trial=[shell("exit 1")]),
    )
    results = run(campaign(spec()))
    assert results.cells[0].verdict == "invalid"
    assert len(results.trials) == 3


def test_before_the_campaign_a_failure_ends_the_run_before_any_frame(
    tmp_path: Path,
) -> None:
    testbed = with_hooks(before_campaign=[shell("echo no such device; exit 1")])
    run = Run(tmp_path / "run", FakeEngine(perfect()), testbed=testbed)
    with pytest.raises(SetupError, match="exit code 1: no such device"):
        run(campaign(spec()))
    assert not run.engine.trials


def test_the_campaigns_hooks_are_in_the_first_trials_record(tmp_path: Path) -> None:
    testbed = with_hooks(before_campaign=[shell("echo ready")])
    path = tmp_path / "run"
    Run(path, FakeEngine(perfect()), testbed=testbed)(campaign(spec(repeats=2)))
    first, *others = load_journal(path).records
    assert [run.output for run in first.hooks] == ["ready\n"]
    assert not any(record.hooks for record in others)


def test_connections_are_deleted_ahead_of_everything_else_of_a_trial() -> None:
    seen = recording(
        bulk_delete=shell("echo deleted"),
        before_trial=[shell("echo prepared")],
        after_trial=[shell("echo counted")],
    )
    for _ in range(2):
        record = seen.runner.run(Ask(cell(), 1000))
        assert [(run.moment, run.output) for run in record.hooks] == [
            ("bulk_delete", "deleted\n"),
            ("before_trial", "prepared\n"),
            ("after_trial", "counted\n"),
        ]


def test_a_table_that_cannot_be_cleared_makes_the_trial_invalid() -> None:
    seen = recording(
        bulk_delete=shell("echo busy; exit 1"), before_trial=[shell("echo not run")]
    )
    record = seen.runner.run(Ask(cell(), 1000))
    (reason,) = record.result.verdict.reasons
    assert [run.output for run in record.hooks] == ["busy\n"]
    assert "the bulk_delete hook" in reason.message


def test_a_device_is_asked_whether_it_is_alive_when_a_trial_did_not_pass() -> None:
    seen = recording(is_alive=shell("echo here I am"))
    passed, failed = (seen.runner.run(Ask(cell(), rate)) for rate in (1000, 900_000))
    assert not passed.hooks
    assert [(run.moment, run.output) for run in failed.hooks] == [
        ("is_alive", "here I am\n")
    ]
    assert failed.result.verdict.kind == "fail"


def test_a_device_that_died_ends_the_run_which_can_be_resumed(tmp_path: Path) -> None:
    broken = tmp_path / "broken"
    alive = shell(f"test -e {broken} && echo no answer && exit 1 || exit 0")
    testbed = with_hooks(is_alive=alive)
    path = tmp_path / "run"
    whole = Run(tmp_path / "whole", FakeEngine(step(300_000)), testbed=testbed)()

    class Dying(FakeEngine):
        """Breaks down in its second trial."""

        def measure(self, *given: Any) -> TrialResult:  # noqa: ANN401 - as it is
            if len(self.trials) == 1:
                broken.touch()
            return super().measure(*given)

    with pytest.raises(SetupError, match="does not work any more") as caught:
        Run(path, Dying(step(300_000)), testbed=testbed)()
    assert "no answer" in caught.value.message
    last = load_journal(path).records[-1]
    assert last.result.verdict.kind == "invalid"
    broken.unlink()
    resumed = Run(path, FakeEngine(step(300_000)), testbed=testbed).resume()
    assert [c.median for c in resumed.cells] == [c.median for c in whole.cells]
    assert len(resumed.trials) == len(whole.trials) + 1


def test_a_command_that_failed_is_run_again(tmp_path: Path) -> None:
    count = tmp_path / "count"
    text = f"echo x >> {count}; test $(wc -l < {count}) -ge 3"
    (run,) = run_hooks(
        [Hook.model_validate(shell(text, retries=5, retry_wait_s=0))], "before_trial"
    )
    assert (run.succeeded, run.attempts) == (True, 3)


def test_a_command_that_takes_too_long_is_ended_with_its_children() -> None:
    slow = shell("echo begun; sleep 600 & sleep 600", timeout_s=0.2)
    (run,) = run_hooks([Hook.model_validate(slow)], "before_trial")
    assert not run.succeeded
    assert (run.exit_code, run.output) == (None, "begun\n")
    assert run.ended == "did not end within 0.2 s"


def test_a_flood_of_output_is_drained_and_takes_no_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a hook prints goes nowhere but to 64 KiB of memory."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "no such folder"))
    flood = shell("head -c 200000000 /dev/zero | tr '\\0' x; echo end >&2; exit 3")
    (run,) = run_hooks([Hook.model_validate(flood)], "before_trial")
    assert run.exit_code == 3
    kept, told = run.output.split("\n", 1)
    assert kept == "x" * MOST_OUTPUT_BYTES
    assert told == "... and 199,934,468 bytes more, which are not kept\n"


def test_what_floods_until_its_time_is_up_is_ended() -> None:
    endless = shell("yes", timeout_s=0.3)
    (run,) = run_hooks([Hook.model_validate(endless)], "before_trial")
    assert run.ended == "did not end within 0.3 s"
    assert run.output.startswith("y\ny\n")
    assert "bytes more" in run.output
    assert run.duration_s < 2


def test_what_a_hook_leaves_running_holds_up_nobody_and_can_go_on_printing(
    tmp_path: Path,
) -> None:
    done = tmp_path / "done"
    left = shell(f"echo begun; (sleep 1; yes | head -n 200000; touch {done}) &")
    (run,) = run_hooks([Hook.model_validate(left)], "before_trial")
    assert (run.succeeded, run.output) == (True, "begun\n")
    assert run.duration_s < 1
    deadline = time.monotonic() + 10
    while not done.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert done.exists()


def test_a_program_that_does_not_exist_is_a_failure() -> None:
    (run,) = run_hooks([Hook(command=["/no/such/program"])], "before_trial")
    assert run.ended == "could not be started: No such file or directory"


OVER_SSH = {
    "command": ["cat", "/proc/net/dev", "two words", "$HOME; reboot"],
    "ssh": {
        "host": "192.0.2.1",
        "user": "tester",
        "port": 2222,
        "identity_file": "key",
        "known_hosts": "hosts",
    },
}


def test_over_ssh_the_host_key_is_checked_and_nothing_is_asked() -> None:
    words = command_line(Hook.model_validate(OVER_SSH))
    assert words[0] == "ssh"
    for option in (
        "BatchMode=yes",
        "StrictHostKeyChecking=yes",
        'UserKnownHostsFile="hosts"',
        "GlobalKnownHostsFile=/dev/null",
        'IdentityFile="key"',
    ):
        assert words[words.index(option) - 1] == "-o"
    assert words[-7:-1] == ["-p", "2222", "-l", "tester", "--", "192.0.2.1"]
    assert words[-1] == "cat /proc/net/dev 'two words' '$HOME; reboot'"


def test_over_ssh_output_and_exit_code_are_those_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "ssh"
    program.write_text(
        f"#!{sys.executable}\n"
        "import subprocess, sys\n"
        "sys.exit(subprocess.call(['sh', '-c', sys.argv[-1]]))\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    hook = Hook.model_validate(shell("echo there; exit 4", ssh={"host": "dut"}))
    (run,) = run_hooks([hook], "after_trial")
    assert (run.host, run.exit_code, run.output) == ("dut", 4, "there\n")


@pytest.mark.parametrize(
    "wrong",
    [
        {"command": []},
        {"command": ["true"], "timeout_s": 0},
        {"command": ["true"], "retries": -1},
        {"command": ["true"], "ssh": {"host": "-oProxyCommand=reboot"}},
        {"command": ["true"], "ssh": {"host": "dut", "known_hosts": 'a" b'}},
        {"command": ["true"], "ssh": {"user": "root"}},
    ],
)
def test_a_hook_that_makes_no_sense_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        Hook.model_validate(wrong)
