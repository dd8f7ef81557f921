"""Runs the testbed's hooks. Their output goes into the journal with the trial."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
import select
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence

from dutperf.config.testbed import Hook, Hooks, SshHost
from dutperf.errors import SetupError
from dutperf.procedures.trials import RunHooks
from dutperf.protocol.result_messages import Reason, TrialResult, Verdict
from dutperf.protocol.trial_messages import TrialProgress
from dutperf.results.trial_record import NOT_KEPT, HookMoment, HookRun, TrialRecord

MOST_OUTPUT_BYTES = 64 * 1024


def run_hooks(hooks: Sequence[Hook], moment: HookMoment) -> list[HookRun]:
    """Run ``hooks`` in order, up to the first that fails in spite of its retries."""
    runs: list[HookRun] = []
    for hook in hooks:
        runs.append(_with_retries(hook, moment))
        if not runs[-1].succeeded:
            break
    return runs


def run_before_trial(hooks: Hooks, run: RunHooks = run_hooks) -> list[HookRun]:
    """Delete the device's connections, if it is known how, then prepare it."""
    deleted = run([hooks.bulk_delete] if hooks.bulk_delete else [], "bulk_delete")
    if not all(each.succeeded for each in deleted):
        return deleted
    return [*deleted, *run(hooks.before_trial, "before_trial")]


def ask_is_alive(hooks: Hooks, run: RunHooks = run_hooks) -> list[HookRun]:
    """Whether the device works; nothing if nobody can tell."""
    return run([hooks.is_alive] if hooks.is_alive else [], "is_alive")


def revive(hooks: Hooks, run: RunHooks = run_hooks) -> list[HookRun]:
    """Bring a device back that collapsed, and ask it again."""
    hook = hooks.restart or hooks.bulk_delete
    done = run([hook] if hook else [], "restart")
    if not all(each.succeeded for each in done):
        return done
    return [*done, *ask_is_alive(hooks, run)]


def check(runs: Sequence[HookRun]) -> None:
    """Refuse to go on after a hook that failed.

    Raises:
        SetupError: tells the last lines of its output.
    """
    for run in runs:
        if not run.succeeded:
            raise SetupError(f"{_told(run)}: {_end(run.output)}", _TRY)


def check_alive(record: TrialRecord) -> None:
    """Refuse to go on with a device that, when asked, did not work.

    Raises:
        SetupError: tells the last lines of what the hook printed.
    """
    for run in record.hooks:
        if run.moment == "is_alive" and not run.succeeded:
            raise SetupError(
                f"the device under test does not work any more after trial "
                f"{record.number}: {_told(run)}: {_end(run.output)}",
                "bring it back",
            )


def judged(result: TrialResult, runs: Sequence[HookRun]) -> TrialResult:
    """``result``, or the same as invalid if a hook failed."""
    failed = [
        Reason(
            code="hook_failed", message=f"{_told(run)}: {_end(run.output)}", hint=_HINT
        )
        for run in runs
        if not run.succeeded
    ]
    if not failed:
        return result
    reasons = [*failed, *result.verdict.reasons]
    return result.model_copy(
        update={"verdict": Verdict(kind="invalid", reasons=reasons)}
    )


def command_line(hook: Hook) -> list[str]:
    """What is executed; over ssh the remote shell gets each word quoted.

    Raises:
        SetupError: a word that is a secret is not where it should be.
    """
    words = [w if isinstance(w, str) else w.value() for w in hook.command]
    if hook.ssh is None:
        return words
    return [*_ssh(hook.ssh, hook.timeout_s), shlex.join(words)]


_SSH_FAILED = 255
"""What ssh ends with if it could not connect, or was not let in: see ssh(1)."""
_MOST_TOLD = 300
_TRY = "try the command by hand; see hooks in the testbed"
_HINT = f"the journal has its output; {_TRY}"


def _ssh(to: SshHost, timeout_s: float) -> list[str]:
    options = {
        "BatchMode": "yes",
        "StrictHostKeyChecking": "yes",
        "ConnectTimeout": str(math.ceil(timeout_s)),
    }
    if to.identity_file:
        options |= {"IdentityFile": f'"{to.identity_file}"', "IdentitiesOnly": "yes"}
    if to.known_hosts:
        options |= {
            "UserKnownHostsFile": f'"{to.known_hosts}"',
            "GlobalKnownHostsFile": "/dev/null",
        }
    given = [
        word for key, value in options.items() for word in ("-o", f"{key}={value}")
    ]
    user = ["-l", to.user] if to.user else []
    return ["ssh", "-T", *given, "-p", str(to.port), *user, "--", to.host]


def _with_retries(hook: Hook, moment: HookMoment) -> HookRun:
    attempt = 1
    while True:
        run = _run(hook, moment, attempt)
        if run.succeeded or attempt > hook.retries:
            return run
        time.sleep(hook.retry_wait_s)
        attempt += 1


def _run(hook: Hook, moment: HookMoment, attempt: int) -> HookRun:
    began = time.monotonic()
    told = ""
    try:
        command, secrets = command_line(hook), {s.value(): s for s in hook.secrets}
    except SetupError as error:
        exit_code, ended = None, f"could not be started: {error.message}"
    else:
        output = _Output()
        exit_code, ended = _execute(command, output, hook.timeout_s)
        told = output.text()
        for value, secret in secrets.items():  # of a command that tells what it does
            told = told.replace(value, str(secret))
    duration_s = time.monotonic() - began
    return HookRun(
        moment=moment,
        command=hook.shown,
        host=hook.ssh.host if hook.ssh else None,
        attempts=attempt,
        exit_code=exit_code,
        ended=ended,
        output=told,
        duration_s=round(duration_s, 6),
    )


