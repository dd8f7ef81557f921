"""Who signed a run: with the ssh key that one has, by ``ssh-keygen -Y``.

What is signed are the sums, and they are of everything else. Whose key it was is known
from a file of allowed signers alone, in ssh's own format.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dutperf.errors import InputError, SetupError
from dutperf.visible import visible

NAMESPACE = "dutperf-evidence"
LONGEST_BYTES = 1 << 16
"""Of a signature: ten times those of the longest keys."""
_TIMEOUT_S = 60
_GOOD = re.compile(r'Good "dutperf-evidence" signature with (\S+) key (SHA256:\S+)')


class BadSignatureError(Exception):
    """It is none of these sums, or of nobody who may sign; said in words."""


class Signer(NamedTuple):
    """Whose key it was; ``identity``: None if nobody said whose keys are known."""

    key: str
    identity: str | None


def sign(sums: bytes, key: Path) -> bytes:
    """The signature of ``sums``; ``key``: a private one, or one of ssh-agent's (.pub).

    Its passphrase is asked for at the terminal, if there is one.

    Raises:
        InputError: the key cannot sign.
        SetupError: ssh-keygen is missing, or does not end.
    """
    if key.exists() and not key.is_file():  # ssh-keygen would wait for a FIFO
        raise InputError(f"{key} is not a plain file", "give --sign the key's own file")
    with tempfile.TemporaryDirectory(prefix="dutperf-sign-") as folder:
        file = Path(folder) / "sums"
        file.write_bytes(sums)
        of = ["-f", str(key.absolute()), "-n", NAMESPACE, str(file)]
        done = _ssh_keygen("sign", *of, data=None if os.isatty(0) else b"")
        made = file.with_name("sums.sig")
        if done.returncode or not made.exists():
            raise InputError(
                f"{key} cannot sign: {_why(done)}",
                "give --sign the file of your ssh key, or the .pub file of one that "
                "ssh-agent has; a passphrase can be typed at a terminal alone",
            )
        return made.read_bytes()


def signer(sums: bytes, signature: bytes, allowed: Path | None) -> Signer:
    """Whose ``signature`` of ``sums`` it is.

    Args:
        sums: what should be signed.
        signature: as it came; whoever made it.
        allowed: a file of allowed signers; None: nobody knows whose key it is.

    Raises:
        BadSignatureError: it is of something else, or of none of the allowed signers.
        SetupError: ssh-keygen is missing, or does not end.
    """
    if len(signature) > LONGEST_BYTES:
        raise BadSignatureError(f"{len(signature):,} bytes are no signature")
    with _stored(signature) as file:
        of = ["-n", NAMESPACE, "-s", file]
        done = _ssh_keygen("check-novalidate", *of, data=sums)
        found = _GOOD.fullmatch(_text(done.stdout).strip())
        if done.returncode or found is None:
            raise BadSignatureError(f"it is no signature of these sums: {_why(done)}")
        key = f"{found[2]} ({found[1]})"
        if allowed is None:
            return Signer(key, None)
        known = ["-f", str(allowed.absolute())]
        named = _ssh_keygen("find-principals", "-s", file, *known)
        for name in _text(named.stdout).splitlines() if not named.returncode else ():
            done = _ssh_keygen("verify", "-I", name, *known, *of, data=sums)
            if done.returncode == 0:
                return Signer(key, visible(name))
            named = done
        raise BadSignatureError(
            f"{key} signed it, who is none of {allowed}: {_why(named)}"
        )


@contextmanager
def _stored(signature: bytes) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="dutperf-verify-") as folder:
        file = Path(folder) / "sums.sig"
        file.write_bytes(signature)
        yield str(file)


def _ssh_keygen(
    action: str, *arguments: str, data: bytes | None = b""
) -> subprocess.CompletedProcess[bytes]:
    """``data``: its input; None: the terminal, which may be asked, and waited for."""
    alone = data is not None
    try:
        return subprocess.run(
            ["ssh-keygen", "-Y", action, *arguments],
            input=data,
            capture_output=True,
            check=False,
            env={**os.environ, "LC_ALL": "C", "SSH_ASKPASS_REQUIRE": "never"},
            start_new_session=alone,  # else it asks at the terminal all the same
            timeout=_TIMEOUT_S if alone else None,
        )
    except FileNotFoundError as error:
        raise SetupError(
            "signatures need ssh-keygen, which is not installed",
            "install the Debian package openssh-client",
        ) from error
    except subprocess.TimeoutExpired as error:
        raise SetupError(
            f"ssh-keygen did not end within {_TIMEOUT_S} s",
            "see whether ssh-agent, or the token that holds the key, answers",
        ) from error


def _why(done: subprocess.CompletedProcess[bytes]) -> str:
    """The last thing that it complained about."""
    lines = _text(done.stderr).strip().splitlines()
    return visible(lines[-1]) if lines else f"exit code {done.returncode}"


def _text(output: bytes) -> str:
    return output.decode(errors="replace")
