"""Which dutperf this is: package, commit, engine and DPDK.

Told without loading the commands, and whatever is missing.
"""

from __future__ import annotations

import re
import subprocess

from dutperf import __version__
from dutperf.errors import DutperfError
from dutperf.programs import BUILT, SOURCE_TREE, find_engine

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