class _Output:
    """The pipe that a command prints to: its begin is kept, the rest is counted."""

    def __init__(self) -> None:
        self._kept, self._more = bytearray(), 0
        self._pipe, self.end = os.pipe()
        """``end`` is the command's; whoever gave it away closes it."""

    def take(self) -> bool:
        """Read a piece, once there is one; false: nobody can write any more."""
        piece = os.read(self._pipe, MOST_OUTPUT_BYTES)
        room = MOST_OUTPUT_BYTES - len(self._kept)
        self._kept += piece[:room]
        self._more += len(piece[room:])
        return bool(piece)

    def until(self, process: subprocess.Popen[bytes], timeout_s: float) -> bool:
        """Read until ``process`` ends, ``timeout_s`` at most; whether it has ended."""
        deadline = time.monotonic() + timeout_s
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        end = os.pidfd_open(process.pid)
        poll.register(end, select.POLLIN)
        try:
            while (left_s := deadline - time.monotonic()) > 0:
                ready = [descriptor for descriptor, _ in poll.poll(left_s * 1000)]
                if end in ready:
                    return True
                if ready and not self.take():
                    poll.unregister(self._pipe)
            return False
        finally:
            os.close(end)

    def text(self) -> str:
        """All that was printed so far; what is left running may go on unheard."""
        os.set_blocking(self._pipe, False)
        most = (
            self._more + len(self._kept) + fcntl.fcntl(self._pipe, fcntl.F_GETPIPE_SZ)
        )
        open_still = True
        with contextlib.suppress(BlockingIOError):
            while open_still and self._more + len(self._kept) < most:
                open_still = self.take()
        if open_still:
            threading.Thread(target=self._drain, daemon=True).start()
        else:
            os.close(self._pipe)
        told = bytes(self._kept).decode(errors="replace")
        if self._more:
            told += f"\n... and {self._more:,} {NOT_KEPT}\n"
        return told

    def _drain(self) -> None:
        os.set_blocking(self._pipe, True)
        while os.read(self._pipe, MOST_OUTPUT_BYTES):
            pass
        os.close(self._pipe)


def _execute(
    command: list[str], output: _Output, timeout_s: float
) -> tuple[int | None, str]:
    """Exit code, if it ended by itself; and how it ended."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output.end,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    except OSError as error:
        return None, f"could not be started: {error.strerror}"
    finally:
        os.close(output.end)
    try:
        if not output.until(process, timeout_s):
            return None, f"did not end within {timeout_s:g} s"
        code = process.wait()
        return code, f"ended with exit code {code}"
    finally:
        if process.returncode is None:  # too late, or the user interrupted
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _told(run: HookRun) -> str:
    on = f" on {run.host}" if run.host else ""
    own = ", as ssh itself does" if run.host and run.exit_code == _SSH_FAILED else ""
    times = f", {run.attempts} times" if run.attempts > 1 else ""
    words = shlex.join(run.command)
    return f"the {run.moment} hook {words!r}{on} {run.ended}{own}{times}"


def _end(output: str) -> str:
    told = " / ".join(output.strip().splitlines()[-3:])
    if not told:
        return "it printed nothing"
    return told if len(told) <= _MOST_TOLD else f"...{told[-_MOST_TOLD:]}"


# Hooks that run while frames are sent: what a device does under load (RFC 6201 4).


class Trigger:
    """Runs ``hooks`` once, beside a trial, when it has sent frames for so long.

    Args:
        hooks: of the testbed; none: a person is asked to act.
        run: runs them.
        after_s: since sending began.
        say: tells the person.
    """

    def __init__(
        self,
        hooks: Sequence[Hook],
        run: RunHooks,
        after_s: float,
        say: Callable[[str], None],
    ) -> None:
        self._hooks = hooks
        self._run = run
        self._after_ns = after_s * 1e9
        self._say = say
        self._pulled = False
        self._thread: threading.Thread | None = None
        self._runs: list[tuple[int, HookRun]] = []

    def watch(self, progress: TrialProgress) -> None:
        """Is told, about twice a second, how long the trial has lasted."""
        running = progress.phase == "running"
        if self._pulled or not running or progress.elapsed_ns < self._after_ns:
            return
        self._pulled = True
        if not self._hooks:
            self._say("now: interrupt the device")
            return
        self._thread = threading.Thread(target=self._act, daemon=True)
        self._thread.start()

    def finished(self, result: TrialResult) -> list[HookRun]:
        """What ran, when the last has ended; with the time since the first frame."""
        if self._thread:
            self._thread.join()
        first_ns = result.begin_unix_ns
        if first_ns is None:
            return [run for _, run in self._runs]
        return [
            run.model_copy(update={"after_s": round((began_ns - first_ns) / 1e9, 6)})
            for began_ns, run in self._runs
        ]

    def _act(self) -> None:
        """As ``run_hooks``, one after the other up to the first that fails."""
        for hook in self._hooks:
            began_ns = time.time_ns()
            runs = self._run([hook], "during_trial")
            self._runs += [(began_ns, run) for run in runs]
            if not all(run.succeeded for run in runs):
                break
