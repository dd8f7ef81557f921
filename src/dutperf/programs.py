"""The programs that are built beside the package: where they are, and of which version.

Free of everything that takes long to load, for ``dutperf --version``.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType

from dutperf import __version__
from dutperf.errors import DutperfError, SetupError

ENGINE_VARIABLE = "DUTPERF_ENGINE"
PACKAGE = Path(__file__).resolve().parent
BUILT = PACKAGE / "_engine"
"""Where they are in an installed package."""
SOURCE_TREE = PACKAGE.parents[1]
"""Where the package is not installed, but used where it was written."""
_PROGRAM_FOLDERS = (BUILT, SOURCE_TREE / "build")


def find_engine() -> Path:
    """Where the engine program is.

    Raises:
        SetupError: nowhere, or the file named by $DUTPERF_ENGINE is not a program.
    """
    named = os.environ.get(ENGINE_VARIABLE)
    if not named:
        return find_program("dutperf-engine")
    if _is_program(Path(named)):
        return Path(named)
    message = f"${ENGINE_VARIABLE} names {named}, which is not a program"
    raise SetupError(message, "correct it, or unset it to use the built engine")


def find_program(name: str) -> Path:
    """Where one of the built programs is: in the package, else in the source tree.

    Raises:
        SetupError: nowhere.
    """
    for folder in _PROGRAM_FOLDERS:
        if _is_program(folder / name):
            return folder / name
    raise SetupError(
        f"the engine program {name} is not found",
        "build it: run 'make setup' in dutperf's source tree",
    )


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


# Programs that are run once, with a text as their input, perhaps in a namespace.


def in_namespace(namespace: str, *command: str) -> list[str]:
    """``command`` as it runs in a network namespace, with that one's /sys."""
    return ["ip", "netns", "exec", namespace, *command]


def feed(command: list[str], text: str) -> str:
    """Runs ``command`` with ``text`` as input; what it complained about, or nothing."""
    result = subprocess.run(
        command, input=text, capture_output=True, text=True, check=False
    )
    if result.returncode == 0:
        return ""
    return result.stderr.strip() or f"exit code {result.returncode}"


# When a process of ours ends: at once, where ``Popen.wait`` looks every 50 ms.


def ends_within(process: subprocess.Popen[bytes], timeout_s: float) -> bool:
    """Wait for its end, ``timeout_s`` at most; whether it has ended."""
    if process.poll() is not None:
        return True
    descriptor = os.pidfd_open(process.pid)
    try:
        ready, _, _ = select.select([descriptor], [], [], timeout_s)
        return bool(ready)
    finally:
        os.close(descriptor)


# Which dutperf this is: package, commit, engine and DPDK.
#
# Told without loading the commands, and whatever is missing.


_COMMIT = BUILT / "commit"
"""Written when a package is built (``CMakeLists.txt``)."""
_SECONDS = 5
_OF_THE_ENGINE = re.compile(r"dutperf-engine (?P<engine>\S+), (?P<dpdk>DPDK \S+)")


def version_line() -> str:
    """All of it in one line, for people and their reports of defects."""
    commit = commit_of_package()
    return f"dutperf {__version__} (commit {commit}), {_engine_words()}"


def commit_of_package() -> str:
    """The first digits, with ``-dirty`` for a changed source tree; or ``unknown``."""
    if _COMMIT.is_file():
        return _COMMIT.read_text("ascii").strip() or "unknown"
    if not (SOURCE_TREE / ".git").exists():
        return "unknown"
    # No tag is wanted; a commit of no other repository around it is ours.
    asked = ("describe", "--always", "--dirty", "--abbrev=12", "--exclude=*")
    return _said("git", "-C", str(SOURCE_TREE), *asked)[0].strip() or "unknown"


def engine_versions(answer: str) -> tuple[str, str]:
    """Of the engine and of its DPDK, of what ``dutperf-engine --version`` says.

    An engine of dutperf 0.1 says nothing of DPDK: ``unknown``, as is what is not told.
    """
    found = _OF_THE_ENGINE.match(answer)
    if found:
        return found["engine"], found["dpdk"]
    words = answer.split()
    return (words[1] if len(words) == 2 else "unknown"), "DPDK unknown"


def _engine_words() -> str:
    try:
        program = find_engine()
    except DutperfError as error:
        return f"engine not found ({error.hint})"
    said, complaint = _said(str(program), "--version")
    if not said:
        return f"engine does not start ({complaint.strip() or program})"
    engine, dpdk = engine_versions(said)
    return f"engine {engine}, {dpdk}"


def _said(*command: str) -> tuple[str, str]:
    """What a program printed, and its complaints; nothing if it cannot be run."""
    try:
        done = subprocess.run(
            command, capture_output=True, check=False, text=True, timeout=_SECONDS
        )
    except (OSError, subprocess.SubprocessError) as error:
        return "", str(error)
    return (done.stdout if done.returncode == 0 else ""), done.stderr


# Signals: however a program is stopped, a lab goes down and files stay whole.


TERMINATE = (signal.SIGTERM, signal.SIGHUP)
_LOOK_EVERY_S = 0.05


@contextmanager
def terminate_as_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt within the block, as SIGINT does.

    A handler that somebody else installed stays: what it does is not ours to change.
    Outside the main thread, which never sees signals, this does nothing.
    """
    ours = [s for s in TERMINATE if _in_main_thread() and _is_default(s)]
    for signum in ours:
        signal.signal(signum, _interrupt)
    try:
        yield
    finally:
        for signum in ours:
            signal.signal(signum, signal.SIG_DFL)


@contextmanager
def postponed_signals(telling: str = "") -> Iterator[None]:
    """Nothing interrupts the block; what arrived meanwhile is raised at its end.

    ``telling`` is said on standard error at once, for blocks that take seconds.

    The signals are blocked because the lab's pyroute2 forks: an exception raised by a
    handler in its child would run the rest of this program there, a second time. They
    get another handler as well because any other thread may take them while this one
    does not. A process that is to outlive the block must be started outside: it
    inherits the mask.
    """
    arrived: list[int] = []
    to_tell = [telling] if telling else []

    def arrive(signum: int) -> None:
        with suppress(IndexError, OSError):  # only one thread gets it
            os.write(sys.stderr.fileno(), f"{to_tell.pop()}\n".encode())
        arrived.append(signum)

    def remember(signum: int, _frame: FrameType | None) -> None:
        arrive(signum)

    signals = (signal.SIGINT, *TERMINATE)
    ours = signals if _in_main_thread() else ()
    before = {s: signal.getsignal(s) for s in ours if signal.getsignal(s) is not None}
    for signum in before:
        signal.signal(signum, remember)
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        with _answering(signals, arrive) if telling else nullcontext():
            yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        for signum, handler in before.items():
            signal.signal(signum, handler)
        for number in arrived:
            signal.raise_signal(number)


@contextmanager
def _answering(
    signals: Collection[signal.Signals], arrive: Callable[[int], None]
) -> Iterator[None]:
    """A thread takes the signals that are blocked."""
    ended = threading.Event()

    def answer() -> None:
        while not ended.is_set():
            taken = signal.sigtimedwait(signals, _LOOK_EVERY_S)
            if taken is not None:
                arrive(taken.si_signo)

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _interrupt(_signum: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _is_default(signum: signal.Signals) -> bool:
    return signal.getsignal(signum) is signal.SIG_DFL


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
