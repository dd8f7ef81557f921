"""Power meters as programs and files: what they say, and what is none."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from meters import with_meter
from planning import TESTBED

from dutperf.config.testbed import PowerMeter
from dutperf.errors import SetupError
from dutperf.results.power_results import Metered, PowerReading
from dutperf.run import metering
from dutperf.run.campaign_run import acts
from dutperf.run.metering import Value, open_meter


def meter(**keys: object) -> PowerMeter:
    return PowerMeter.model_validate({"accuracy_percent": 1, "every_s": 0.1} | keys)


def printing(text: str, **keys: object) -> PowerMeter:
    return meter(command=["printf", text.replace("\n", "\\n") or " "], **keys)


def waiting(told: PowerMeter) -> Metered:
    """Read until three answers are there."""
    opened = open_meter(told)
    seen: list[PowerReading] = []
    read = opened._reading
    done = threading.Event()

    def counted(offset_ns: int) -> PowerReading:
        seen.append(read(offset_ns))
        if len(seen) == 3:
            done.set()
        return seen[-1]

    opened._reading = counted  # type: ignore[method-assign]
    ended, metered = opened.beside("trial", lambda: done.wait(30))
    assert ended
    return metered


@pytest.mark.parametrize(
    ("text", "watts", "stamp"),
    [
        ("45", 45, None),
        (" 45.25 W\n", 45.25, None),
        ("45watts 12:01:02", 45, "12:01:02"),
        ("4.5e1 1700000000", 45, "1700000000"),
        ('"45"', 45, None),
    ],
)
def test_a_command_prints_watts(text: str, watts: float, stamp: str | None) -> None:
    found = waiting(printing(text)).readings[0]
    assert (found.watts, found.joules, found.stamp) == (watts, None, stamp)
    assert found.asked_ns <= found.answered_ns
    assert not found.failed


@pytest.mark.parametrize(
    "text",
    ["", "n/a", "0", "-5", "nan", "inf", "1e999", "45\n46", "45 W at 12 o'clock", "W"],
)
def test_what_prints_no_watts_is_refused_before_the_first_frame(text: str) -> None:
    with pytest.raises(SetupError, match="no watts above 0"):
        open_meter(printing(text))


def test_a_meter_that_cannot_be_asked_is_refused() -> None:
    for keys, why in (
        ({"command": ["/no/such/meter"]}, "could not be started"),
        ({"command": ["false"]}, "exit code 1"),
        ({"command": ["sleep", "60"], "timeout_s": 0.1}, "did not end within 0.1 s"),
    ):
        with pytest.raises(SetupError, match=why):
            open_meter(meter(**keys))


def test_one_that_dies_later_has_failed_readings(tmp_path: Path) -> None:
    alive = tmp_path / "alive"
    alive.write_text("45")
    opened = open_meter(meter(command=["cat", str(alive)]))
    alive.unlink()
    done = threading.Event()
    read = opened._read

    def then_end() -> Value:
        try:
            return read()
        finally:
            done.set()

    opened._read = then_end
    _, metered = opened.beside("trial", lambda: done.wait(30))
    found = metered.readings[0]
    assert (found.watts, found.joules) == (None, None)
    assert "exit code 1" in found.failed


def test_readings_are_in_order_and_end_with_what_they_are_beside() -> None:
    metered = waiting(printing("45"))
    asked = [each.asked_ns for each in metered.readings]
    assert len(asked) >= 3
    assert asked == sorted(asked)
    assert metered.begin_ns is not None
    assert metered.begin_ns <= asked[0]
    assert not metered.clock_set


def test_an_error_of_what_is_measured_ends_the_reading() -> None:
    def fails() -> None:
        raise SetupError("the engine died")

    with pytest.raises(SetupError, match="engine died"):
        open_meter(printing("45")).beside("trial", fails)


def rapl(folder: Path, name: str, domain: str = "intel-rapl:0") -> Path:
    own = folder / domain
    own.mkdir(parents=True)
    (own / "name").write_text(f"{name}\n")
    (own / "max_energy_range_uj").write_text("262143328850\n")
    (own / "energy_uj").write_text("262143000000\n")
    return own / "energy_uj"


def test_rapl_wraps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metering, "POWERCAP", tmp_path)
    counter = rapl(tmp_path, "package-0")
    opened = open_meter(meter(rapl="package-0"))
    joules = []
    for now_uj in (262_143_300_000, 71_150, 571_150, 571_150):
        counter.write_text(f"{now_uj}\n")
        joules.append(opened._read().joules)
    assert joules == pytest.approx([0.3, 0.4, 0.9, 0.9])
    counter.write_text("none\n")
    with pytest.raises(SetupError, match="no number"):
        opened._read()


def test_rapl_domains_are_told_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metering, "POWERCAP", tmp_path)
    with pytest.raises(SetupError, match="no domain") as none:
        open_meter(meter(rapl="package-0"))
    assert "shows none" in none.value.hint
    rapl(tmp_path, "package-0")
    rapl(tmp_path, "package-0", "intel-rapl-mmio:0")
    with pytest.raises(SetupError, match="several domains") as several:
        open_meter(meter(rapl="package-0"))
    assert "intel-rapl-mmio:0" in several.value.hint
    open_meter(meter(rapl="intel-rapl:0"))
    (tmp_path / "intel-rapl:0" / "energy_uj").unlink()
    with pytest.raises(SetupError, match="cannot be read"):
        open_meter(meter(rapl="intel-rapl:0"))


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand-ins of snmpget and ipmitool that print what they were told, and watts."""
    for name, text in (
        ("snmpget", "425"),
        ("ipmitool", "    Instantaneous power reading:         220 Watts\n"),
    ):
        program = tmp_path / name
        program.write_text(
            f"#!{sys.executable}\nimport sys\n"
            f"open({str(tmp_path / 'told')!r}, 'w').write(' '.join(sys.argv[1:]))\n"
            f"print({text!r})\n"
        )
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("POWER_SECRET", "hush")
    return tmp_path / "told"


SNMP = {
    "snmp": {
        "host": "pdu1",
        "oid": "1.3.6.1.4.1.318.1.1.26",
        "scale": 0.1,
        "community": {"env": "POWER_SECRET"},
    }
}
IPMI = {"ipmi": {"host": "bmc", "user": "me", "password": {"env": "POWER_SECRET"}}}


@pytest.mark.parametrize(
    ("keys", "watts", "words"),
    [
        (SNMP, 42.5, "-v2c -c hush -OqvU pdu1 1.3.6.1.4.1.318.1.1.26"),
        (IPMI, 220, "-I lanplus -H bmc -U me -P hush dcmi power reading"),
    ],
)
def test_the_ordinary_programs_are_called(
    keys: dict[str, Any], watts: float, words: str, programs: Path
) -> None:
    told = meter(**keys)
    assert open_meter(told)._read().watts == pytest.approx(watts)
    assert programs.read_text() == words
    assert "hush" not in told.words


def test_a_run_says_what_it_will_execute() -> None:
    (line,) = acts([with_meter(TESTBED, command=[], **IPMI)])
    assert "power: ipmitool" in line
    assert "{env: POWER_SECRET}" in line


def test_secrets_are_looked_up_before_the_first_frame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("POWER_SECRET", raising=False)
    testbed = with_meter(TESTBED, command=[], **SNMP)
    with pytest.raises(SetupError, match="POWER_SECRET"):
        testbed.check_secrets(queries=False)
