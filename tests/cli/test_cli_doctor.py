"""``dutperf doctor``: a line for each check, and one object for programs."""

from __future__ import annotations

import io
import json

from typer.testing import CliRunner

from dutperf.cli.app import whole
from dutperf.cli.console import PatientConsole
from dutperf.cli.lab_commands import show_checks
from dutperf.doctor import Check


def test_what_is_not_good_has_its_reason_and_cure_below() -> None:
    text = io.StringIO()
    checks = [
        Check("turbo", "good", "off"),
        Check("huge_pages", "doubtful", "0 [MiB] free", "it is slower", "echo 256"),
    ]
    show_checks(PatientConsole(file=text, width=60), checks)
    lines = text.getvalue().splitlines()
    assert lines[0].split() == ["good", "turbo", "off"]
    assert lines[1].endswith("huge pages  0 [MiB] free")
    assert [line.strip() for line in lines[2:4]] == ["it is slower", "cure: echo 256"]
    assert lines[-1] == "2 checks: 1 good, 1 doubtful; nothing was changed"


def test_programs_get_one_object() -> None:
    done = CliRunner().invoke(whole(), ["doctor", "--seconds", "0", "--json"])
    told = json.loads(done.stdout)
    assert told["schema_version"] == 1
    names = [check["name"] for check in told["checks"]]
    assert {"versions", "huge_pages", "time_stamp_counter"} <= set(names)
    assert not any(name.startswith("preemptions") for name in names)
    assert set(told["checks"][0]) == {"name", "verdict", "found", "why", "cure"}
    bad = any(check["verdict"] == "bad" for check in told["checks"])
    assert done.exit_code == int(bad)
