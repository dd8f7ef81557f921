"""What packages are made of fits the rest; they are built by hand (docs/install.md)."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
from document_steps import understand

from dutperf import __version__

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
UNIT = PACKAGING / "dutperf-worker@.service"
LISTS = sorted((ROOT / "requirements").glob("*.txt"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
TO_BUILD = {"cmake", "g++", "libdpdk-dev", "ninja-build", "nlohmann-json3-dev"} | {
    "pkg-config",
    "python3-venv",
}
"""Of ``scripts/packages-run.txt`` what an installed dutperf does not need."""
OF_LABS = {"bind9", "bird2", "frr", "openvswitch-switch-dpdk", "snmpd", "unbound"}


def listed(name: str) -> set[str]:
    lines = (ROOT / f"scripts/packages-{name}.txt").read_text().splitlines()
    return {line for line in lines if not line.startswith("#")}


def field(name: str) -> set[str]:
    text = re.sub(r"^#.*\n", "", (PACKAGING / "debian/control").read_text(), flags=re.M)
    found = re.findall(rf"^{name}: (.*(?:\n .*)*)", text, re.M)[-1]
    return {word.strip() for word in found.split(",")}


def environment() -> dict[str, str]:
    lines = (PACKAGING / "worker.env").read_text().splitlines()
    told = (line.partition("=") for line in lines if line and line[0] != "#")
    return {name: value for name, _, value in told}


def test_the_deb_asks_for_what_setup_installs() -> None:
    assert listed("run") >= TO_BUILD
    assert listed("run") - TO_BUILD <= field("Depends") | field("Recommends")
    assert listed("test") >= OF_LABS
    assert field("Suggests") == OF_LABS | {"openssh-client"}


def test_the_image_and_pip_get_what_the_deb_recommends() -> None:
    assert field("Recommends") <= set(
        (PACKAGING / "Containerfile").read_text().split()
    ), "apt-get installs none of the recommended there"
    needed = {name for name in field("Depends") if "$" not in name}
    page = set((ROOT / "docs/install.md").read_text().split())
    assert needed <= page
    assert listed("run") - {"python3-venv", "tayga"} <= page


def test_the_deb_has_all_programs_of_the_project() -> None:
    rules = (PACKAGING / "debian/rules").read_text()
    [programs] = re.findall(r"^PROGRAMS := (.+)", rules, re.M)
    assert set(programs.split()) == set(PROJECT["project"]["scripts"])


def test_packages_are_built_by_the_backend_that_the_project_names() -> None:
    [backend] = PROJECT["build-system"]["requires"]
    assert f"{backend} \\" in (ROOT / "requirements/dist.txt").read_text().splitlines()


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.name)
def test_each_python_package_has_its_sums_and_no_address(path: Path) -> None:
    one = r"^[a-z0-9.-]+==[^\s;]+( \\\n    --hash=sha256:[0-9a-f]{64})+\n"
    others = re.sub(one, "", path.read_text(), flags=re.M)
    assert re.fullmatch(r"# .*; hashes: make locks\.\n(-r many\.txt\n)?", others)


@pytest.mark.parametrize(
    "file", ["Makefile", "scripts/build-dist", "docs/developing.md"]
)
def test_no_list_of_packages_is_installed_without_its_sums(file: str) -> None:
    text = (ROOT / file).read_text()
    assert "--require-hashes" in text
    for line in text.splitlines():
        if "-r requirements/" in line or re.search(
            r"(PIP\)|pip) .*requirements/", line
        ):
            assert "--require-hashes" in line or "$(LOCKED)" in line


def test_an_image_begins_with_one_that_stays_the_same() -> None:
    command = [str(ROOT / "scripts/build-image"), "debian:12"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 2
    assert "BASE=debian:12@sha256:" in told.stderr
    assert "ARG BASE\n" in (PACKAGING / "Containerfile").read_text()


def test_the_page_names_files_of_this_version() -> None:
    page = (ROOT / "docs/install.md").read_text()
    assert set(re.findall(r"\d+\.\d+\.\d+", page)) == {__version__}


def test_a_worker_understands_the_example_of_its_service() -> None:
    told = environment()
    command = re.findall(r"ExecStart=/usr/bin/(.+)", UNIT.read_text())[0]
    for name, value in told.items():
        command = re.sub(rf"\$\{{?{name}\}}?", value, command)
    assert "$" not in command
    understand(shlex.split(command))


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd is missing")
def test_the_service_is_one_that_systemd_accepts(tmp_path: Path) -> None:
    """Its program is not installed here, so it is given another one."""
    unit = tmp_path / "dutperf-worker@left.service"
    unit.write_text(UNIT.read_text().replace("/usr/bin/dutperf", "/bin/true"))
    command = ["systemd-analyze", "verify", "--man=no", str(unit)]
    done = subprocess.run(command, capture_output=True, check=False, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_clean_debian_is_an_archive_whatever_its_name_is(tmp_path: Path) -> None:
    """Unless it is told, mmdebstrap goes by the name, and makes a directory of some."""
    program = tmp_path / "bin/mmdebstrap"
    program.parent.mkdir()
    program.write_text(
        '#!/bin/sh\ncase "$*" in *--format=tar*) kind=touch ;; *) kind=mkdir ;; esac\n'
        'for each; do case $each in "$HOME"/*) $kind "$each" ;; esac; done\n'
    )
    program.chmod(0o755)
    made = tmp_path / "made/debian.tar"
    command = [str(ROOT / "scripts/clean-debian"), str(made)]
    path = f"{program.parent}:{os.environ['PATH']}"
    subprocess.run(command, env={"PATH": path, "HOME": str(tmp_path)}, check=True)
    assert made.is_file()
    assert [each.name for each in made.parent.iterdir()] == [made.name]


def test_shellcheck_has_nothing_to_say() -> None:
    names = ("build-dist", "build-deb", "build-image", "clean-debian", "try-packages")
    subprocess.run(["shellcheck", *(ROOT / "scripts" / n for n in names)], check=True)
