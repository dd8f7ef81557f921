"""The playbook: it checks clean against this machine, and changes nothing twice."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PLAYBOOK = Path(__file__).parents[2] / "examples" / "ansible" / "tester.yml"
CHOSEN = {
    "dutperf_hugepages": 512,
    "dutperf_isolated_cpus": "2-3,5",
    "dutperf_nics": ["0000:ff:1f.6"],
}


def play(home: Path, *options: str, **given: object) -> tuple[int, dict[str, int]]:
    """Run it against localhost; the exit code, and what became of the tasks."""
    environment = os.environ | {
        "ANSIBLE_HOME": str(home),
        "ANSIBLE_LOCALHOST_WARNING": "False",
        "LC_ALL": "C.UTF-8",
    }
    given["ansible_python_interpreter"] = sys.executable
    words = ["-i", "localhost,", "-c", "local", "-e", json.dumps(given), *options]
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", *words, str(PLAYBOOK)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    recap = done.stdout.partition("PLAY RECAP")[2]
    stats = {name: int(count) for name, count in re.findall(r"(\w+)=(\d+)", recap)}
    assert stats, done.stdout + done.stderr
    return done.returncode, stats


def test_it_checks_clean_against_this_machine(tmp_path: Path) -> None:
    before = sorted(Path("/etc").glob("**/*dutperf*"))
    code, told = play(tmp_path, "--check")
    assert (code, told["failed"], told["unreachable"]) == (0, 0, 0)
    code, told = play(tmp_path, "--check", "--diff", **CHOSEN)
    assert (code, told["failed"], told["unreachable"]) == (0, 0, 0)
    assert sorted(Path("/etc").glob("**/*dutperf*")) == before


def test_the_second_time_nothing_is_changed(tmp_path: Path) -> None:
    root = tmp_path / "image"
    first = play(tmp_path, dutperf_root=str(root), **CHOSEN)
    assert first[0] == 0
    assert first[1]["changed"] == 4
    files = {
        str(path.relative_to(root)): path.read_text()
        for path in root.rglob("*")
        if path.is_file()
    }
    assert files == {
        "etc/sysctl.d/80-dutperf.conf": "vm.nr_hugepages = 512\n",
        "etc/modules-load.d/dutperf.conf": "vfio-pci\n",
        "etc/default/grub.d/dutperf.cfg": (
            'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX isolcpus=2-3,5 nohz_full=2-3,5 '
            'rcu_nocbs=2-3,5 intel_iommu=on iommu=pt"\n'
        ),
    }
    again = play(tmp_path, dutperf_root=str(root), **CHOSEN)
    assert again[0] == 0
    assert again[1]["changed"] == 0


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("dutperf_hugepages", "many"),
        ("dutperf_isolated_cpus", "2-3; reboot"),
        ("dutperf_nics", ["eth1"]),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_written(
    tmp_path: Path, key: str, value: object
) -> None:
    root = tmp_path / "image"
    code, told = play(tmp_path, **{**CHOSEN, key: value, "dutperf_root": str(root)})
    assert code == 2
    assert told["failed"] == 1
    assert not root.exists()
