"""Whether a campaign that somebody else may have stored may act on this machine.

A stored campaign is a file from anywhere, and yet it has commands, files and arguments
of DPDK's devices. What a user has begun himself is remembered as a digest of all that,
and of the directory that relative paths start from, in a folder that is his alone: the
digest of anything else is not there, however the results directory came here.
"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from dutperf.config import Campaign, Testbed, load_campaign
from dutperf.config.hooks import Hook
from dutperf.config.side import MemifPort, VdevPort
from dutperf.errors import InputError
from dutperf.model.fields import Secret, dotted
from dutperf.results.directory import CAMPAIGN
from dutperf.results.journal import JOURNAL


def campaign_to_run(
    path: Path,
    *,
    allowed: bool = False,
    called: Path | None = None,
) -> Campaign:
    """The campaign at ``path``; a stored one if it may do what it says.

    Args:
        path: of its file.
        allowed: the user has seen what it does, and wants that.
        called: the run that it is of, stored by whomever; None: the user's file, but
            for one that has a journal beside it.

    Raises:
        InputError: as ``load_campaign``; or it acts on this machine as nothing did that
            this user has run here.
    """
    if called is None and path.name == CAMPAIGN and path.with_name(JOURNAL).exists():
        called = path.parent
    campaign = load_campaign(path, stored=called is not None)
    told = acts(campaign.testbeds)
    if called is None or allowed or not told or _is_remembered(told):
        return campaign
    raise InputError(
        f"the campaign of {called} acts on this machine, and this user has not run it "
        "from this directory before:\n" + "\n".join(f"  {line}" for line in told),
        "nothing was run; read these lines, and if they may be done: --allow-hooks "
        "(dutperf run, dutperf verify --rerun)",
    )


def remember(testbeds: Sequence[Testbed]) -> None:
    """This user runs what these do: it may be done again.

    Where nothing can be stored, nothing is: the user is asked next time.
    """
    told = acts(testbeds)
    with suppress(OSError):
        if told and not _is_remembered(told):
            _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
            (_folder() / _digest(told)).touch(mode=0o600)


def acts(testbeds: Sequence[Testbed]) -> list[str]:
    """All that they do on this machine or from it, beside frames: a line for each."""
    return [f"{t.name}: {line}" for t in testbeds for line in _acts(t)]


def _acts(testbed: Testbed) -> Iterator[str]:
    for each in testbed.tester_ports:
        match each.config.port:
            case VdevPort(vdev=arguments):
                yield f"{dotted(each.keys)}.port.vdev: {arguments}"
            case MemifPort(memif=path):
                yield f"{dotted(each.keys)}.port.memif: {path}"
    for key, hook in testbed.hooks.each():
        yield f"hooks.{key}: {_command(hook)}"
    community = testbed.snmp.stored.community
    if isinstance(community, Secret):
        yield f"snmp.community: {community} (sent to the gateway)"


def _command(hook: Hook) -> str:
    words, ssh = shlex.join(hook.shown), hook.ssh
    if ssh is None:
        return f"{words} (on this machine)"
    user = f"{ssh.user}@" if ssh.user else ""
    files = "".join(
        f", {key} {path!r}"
        for key in ("identity_file", "known_hosts")
        if (path := getattr(ssh, key))
    )
    return f"{words} (by ssh, port {ssh.port} of {user}{ssh.host}{files})"


def _folder() -> Path:
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state"
    return Path(state) / "dutperf/allowed"


def _digest(told: Sequence[str]) -> str:
    whole = json.dumps([str(Path.cwd()), *told])
    return hashlib.sha256(whole.encode()).hexdigest()


def _is_remembered(told: Sequence[str]) -> bool:
    """Only a folder that nobody else could write to tells."""
    try:
        found = _folder().stat()
        own = found.st_uid == os.geteuid() and not found.st_mode & 0o022
        return own and (_folder() / _digest(told)).exists()
    except (OSError, RuntimeError):  # no home, or no working directory
        return False
