"""The commands from file to lines, on the engine without packets."""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import sys
import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from fake_cpus import put_on
from siitperf_files import NAT44, ROUTER, text_of, write

from dutperf.compat.command_line import Command
from dutperf.compat.commands import run
from dutperf.compat.conf import NAME, read_conf
from dutperf.compat.conversion import open_ports_of, with_cores
from dutperf.config.testbed import Testbed
from dutperf.errors import EngineError, InputError, SetupError
from dutperf.run.engine_session import EngineStarter, Notify
from dutperf.simulation.fake_engine import DUT_MAC, FakeEngine
from dutperf.simulation.simulated_devices import lossy, perfect
from dutperf.simulation.simulated_gateway import SimulatedNat

TRIAL = "84 1000 1 500 1 1"
PHASE1 = " 4000 4000 1000 500 4500"
TESTBED = """\
name: ports
left:
  port: {ring: true}
  ipv4: {address: 198.18.0.2, gateway: 198.18.0.1}
right:
  port: {ring: true}
  ipv4: {address: 198.19.0.2, gateway: 198.19.0.1}
"""


class Session:
    """One folder with a file, and what the commands in it print."""

    def __init__(self, folder: Path, keys: dict[str, str]) -> None:
        self.path = write(folder, keys)
        self.environment = {"DUTPERF_TESTBED": str(folder / "testbed.yaml")}
        (folder / "testbed.yaml").write_text(TESTBED)
        self.lines: list[str] = []

    def run(
        self, engine: FakeEngine, line: str = TRIAL, command: Command = "tp"
    ) -> int:
        def prepare(_testbed: Testbed, _notify: Notify) -> EngineStarter:
            def start(_log: Path) -> AbstractContextManager[FakeEngine]:
                return contextlib.nullcontext(engine)

            return start

        self.lines = []
        return run(
            command,
            line.split(),
            self.environment,
            self.path,
            self.lines.append,
            prepare,
        )

    def value(self, start: str) -> str:
        """What stands behind ``start`` in the one line that begins with it."""
        (line,) = [line for line in self.lines if line.startswith(start)]
        return line.removeprefix(start)

    def has(self, text: str) -> bool:
        return any(text in line for line in self.lines)


@pytest.fixture
def router(tmp_path: Path) -> Session:
    return Session(tmp_path, ROUTER)


def _gateway(entries: int) -> FakeEngine:
    """A gateway with a table of so many entries."""
    return FakeEngine(perfect(), nat=SimulatedNat(table_size=entries))


def test_a_trial_prints_what_scripts_read(router: Session) -> None:
    assert router.run(FakeEngine(perfect())) == 0
    assert router.value("Forward frames sent: ") == "1000"
    assert router.value("Forward frames received: ") == "1000"
    assert router.value("Reverse frames sent: ") == "1000"
    assert router.value("Reverse frames received: ") == "1000"
    assert router.lines[-1] == "Info: Test finished."
    assert not router.has("Error:")
    assert not router.has("invalid")


@pytest.mark.parametrize(
    ("mix", "name"), [("2 2", "foreground"), ("2 0", "background")]
)
def test_the_mixes_of_siitperfs_own_scripts_are_measured(
    router: Session, mix: str, name: str
) -> None:
    engine = FakeEngine(perfect())
    assert router.run(engine, f"84 1000 1 500 {mix}") == 0
    assert router.value("Forward frames received: ") == "1000"
    (trial,) = engine.trials
    assert [[s.name for s in d.streams] for d in trial.directions] == [[name], [name]]


