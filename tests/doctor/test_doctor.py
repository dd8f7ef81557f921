"""Machines that are as they should be, and machines that are not: each finding."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from config_samples import make_testbed
from fake_cpus import put_on
from planning import TESTBED, Run, campaign, spec

from dutperf import __version__
from dutperf.config import Testbed
from dutperf.doctor import Check, Machine, cpus_in
from dutperf.doctor.checks import drops_check, examine, softnet_counts, synchrony_check
from dutperf.doctor.cpu_checks import Gaps, gaps_of
from dutperf.doctor.port_checks import Ask, version_check
from dutperf.errors import SetupError
from dutperf.lab.netns import DUT
from dutperf.report.page import cells_of
from dutperf.report.source import read_source
from dutperf.report.trust import environment_rows, findings_beside
from dutperf.results import load_environment
from dutperf.simulation.fake_engine import FakeEngine, step

CPU = "sys/devices/system/cpu"
GOOD = {
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance",
    f"{CPU}/intel_pstate/no_turbo": "1",
    f"{CPU}/cpu0/cpuidle/state1/name": "C1",
    f"{CPU}/cpu0/cpuidle/state1/latency": "2",
    f"{CPU}/cpu0/topology/thread_siblings_list": "0",
    f"{CPU}/isolated": "0,2-3",
    "proc/cpuinfo": "processor : 0\nflags : fpu constant_tsc nonstop_tsc\n",
    "proc/meminfo": "MemAvailable: 16000000 kB\nHugePages_Free: 1024\n"
    "Hugepagesize: 2048 kB\n",
    "proc/stat": "cpu  100 0 100 800 0 0 0 0 0 0\ncpu0 1 2 3\n",
    "proc/net/softnet_stat": "000000ff 00000000 0000000a 0 0\n0000000f 00000002 0 0\n",
    "proc/sys/net/core/netdev_budget": "300",
    "proc/sys/net/core/netdev_max_backlog": "1000",
    "proc/42/cmdline": "/usr/bin/python3\0-m\0dutperf",
}
EMULATED = "model name : QEMU TCG CPU version 2.5+\nflags : fpu\n"
LINK = [{"ifname": "left", "operstate": "UP", "mtu": 1500}]
SETTINGS = {
    "-i": "driver: ixgbe\nversion: 6.1\nfirmware-version: 0x800\n",
    "-k": "generic-receive-offload: off\nlarge-receive-offload: off [fixed]\n",
    "-a": "Pause parameters for left:\nAutonegotiate: off\nRX: off\nTX: off\n",
    "-l": "Channel parameters for left:\nPre-set maximums:\nRX: n/a\nCombined: 63\n"
    "Current hardware settings:\nRX: n/a\nCombined: 1\n",
}


Files = Mapping[str, str | None]


def machine(root: Path, changes: Files | None = None) -> Machine:
    """A good one, but for these files; None: it is not there."""
    for name, text in {**GOOD, **(changes or {})}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is not None:
            path.write_text(text)
    return Machine(root)


def answers(settings: dict[str, str] | None = None, link: object = LINK) -> Ask:
    told = SETTINGS | (settings or {})

    def answer(command: Sequence[str]) -> str | None:
        if "--version" in command:
            return f"dutperf-engine {__version__}, DPDK 22.11.11\n"
        if "ip" in command and "link" in command:
            return None if link is None else json.dumps(link)
        return told.get(command[-2])

    return answer


def quiet(_cpu: int, seconds: float) -> Gaps:
    return Gaps(0, 0, 0, round(seconds * 1e9))


def found(
    root: Path,
    changes: Files | None = None,
    *,
    testbed: Testbed = TESTBED,
    settings: dict[str, str] | None = None,
    link: object = LINK,
) -> dict[str, Check]:
    checks = examine(
        testbed,
        machine=machine(root, changes),
        answer=answers(settings, link),
        spin=quiet,
        offset=lambda _cpus: 400,
        sharing=lambda _testbed, _cpus: Check("shared_cpus", "good", "nobody"),
    )
    names = [check.name for check in checks]
    assert len(set(names)) == len(names)
    return {check.name: check for check in checks}


def test_a_machine_that_is_as_it_should_be_has_no_findings(tmp_path: Path) -> None:
    checks = found(tmp_path)
    assert {check.verdict for check in checks.values()} == {"good"}
    assert not any(check.why or check.cure for check in checks.values())
    assert "firmware 0x800" in checks["port_left_driver"].found


@pytest.mark.parametrize(
    ("name", "verdict", "changes"),
    [
        ("governor", "doubtful", {f"{CPU}/cpu0/cpufreq/scaling_governor": "powersave"}),
        ("turbo", "doubtful", {f"{CPU}/intel_pstate/no_turbo": "0"}),
        ("idle_states", "doubtful", {f"{CPU}/cpu0/cpuidle/state1/latency": "133"}),
        (
            "smt_siblings",
            "doubtful",
            {f"{CPU}/cpu0/topology/thread_siblings_list": "0,8"},
        ),
        ("isolated_cpus", "doubtful", {f"{CPU}/isolated": ""}),
        ("time_stamp_counter", "bad", {"proc/cpuinfo": "flags : fpu nonstop_tsc"}),
        ("time_stamp_counter", "doubtful", {"proc/cpuinfo": "flags : constant_tsc"}),
        ("time_stamp_counter", "doubtful", {"proc/cpuinfo": EMULATED}),
        (
            "huge_pages",
            "doubtful",
            {
                "proc/meminfo": "MemAvailable: 16000000 kB\n"
                "HugePages_Free: 3\nHugepagesize: 2048 kB\n"
            },
        ),
        (
            "free_memory",
            "bad",
            {
                "proc/meminfo": "MemAvailable: 100000 kB\n"
                "HugePages_Free: 1024\nHugepagesize: 2048 kB\n"
            },
        ),
        ("softnet_budget", "doubtful", {"proc/sys/net/core/netdev_budget": "64"}),
        ("input_queue", "doubtful", {"proc/sys/net/core/netdev_max_backlog": "100"}),
        (
            "other_processes",
            "doubtful",
            {"proc/77/cmdline": "/x/dutperf-refdut\0--cpu=1"},
        ),
        ("labs", "doubtful", {f"run/netns/{DUT}": ""}),
    ],
)
def test_each_finding_says_why_it_matters_and_what_to_do(
    tmp_path: Path, name: str, verdict: str, changes: dict[str, str]
) -> None:
    checks = found(tmp_path, changes)
    assert checks[name].verdict == verdict
    assert checks[name].why
    assert checks[name].cure
    assert [c.name for c in checks.values() if c.verdict != "good"] == [name]


@pytest.mark.parametrize("path", GOOD)
def test_what_the_machine_does_not_tell_is_no_finding(
    tmp_path: Path, path: str
) -> None:
    checks = found(tmp_path, {path: None})
    findings = {c.name for c in checks.values() if c.verdict in ("doubtful", "bad")}
    assert findings <= {"isolated_cpus"}


@pytest.mark.parametrize(
    ("name", "verdict", "settings"),
    [
        ("offloads", "doubtful", {"-k": "generic-receive-offload: on\n"}),
        ("flow_control", "doubtful", {"-a": "RX: on\nTX: off\n"}),
        ("flow_control", "unknown", {"-a": ""}),
        ("driver", "unknown", {"-i": ""}),
        ("queues", "good", {}),
        ("queues", "doubtful", {"-l": "RX: 8\nCombined: 8\nRX: n/a\nCombined: 4\n"}),
        ("queues", "doubtful", {"-l": "RX: 1\nCombined: 1\n"}),
        ("queues", "unknown", {"-l": ""}),
    ],
)
def test_findings_on_ports(
    tmp_path: Path, name: str, verdict: str, settings: dict[str, str]
) -> None:
    checks = found(tmp_path, settings=settings)
    assert checks[f"port_left_{name}"].verdict == verdict


@pytest.mark.parametrize(
    ("offset_ns", "verdict"),
    [(0, "good"), (1000, "good"), (1001, "doubtful"), (100_000, "bad")],
)
def test_counters_of_two_cores_may_be_a_microsecond_apart(
    monkeypatch: pytest.MonkeyPatch, offset_ns: int, verdict: str
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    check = synchrony_check([0, 1], lambda _cpus: offset_ns)
    assert check.verdict == verdict
    assert synchrony_check([0], lambda _cpus: offset_ns).verdict == "good"


def test_an_engine_that_refuses_the_cores_is_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_cpus: Sequence[int]) -> int:
        raise SetupError("the counters are 5000 ns apart", "use one worker")

    monkeypatch.setattr("os.geteuid", lambda: 0)
    check = synchrony_check([0, 1], refuse)
    assert (check.verdict, check.cure) == ("bad", "use one worker")
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert synchrony_check([0, 1], refuse).verdict == "unknown"


@pytest.mark.parametrize("changes", [{"cores": [0, 99]}, {"main_core": 99}])
def test_a_cpu_that_is_not_there_is_a_finding(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changes: dict[str, object]
) -> None:
    put_on(monkeypatch, {0}, isolated={2})
    here = machine(tmp_path)
    testbed = TESTBED.model_copy(update={"cores": [0]})
    names = {check.name for check in examine(testbed, seconds=0.001, machine=here)}
    assert "missing_cpus" not in names
    testbed = testbed.model_copy(update=changes)
    checks = {c.name: c for c in examine(testbed, seconds=0.001, machine=here)}
    assert checks["missing_cpus"].verdict == "bad"
    assert "CPU 99 of the testbed" in checks["missing_cpus"].found
    assert checks["missing_cpus"].cure == "choose from 0, 2"
    assert "preemptions_cpu0" in checks
    assert "preemptions_cpu99" not in checks


def test_what_cpus_drop_while_nothing_is_measured_is_a_finding(tmp_path: Path) -> None:
    quiet_machine = machine(tmp_path)
    before = softnet_counts(quiet_machine)
    assert before == (2, 10)
    assert drops_check(quiet_machine, before).verdict == "good"
    stat = "000000ff 00000001 0000000a 0 0\n0000000f 00000009 0000000b 0\n"
    busy = drops_check(machine(tmp_path, {"proc/net/softnet_stat": stat}), before)
    assert (busy.verdict, busy.found) == (
        "doubtful",
        "8 frames, work left for later 11 times",
    )
    gone = machine(tmp_path / "other", {"proc/net/softnet_stat": None})
    assert drops_check(gone, before).verdict == "unknown"


def test_a_link_that_is_down_short_or_missing_is_bad(tmp_path: Path) -> None:
    down = [{"ifname": "left", "operstate": "DOWN", "mtu": 1280}]
    checks = found(tmp_path, link=down)
    assert checks["port_left_link"].verdict == "bad"
    assert checks["port_left_mtu"].verdict == "bad"
    gone = found(tmp_path, link=None)
    assert gone["port_right_link"].verdict == "bad"
    assert "port_right_mtu" not in gone


def nics(address: str = "0000:03:00.0") -> Testbed:
    ports = {"left": {"pci": address}, "right": {"pci": "0000:03:00.1"}}
    sides = {side: {"port": port} for side, port in ports.items()}
    for side, last in (("left", 18), ("right", 19)):
        sides[side]["ipv4"] = {
            "address": f"198.{last}.0.2",
            "gateway": f"198.{last}.0.1",
        }
    return make_testbed(**sides, cores=[0])


def test_a_nic_wants_its_driver_its_node_huge_pages_and_an_iommu(
    tmp_path: Path,
) -> None:
    device = tmp_path / "sys/bus/pci/devices/0000:03:00.0"
    device.mkdir(parents=True)
    drivers = tmp_path / "sys/bus/pci/drivers"
    (drivers / "ixgbe").mkdir(parents=True)
    (drivers / "vfio-pci").mkdir()
    (device / "driver").symlink_to(drivers / "ixgbe")
    (device / "numa_node").write_text("1")
    checks = found(tmp_path, testbed=nics())
    assert checks["port_left_driver"].found == "bound to ixgbe"
    assert checks["port_left_numa"].verdict == "doubtful"
    assert checks["port_right_driver"].verdict == "bad"
    assert checks["iommu"].verdict == "bad"
    (device / "driver").unlink()
    (device / "driver").symlink_to(drivers / "vfio-pci")
    (tmp_path / "sys/devices/system/node/node1/cpu0").mkdir(parents=True)
    (tmp_path / "sys/kernel/iommu_groups/0").mkdir(parents=True)
    cured = found(tmp_path, testbed=nics())
    assert cured["port_left_driver"].verdict == "good"
    assert cured["port_left_numa"].verdict == "good"
    assert cured["iommu"].verdict == "good"


def test_a_nic_that_dpdk_shares_with_the_kernel_stays_with_its_driver(
    tmp_path: Path,
) -> None:
    """No VFIO, so no IOMMU either; one that is not shared still needs both."""
    drivers = tmp_path / "sys/bus/pci/drivers"
    for number, driver in enumerate(("mlx5_core", "mlx5_core")):
        device = tmp_path / f"sys/bus/pci/devices/0000:03:00.{number}"
        device.mkdir(parents=True)
        (drivers / driver).mkdir(parents=True, exist_ok=True)
        (device / "driver").symlink_to(drivers / driver)
    checks = found(tmp_path, testbed=nics())
    assert checks["port_left_driver"].verdict == "good"
    assert checks["port_right_driver"].found.startswith("mlx5_core")
    assert "iommu" not in checks
    (drivers / "ice").mkdir()
    (device / "driver").unlink()
    (device / "driver").symlink_to(drivers / "ice")
    mixed = found(tmp_path, testbed=nics())
    assert mixed["port_right_driver"].verdict == "bad"
    assert mixed["iommu"].verdict == "bad"


@pytest.mark.parametrize(
    ("now", "most", "verdict"),
    [
        (("16.0 GT/s PCIe", "16"), ("16.0 GT/s PCIe", "16"), "good"),
        (("8.0 GT/s PCIe", "16"), ("16.0 GT/s PCIe", "16"), "doubtful"),
        (("16.0 GT/s PCIe", "8"), ("16.0 GT/s PCIe", "16"), "doubtful"),
        (("Unknown", "0"), ("16.0 GT/s PCIe", "16"), "unknown"),
        ((None, None), (None, None), "unknown"),
    ],
)
def test_a_slot_that_is_slower_than_its_nic_is_told(
    tmp_path: Path,
    now: tuple[str | None, str | None],
    most: tuple[str | None, str | None],
    verdict: str,
) -> None:
    device = tmp_path / "sys/bus/pci/devices/0000:03:00.0"
    device.mkdir(parents=True)
    for which, told in (("current", now), ("max", most)):
        for kind, text in zip(("speed", "width"), told, strict=True):
            if text is not None:
                (device / f"{which}_link_{kind}").write_text(f"{text}\n")
    check = found(tmp_path, testbed=nics())["port_left_pcie"]
    assert check.verdict == verdict
    if verdict == "doubtful":
        assert check.found.endswith("the NIC can x16 at 16 GT/s")


@pytest.mark.parametrize(
    ("gaps", "verdict"),
    [
        (Gaps(0, 0, 0, 10**9), "good"),
        (Gaps(3, 999_999, 2_000_000, 10**9), "good"),
        (Gaps(1, 1_000_000, 1_000_000, 10**9), "doubtful"),
        (Gaps(90, 200_000, 10_000_000, 10**9), "doubtful"),
        (Gaps(20, 8_000_000, 100_000_000, 10**9), "bad"),
    ],
)
def test_preemptions_count_by_length_and_by_share(
    tmp_path: Path, gaps: Gaps, verdict: str
) -> None:
    checks = examine(
        TESTBED,
        machine=machine(tmp_path),
        answer=answers(),
        spin=lambda _cpu, _seconds: gaps,
    )
    [told] = [check for check in checks if check.name.startswith("preemptions")]
    assert (told.name, told.verdict) == ("preemptions_cpu0", verdict)


def test_gaps_are_what_a_clock_jumps_over() -> None:
    steps = itertools.accumulate([0, *[1000] * 50, 150_000, *[1000] * 50, 99_999] * 3)
    told = gaps_of(lambda: next(steps), 1_000_000)
    assert (told.count, told.longest_ns, told.sum_ns) == (3, 150_000, 450_000)
    assert told.watched_ns >= 1_000_000


def test_time_that_the_host_took_is_told(tmp_path: Path) -> None:
    here = machine(tmp_path)

    def spin(_cpu: int, _seconds: float) -> Gaps:
        (tmp_path / "proc/stat").write_text("cpu  150 0 100 840 0 0 0 10 0 0\n")
        return Gaps(0, 0, 0, 1)

    checks = examine(TESTBED, machine=here, answer=answers(), spin=spin)
    [stolen] = [check for check in checks if check.name == "steal_time"]
    assert (stolen.verdict, stolen.found) == (
        "doubtful",
        "10.00% of the time of all CPUs",
    )


def test_an_emulated_cpu_is_named(tmp_path: Path) -> None:
    check = found(tmp_path, {"proc/cpuinfo": EMULATED})["time_stamp_counter"]
    assert "QEMU's software emulation (TCG)" in check.found


def test_a_virtual_machine_may_hide_who_shares_its_cores(tmp_path: Path) -> None:
    flags = {"proc/cpuinfo": "flags : hypervisor constant_tsc nonstop_tsc"}
    assert found(tmp_path, flags)["smt_siblings"].verdict == "unknown"


def test_engine_and_package_are_of_one_version() -> None:
    other = version_check(lambda _command: "dutperf-engine 0.0.9", lambda: "engine")
    assert (other.verdict, other.cure) == ("bad", "run 'make setup' again")

    def missing() -> str:
        raise SetupError("the engine is not built", "run 'make setup'")

    assert version_check(find=missing).found == "the engine is not built"


def test_a_run_that_has_begun_is_no_finding_of_its_own(tmp_path: Path) -> None:
    busy = {"proc/77/cmdline": "/x/dutperf-engine\0", f"run/netns/{DUT}": ""}
    checks = examine(
        TESTBED,
        seconds=0,
        before=False,
        machine=machine(tmp_path, busy),
        answer=answers(),
        spin=quiet,
        offset=lambda _cpus: 400,
        sharing=lambda _testbed, _cpus: Check("shared_cpus", "good", "nobody"),
    )
    names = {check.name for check in checks}
    assert not names & {"other_processes", "labs", "versions", "preemptions_cpu0"}
    assert {"governor", "huge_pages", "port_left_mtu"} <= names


def test_what_was_found_is_stored_with_a_run_and_stands_in_its_report(
    tmp_path: Path,
) -> None:
    seen = [
        Check("turbo", "good", "off"),
        Check(
            "isolated_cpus", "doubtful", "CPU 0 not isolated", "it stalls", "isolcpus"
        ),
        Check("idle_states", "doubtful", "133 us to wake up", "they wait", "cstate"),
    ]
    run = Run(tmp_path / "run", FakeEngine(step(500_000)))
    run.around = replace(run.around, examine=lambda _testbed, _offset_ns: seen)
    delays = {"procedure": "pdv", "rate_fps": 1000, "trial_duration_s": 1}
    run(campaign(spec(resolution="50%"), spec(**delays)))
    stored = load_environment(tmp_path / "run")
    assert stored.checks == seen
    rows = dict(environment_rows(stored))
    told = rows["Doubtful: isolated cpus"]
    assert told == "CPU 0 not isolated: it stalls (cure: isolcpus)"
    assert not any("turbo" in name.lower() and ":" in name for name in rows)
    source = read_source(tmp_path / "run")
    rate, delay = (findings_beside(cell, source) for cell in cells_of(source))
    assert rate == ["isolated cpus: CPU 0 not isolated"]
    assert delay == [*rate, "idle states: 133 us to wake up"]


def test_lists_of_cpus_are_read_as_the_kernel_writes_them() -> None:
    assert cpus_in("0-2,5") == {0, 1, 2, 5}
    assert cpus_in("") == set()
