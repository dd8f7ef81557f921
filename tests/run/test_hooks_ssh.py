"""Hooks over ssh, against a real OpenSSH server that only this test knows."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from planning import Run, campaign, spec, with_hooks
from sshtools import SshServer, known_host, make_key, needs_sshd

from dutperf.config.testbed import Hook
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.errors import SetupError
from dutperf.protocol.result_messages import TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import HookRun, load_journal
from dutperf.run.hook_runs import run_hooks
from dutperf.simulation.fake_engine import FakeEngine, perfect

pytestmark = needs_sshd


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with SshServer(tmp_path_factory.mktemp("sshd")) as running:
        yield running


def hook(ssh: dict[str, object], *command: str, **keys: object) -> Hook:
    return Hook.model_validate(
        {"command": command or ("true",), "ssh": ssh, "retry_wait_s": 0, **keys}
    )


def once(what: Hook) -> HookRun:
    (run,) = run_hooks([what], "before_trial")
    return run


def test_what_it_prints_there_is_in_the_journal(
    server: SshServer, tmp_path: Path
) -> None:
    words = ("printf", "%s\\n", "two words", "$HOME; false", "it's")
    testbed = with_hooks(
        before_campaign=[hook(server.door(), "echo", "hello")],
        before_trial=[hook(server.door(), *words)],
        after_trial=[hook(server.door(), "sh", "-c", "echo to stderr >&2")],
    )
    path = tmp_path / "run"
    results = Run(path, FakeEngine(perfect()), testbed=testbed)(campaign(spec()))
    assert results.cells[0].verdict == "pass"
    record = load_journal(path).records[0]
    assert [(run.moment, run.host, run.output) for run in record.hooks] == [
        ("before_campaign", "127.0.0.1", "hello\n"),
        ("before_trial", "127.0.0.1", "two words\n$HOME; false\nit's\n"),
        ("after_trial", "127.0.0.1", "to stderr\n"),
    ]
    assert {run.exit_code for run in record.hooks} == {0}


def test_the_exit_code_is_the_remote_commands(server: SshServer) -> None:
    run = once(hook(server.door(), "sh", "-c", "echo so; exit 7"))
    assert (run.exit_code, run.ended) == (7, "ended with exit code 7")
    assert run.output == "so\n"


@pytest.mark.parametrize("known", ["another key", "no key"])
def test_a_host_that_is_not_the_known_one_gets_no_command(
    server: SshServer, tmp_path: Path, known: str
) -> None:
    hosts, done = tmp_path / "known_hosts", tmp_path / "done"
    public = make_key(tmp_path / "other").with_suffix(".pub").read_text()
    before = known_host(server.port, public) if known == "another key" else ""
    hosts.write_text(before)
    run = once(hook(server.door(known_hosts=str(hosts)), "touch", str(done)))
    assert run.exit_code == 255
    assert "Host key verification failed" in run.output
    assert not done.exists()
    assert hosts.read_text() == before


def test_a_user_whose_key_does_not_fit_is_not_asked_for_a_password(
    server: SshServer, tmp_path: Path
) -> None:
    wrong = make_key(tmp_path / "other")
    run = once(hook(server.door(identity_file=str(wrong)), timeout_s=20))
    assert run.exit_code == 255
    assert "Permission denied (publickey)" in run.output


def test_a_run_whose_host_is_not_known_ends_before_any_frame_and_says_why(
    server: SshServer, tmp_path: Path
) -> None:
    hosts = tmp_path / "known_hosts"
    hosts.touch()
    door = server.door(known_hosts=str(hosts))
    run = Run(
        tmp_path / "run",
        FakeEngine(perfect()),
        testbed=with_hooks(before_campaign=[hook(door)]),
    )
    with pytest.raises(SetupError) as caught:
        run(campaign(spec()))
    message = caught.value.message
    assert "on 127.0.0.1 ended with exit code 255, as ssh itself does: " in message
    assert "No ED25519 host key is known for [127.0.0.1]" in message
    assert not run.engine.trials


def test_what_takes_too_long_there_is_given_up(server: SshServer) -> None:
    began = time.monotonic()
    run = once(hook(server.door(), "sh", "-c", "echo begun; sleep 60", timeout_s=8))
    assert time.monotonic() - began < 40
    assert (run.exit_code, run.ended) == (None, "did not end within 8 s")
    assert run.output == "begun\n"


def test_a_command_that_failed_there_is_run_again(
    server: SshServer, tmp_path: Path
) -> None:
    count = tmp_path / "count"
    text = f"echo x >> {count}; test $(wc -l < {count}) -ge 3"
    run = once(hook(server.door(), "sh", "-c", text, retries=5))
    assert (run.succeeded, run.attempts) == (True, 3)


def test_a_server_that_goes_in_mid_campaign_makes_trials_invalid(
    tmp_path: Path,
) -> None:
    class Ending(FakeEngine):
        """While its fourth trial runs, the server ends."""

        def measure(
            self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
        ) -> TrialResult:
            if len(self.trials) == 3:
                mortal.stop()
            return super().measure(trial, on_progress)

    with SshServer(tmp_path) as mortal:
        counters = hook(mortal.door(), "cat", "/proc/net/dev", retries=1)
        path = tmp_path / "run"
        run = Run(path, Ending(perfect()), testbed=with_hooks(after_trial=[counters]))
        results = run(campaign(spec(repeats=3)))
    assert [repeat.verdict for repeat in results.cells[0].repeats] == [
        *("pass", "pass"),
        "invalid",
    ]
    third = load_journal(path).records[3]
    (reason,) = third.result.verdict.reasons
    assert (third.result.verdict.kind, reason.code) == ("invalid", "hook_failed")
    assert "Connection refused" in reason.message
    assert "2 times" in reason.message
    assert results.complete