def test_what_is_ignored_of_a_command_line_is_a_notice(
    router: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    assert router.run(FakeEngine(perfect()), f"{TRIAL}{PHASE1}") == 0
    assert "notice: arguments ignored" in capsys.readouterr().err
    assert not router.has("ignored")


def test_losses_of_the_device_are_figures_and_no_error(router: Session) -> None:
    assert router.run(FakeEngine(lossy(100_000))) == 0
    assert router.value("Forward frames sent: ") == "1000"
    assert 800 < int(router.value("Forward frames received: ")) < 1000
    assert not router.has("Error:")
    assert not router.has("invalid")


def test_a_lost_tag_has_the_largest_delay_of_all(router: Session) -> None:
    assert router.run(FakeEngine(lossy(100_000)), f"{TRIAL} 0 500", "lat") == 0
    assert router.value("Forward WCL: ") == "1500.000000"
    assert float(router.value("Forward TL: ")) < 100


def test_a_tester_that_cannot_tell_prints_only_what_was_received(
    router: Session,
) -> None:
    """Who does not look for "invalid" takes a missing count for a total loss."""
    engine = FakeEngine(perfect(), troubles={1: "receiver_overflow"})
    assert router.run(engine) == 1
    assert sum("invalid" in line for line in router.lines) == 1
    assert not router.has("frames sent")
    assert router.value("Forward frames received: ") == "1000"
    assert router.value("Reverse frames received: ") == "1000"
    assert router.lines.index("Forward frames received: 1000") > next(
        i for i, line in enumerate(router.lines) if "invalid" in line
    )
    assert not router.has("Error:")


@pytest.mark.parametrize(
    ("keys", "line", "name", "intended"),
    [
        (ROUTER, TRIAL, "Forward", 1000),
        (
            NAT44 | {"Responder-tuples": "0"},
            f"{TRIAL} 4000 1 1000 500 4500",
            "Preliminary",
            4000,
        ),
    ],
    ids=["stateless", "phase 1"],
)
def test_strict_0_calls_a_sender_that_gave_up_invalid(
    tmp_path: Path, keys: dict[str, str], line: str, name: str, intended: int
) -> None:
    session = Session(tmp_path, keys)
    session.environment["SIITPERF_STRICT"] = "0"
    engine = FakeEngine(perfect(), tester_limit_fps=500)
    assert session.run(engine, line) == 1
    sent = intended // 20  # at half of the rate, for a tenth of the time
    assert session.value(f"{name} sender gave up after ") == (
        f"{sent} of {intended} frames, the trial is invalid."
    )
    assert session.value(f"{name} frames received: ") == str(sent)
    assert not session.has("frames sent")
    assert len(engine.trials) == 1


def test_strict_0_counts_as_siitperf_does(router: Session) -> None:
    router.environment["SIITPERF_STRICT"] = "0"
    engine = FakeEngine(perfect(), troubles={1: "receiver_overflow"})
    assert router.run(engine) == 0
    assert router.value("Forward frames sent: ") == "1000"


def test_strict_must_be_0_or_1(router: Session) -> None:
    router.environment["SIITPERF_STRICT"] = "no"
    assert router.run(FakeEngine(perfect())) == 2
    assert router.lines == ["Input Error: SIITPERF_STRICT must be 0 or 1, not 'no'"]


def test_latency_and_variation_are_in_milliseconds(router: Session) -> None:
    assert router.run(FakeEngine(perfect()), f"{TRIAL} 0 100", "lat") == 0
    typical, worst = (router.value(f"Forward {name}: ") for name in ("TL", "WCL"))
    assert 0 < float(typical) <= float(worst) < 100
    assert len(typical.partition(".")[2]) == 6
    assert router.run(FakeEngine(perfect()), f"{TRIAL} 0", "pdv") == 0
    least = float(router.value("Info: Forward Dmin: "))
    high = float(router.value("Info: Forward D99_9th_perc: "))
    assert float(router.value("Forward PDV: ")) == pytest.approx(high - least, abs=1e-6)


def test_a_frame_timeout_gives_losses_and_no_variation(router: Session) -> None:
    assert router.run(FakeEngine(perfect()), f"{TRIAL} 100", "pdv") == 0
    assert router.value("Info: Forward frames completely missing: ") == "0"
    assert not router.has("PDV")


def test_a_stateful_trial_tells_phase_1_first(tmp_path: Path) -> None:
    session = Session(tmp_path, NAT44)
    assert session.run(_gateway(10_000), TRIAL + PHASE1) == 0
    assert session.value("Preliminary frames sent: ") == "4000"
    assert session.value("Preliminary frames received: ") == "4000"
    assert session.value("Reverse frames received: ") == "1000"


def test_phase_2_may_have_the_responders_frames_alone(tmp_path: Path) -> None:
    """Paper 002, 6.3; and RFC 9693 4.6 finds so that no connection is missing."""
    session = Session(tmp_path, NAT44 | {"Forward": "0"})
    assert session.run(_gateway(10_000), TRIAL + PHASE1) == 0
    assert session.value("Preliminary frames received: ") == "4000"
    assert session.value("Reverse frames received: ") == "1000"
    assert not session.has("Forward frames")


def test_phase_1_may_be_alone(tmp_path: Path) -> None:
    session = Session(tmp_path, NAT44 | {"Forward": "0", "Reverse": "0"})
    engine = _gateway(10_000)
    assert session.run(engine, TRIAL + PHASE1) == 0
    assert session.value("Preliminary frames received: ") == "4000"
    assert session.lines[-1] == "Info: Test finished."
    assert len(engine.trials) == 1
    assert session.run(_gateway(3_000), TRIAL + PHASE1) == 1


def test_what_a_file_means_otherwise_is_a_notice(
    router: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    with router.path.open("a") as file:
        file.write("Reverse 1\nReverse 0 # only forward\n")
    engine = FakeEngine(perfect())
    assert router.run(engine) == 0
    assert [d.name for d in engine.trials[0].directions] == ["forward"]
    told = f"notice: {router.path}:12: Reverse was in line 11, too: this one is used\n"
    assert capsys.readouterr().err == told


def test_a_table_that_is_not_filled_ends_the_command(tmp_path: Path) -> None:
    session = Session(tmp_path, NAT44)
    engine = _gateway(3_000)
    assert session.run(engine, TRIAL + PHASE1) == 1
    assert session.value("Failed to fill state table: ") == (
        "3000 of 4000 entries are filled"
    )
    assert session.value("Preliminary frames received: ") == "3000"
    assert not session.has("Error:")
    assert len(engine.trials) == 1


def test_each_command_has_frames_of_its_own_and_its_seed_can_be_repeated(
    router: Session,
) -> None:
    engine = FakeEngine(perfect())
    for _ in range(3):
        router.run(engine)
    seed = int(router.value("Info: random values are drawn with SIITPERF_SEED=")[:-1])
    assert len({trial.seed for trial in engine.trials}) == 3
    assert len({trial.trial_id for trial in engine.trials}) > 1
    router.environment["SIITPERF_SEED"] = str(seed)
    router.run(engine)
    assert engine.trials[-1].seed == seed
    for wrong in ("-1", "9" * 19 + "9", "9" * 5000, "\u0661", ""):
        router.environment["SIITPERF_SEED"] = wrong
        assert router.run(engine) == 2
        assert router.has("Input Error: SIITPERF_SEED must be")


def test_who_has_a_mac_address_in_the_file_need_not_answer(tmp_path: Path) -> None:
    session = Session(tmp_path, ROUTER)
    silent = FakeEngine(perfect(), silent={"198.18.0.1", "198.19.0.1"})
    assert session.run(silent) == 0
    keys = {key: value for key, value in ROUTER.items() if key != "MAC-R-DUT"}
    session = Session(tmp_path, keys)
    assert session.run(silent) == 2
    (line,) = session.lines
    assert line.startswith("Input Error: ")
    assert "MAC-R-DUT is missing, and 198.19.0.1 on the right does not answer" in line


def test_a_mac_address_that_is_not_the_devices_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session = Session(tmp_path, ROUTER)
    assert session.run(FakeEngine(perfect())) == 0
    assert capsys.readouterr().err == ""
    session = Session(tmp_path, ROUTER | {"MAC-R-DUT": "02:00:00:00:00:99"})
    assert session.run(FakeEngine(perfect())) == 0
    told = capsys.readouterr().err
    assert f"{NAME}:10: MAC-R-DUT is 02:00:00:00:00:99, and the device on" in told
    assert f"the right has {DUT_MAC}: " in told
    assert "remove the key" in told


def test_a_testbeds_next_hop_mac_stands_in_for_the_files(tmp_path: Path) -> None:
    keys = {key: value for key, value in ROUTER.items() if "DUT" not in key}
    session = Session(tmp_path, keys)
    text = TESTBED.replace(", gateway: 198.18.0.1", "")
    text = text.replace("left:\n", f"left:\n  next_hop_mac: {DUT_MAC}\n")
    (tmp_path / "testbed.yaml").write_text(text)
    engine = FakeEngine(perfect())
    assert session.run(engine) == 0
    macs = [d.streams[0].dst_mac for d in engine.trials[0].directions]
    assert macs == [DUT_MAC, None]


def test_errors_are_lines_and_end_the_command(
    router: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    dead = FakeEngine(perfect(), troubles={1: EngineError("it died", "look there")})
    assert router.run(dead) == 3
    assert router.lines[-1] == "Error: it died"
    assert "notice: look there" in capsys.readouterr().err
    odd = FakeEngine(perfect(), troubles={1: ZeroDivisionError("hm")})
    assert router.run(odd) == 3
    assert (
        router.lines[-1] == "Error: this is a defect in dutperf: ZeroDivisionError: hm"
    )
    assert router.run(dead, "84 1000") == 2
    assert router.lines[-1].startswith("Input Error: siitperf-tp with Stateful 0")
    router.path.write_text("bogus 1\n")
    assert router.run(dead) == 2
    assert router.lines == [f"Input Error: {router.path}:1: there is no key 'bogus'"]


def test_the_engines_log_stays_where_an_error_sends_somebody(
    router: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    router.run(FakeEngine(perfect()))
    assert list(tmp_path.glob("siitperf-*")) == []
    router.run(FakeEngine(perfect(), troubles={1: SetupError("no device")}))
    assert list(tmp_path.glob("siitperf-*")) == []
    router.run(FakeEngine(perfect(), troubles={1: EngineError("it died")}))
    assert len(list(tmp_path.glob("siitperf-*"))) == 1


def test_what_a_killed_command_left_is_removed_and_nothing_else(
    router: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    router.run(FakeEngine(perfect(), troubles={1: EngineError("it died")}))
    (kept,) = tmp_path.glob("siitperf-*")
    killed, running, link = (tmp_path / f"siitperf-{n}" for n in ("k", "r", "l"))
    killed.mkdir()
    running.mkdir()
    (killed / "engine.log").write_text("...")
    (tmp_path / "elsewhere").mkdir()
    link.symlink_to(tmp_path / "elsewhere")
    long_ago = time.time() - 3600
    for folder in (kept, killed, running):
        os.utime(folder, (long_ago, long_ago))
    descriptor = os.open(running, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    router.run(FakeEngine(perfect()))
    os.close(descriptor)
    assert set(tmp_path.glob("siitperf-*")) == {kept, running, link}
    assert (tmp_path / "elsewhere").is_dir()


def test_nothing_starts_if_the_file_and_the_line_do_not_fit(tmp_path: Path) -> None:
    session = Session(tmp_path, NAT44)
    engine = FakeEngine(perfect())
    assert session.run(engine, TRIAL + " 5000 5000 1000 500 5500") == 2
    assert engine.trials == []


def test_ports_0_and_1_are_the_first_two_nics_for_dpdk(tmp_path: Path) -> None:
    def nic(address: str, driver: str, kind: str = "0x020000") -> None:
        device = tmp_path / "devices" / address
        device.mkdir(parents=True)
        (device / "class").write_text(kind)
        (tmp_path / driver).mkdir(exist_ok=True)
        (device / "driver").symlink_to(tmp_path / driver)

    nic("0000:03:00.1", "vfio-pci")
    nic("0000:01:00.0", "ixgbe")
    nic("0000:00:01.0", "vfio-pci", "0x030000")
    with pytest.raises(SetupError, match="there are 1 Ethernet ports for DPDK"):
        open_ports_of({}, tmp_path / "devices")
    nic("0000:03:00.0", "igb_uio")
    nic("0000:81:00.0", "vfio-pci")
    with open_ports_of({}, tmp_path / "devices") as testbed:
        ports = [side.port.model_dump()["pci"] for side in testbed.sides.values()]
    assert ports == ["0000:03:00.0", "0000:03:00.1"]
    with pytest.raises(InputError, match="are both set"):
        open_ports_of({"DUTPERF_TESTBED": "x", "DUTPERF_LAB": "y"})


def test_cores_of_the_file_are_used_where_the_machine_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpus = dict(
        zip(
            ("CPU-L-Send", "CPU-R-Recv", "CPU-R-Send", "CPU-L-Recv"),
            ("5", "7", "9", "11"),
            strict=True,
        )
    )
    session = Session(tmp_path, ROUTER | cpus)
    conf = read_conf(session.path)
    told: list[str] = []
    put_on(monkeypatch, range(8), isolated=range(8, 16))
    with open_ports_of(session.environment) as testbed:
        assert with_cores(testbed, conf, told.append).cores == [5, 7, 9, 11]
        assert told == []
        put_on(monkeypatch, {0, 1})
        assert with_cores(testbed, conf, told.append).cores == [0]
        assert "CPUs 5, 7, 9, 11" in told[0]
        assert "CPUs 0 do the work" in told[0]


def test_the_programs_are_installed_and_end_with_their_codes(tmp_path: Path) -> None:
    program = Path(sys.executable).with_name("siitperf-tp")
    found = subprocess.run([program], cwd=tmp_path, capture_output=True, check=False)
    assert found.returncode == 2
    assert found.stdout.decode() == (
        f"Input Error: {NAME}: cannot be read: No such file or directory\n"
    )
    (tmp_path / NAME).write_text(text_of(ROUTER))
    found = subprocess.run(
        [program, "84\033[2J"], cwd=tmp_path, capture_output=True, check=False
    )
    assert b"takes 6 arguments, and 1 are given" in found.stdout
    assert b"\033" not in found.stdout + found.stderr
