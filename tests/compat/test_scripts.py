"""The scripts of examples/siitperf on programs that print what they are told."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from siitperf_folder import COUNTS_ONLY, SCRIPTS

FIGURES = """\
Forward frames sent: 1000
Forward frames received: {}
Reverse frames sent: 1000
Reverse frames received: 1000
Info: Test finished.
"""
LOSSLESS, LOSSY = FIGURES.format(1000), FIGURES.format(990)
INVALID = "Info: this trial is invalid: the sender stood still\n"
FULL = "Preliminary frames sent: 9\nFailed to fill state table: 8 of 9\n"
PROGRAM = """\
#!/bin/sh
# Prints the next of the answers, the last one again and again.
echo "$@" >> calls
number=$(wc -l < calls)
[ -e "answer-$number" ] || number=$(cat last)
cat "answer-$number"
"""


class Bench:
    """A folder in which siitperf-tp prints these, one after the other."""

    def __init__(self, path: Path, *answers: str) -> None:
        self._path = path
        program = path / "siitperf-tp"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        for number, answer in enumerate(answers, 1):
            (path / f"answer-{number}").write_text(answer)
        (path / "last").write_text(str(len(answers)))

    def run(self, name: str, *words: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", str(SCRIPTS / name), *map(str, words)],
            cwd=self._path,
            env=os.environ | {"PATH": f"{self._path}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=False,
        )

    def printed(self, name: str, *words: int) -> str:
        done = self.run(name, *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    @property
    def calls(self) -> list[str]:
        return (self._path / "calls").read_text().splitlines()


def test_an_invalid_trial_is_repeated_and_not_for_ever(tmp_path: Path) -> None:
    bench = Bench(tmp_path, INVALID, INVALID + FULL, LOSSLESS)
    assert bench.printed("throughput.sh", 100, 50) == "50"
    assert len(bench.calls) == 3
    (tmp_path / "calls").unlink()
    done = Bench(tmp_path, INVALID, INVALID, INVALID).run("throughput.sh", 100, 50)
    assert (done.returncode, done.stdout) == (0, "0\n")
    assert "invalid in 10 attempts: siitperf-tp 84 50" in done.stderr
    assert len(bench.calls) == 10
    done = bench.run("frame-loss.sh", 50)
    assert (done.returncode, done.stdout) == (1, "")


@pytest.mark.parametrize("answer", ["Error: no ports\n", "Input Error: x\n", ""])
def test_an_error_ends_a_script_and_so_does_a_killed_trial(
    tmp_path: Path, answer: str
) -> None:
    done = Bench(tmp_path, answer).run("throughput.sh", 100, 1)
    assert (done.returncode, done.stdout) == (9, "")
    assert done.stderr == answer


def test_frame_loss_ends_after_two_rates_without_a_loss(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LOSSY, LOSSLESS, LOSSY, LOSSLESS)
    found = bench.printed("frame-loss.sh", 10, 20, 30, 40, 50, 60)
    assert found.splitlines() == [
        "60;1.0000;0.0000",
        "50;0.0000;0.0000",
        "40;1.0000;0.0000",
        "30;0.0000;0.0000",
        "20;0.0000;0.0000",
    ]


def test_a_table_that_is_full_is_no_error(tmp_path: Path) -> None:
    bench = Bench(tmp_path, LOSSLESS, FULL, LOSSLESS)
    assert bench.printed("capacity.sh", 100, 1000, 50, 1000) == "150"
    # Back at half the rate, in whole seconds, each connection at least once.
    assert bench.calls == [
        f"84 {count} 1 2000 1 1 {count} {count} 1000 2000 {2001 + count}"
        for count in (100, 200, 150)
    ]
    assert bench.printed("capacity.sh", 100, 300, 50, 1000) == "300 or more"


def test_shellcheck_has_nothing_to_say() -> None:
    paths = [*sorted(SCRIPTS.glob("*.sh")), COUNTS_ONLY]
    subprocess.run(["shellcheck", "-x", *paths], check=True)
