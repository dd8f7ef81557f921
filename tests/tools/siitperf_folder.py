"""A folder with a siitperf.conf, and what is run there: programs, for a lab."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from siitperf_files import write

from dutperf import lab
from dutperf.config.campaign import LabKeys
from dutperf.lab.refdut_socket import Behaviour

SCRIPTS = Path(__file__).parents[2] / "examples" / "siitperf"

COUNTS_ONLY = Path(__file__).with_name("counts_only.sh")
PROGRAMS = Path(sys.executable).parent

_ATTEMPTS = 10


class Folder:
    """A siitperf.conf with these keys, for the lab that is up."""

    def __init__(self, path: Path, lab_name: str, keys: dict[str, str]) -> None:
        self._path = path
        self._lab = lab_name
        path.mkdir(exist_ok=True)
        write(path, without_macs(keys))

    def script(self, name: str, *arguments: object, **variables: object) -> str:
        """What a script of ours prints; it must succeed."""
        words = ("sh", str(SCRIPTS / name), *map(str, arguments))
        done = self.command(*words, **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.strip()

    def trial(self, *words: str) -> dict[str, str]:
        """The figures of a command, once the tester could do its part."""
        for _ in range(_ATTEMPTS):
            done = self.command(*words)
            if "invalid" not in done.stdout:
                break
        assert done.returncode == 0, done.stdout + done.stderr
        lines = done.stdout.splitlines()
        return dict(line.split(": ", 1) for line in lines if ": " in line)

    def command(
        self, *words: str, **variables: object
    ) -> subprocess.CompletedProcess[str]:
        """Ends however it ends."""
        own = {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "DUTPERF_LAB": self._lab,
            **{name: str(value) for name, value in variables.items()},
        }
        return subprocess.run(
            words,
            cwd=self._path,
            env=os.environ | own,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )


def without_macs(keys: dict[str, str]) -> dict[str, str]:
    """As lab devices have other ones: they are asked."""
    return {key: value for key, value in keys.items() if not key.startswith("MAC")}


@contextmanager
def kept(name: str, behaviour: Behaviour | None = None) -> Iterator[None]:
    """A lab is up from command to command."""
    assert lab.running() == [], "a lab is up: take it down before these tests"
    try:
        lab.up(LabKeys(name=name, behaviour=behaviour))
        yield
    finally:
        lab.down(all_=True)
