"""``scripts/install-packages``: on a system that the lists are not of."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[2] / "scripts/install-packages"


@pytest.mark.parametrize(
    ("release", "told"),
    [
        ('ID=ubuntu\nVERSION_ID="24.04"\n', "this is ubuntu 24.04"),
        ('ID=debian\nVERSION_ID="11"\n', "this is debian 11"),
        (None, "this is an unknown system"),
    ],
)
def test_another_system_is_refused_before_anything_is_installed(
    tmp_path: Path, release: str | None, told: str
) -> None:
    system, programs = tmp_path / "os-release", tmp_path / "bin"
    if release is not None:
        system.write_text(release)
    programs.mkdir()
    for name, text in {"apt-get": "touch installed", "dpkg-query": "exit 1"}.items():
        (programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (programs / name).chmod(0o755)
    wanted = tmp_path / "packages.txt"
    wanted.write_text("# some\nno-such-package\n")
    done = subprocess.run(
        [str(PROGRAM), str(wanted)],
        env=os.environ
        | {"OS_RELEASE": str(system), "PATH": f"{programs}:{os.defpath}"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    error, hint = done.stderr.splitlines()
    assert done.returncode == 3
    assert told in error
    assert "Debian 12 and 13" in error
    assert "no-such-package" in hint
    assert not (tmp_path / "installed").exists()
