"""The environment record, from a made-up machine and from this one."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_samples import hello, ports

from dutperf.results import (
    Environment,
    ResultsDirectory,
    collect_environment,
    load_environment,
)
from dutperf.results.environment import KernelDriver, driver_of, interface_driver

MACHINE = {
    "etc/os-release": 'NAME="Debian"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n',
    "proc/cpuinfo": (
        "processor\t: 0\nmodel name\t: Some CPU @ 2.70GHz\nflags\t\t: fpu hypervisor\n"
        "processor\t: 1\nmodel name\t: Other CPU\nflags\t\t: fpu\n"
    ),
    "proc/meminfo": (
        "MemTotal:        8192000 kB\nHugePages_Total:     512\n"
        "Hugepagesize:       2048 kB\n"
    ),
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq": "2700000\n",
    "sys/devices/system/cpu/cpu1/online": "1\n",
    "sys/devices/system/cpu/cpufreq/boost": "0\n",
    "sys/devices/system/node/node0/cpulist": "0-1\n",
    "sys/devices/system/node/node1/cpulist": "\n",
}


def no_driver(_device: str, _namespace: str | None) -> KernelDriver:
    return KernelDriver(None, None)


def make_machine(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    root = make_machine(tmp_path, MACHINE)
    return collect_environment(
        hello(), ports(), [0], 1, 42, root=root, link_drivers=no_driver
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("os", "Debian GNU/Linux 12 (bookworm)"),
        ("cpu_model", "Some CPU @ 2.70GHz"),
        ("cpus_total", 2),
        ("cores_used", [0]),
        ("main_core", 1),
        ("governor", {0: "performance", 1: "unknown"}),
        ("frequency_mhz", {0: 2700.0}),
        ("turbo", False),
        ("numa_nodes", 2),
        ("memory_mb", 8000),
        ("hugepages", "512 x 2 MiB"),
        ("hypervisor", True),
        ("seed", 42),
        ("tsc_hz", 2_700_000_000),
        ("dpdk_version", "DPDK 22.11.11"),
    ],
)
def test_machine_is_described(
    environment: Environment, field: str, value: object
) -> None:
    assert getattr(environment, field) == value


def test_a_machine_that_tells_nothing_is_unknown_not_guessed(tmp_path: Path) -> None:
    found = collect_environment(
        hello(), ports(), [0], 1, 1, root=tmp_path, link_drivers=no_driver
    )
    assert found.governor == {0: "unknown", 1: "unknown"}
    assert (found.turbo, found.hypervisor, found.hugepages) == (None, None, "unknown")


@pytest.mark.parametrize(("no_turbo", "turbo"), [("1", False), ("0", True)])
def test_intel_pstate_says_it_the_other_way_round(
    tmp_path: Path, no_turbo: str, turbo: bool
) -> None:
    root = make_machine(
        tmp_path, {"sys/devices/system/cpu/intel_pstate/no_turbo": no_turbo}
    )
    found = collect_environment(
        hello(), ports(), [0], 1, 1, root=root, link_drivers=no_driver
    )
    assert found.turbo is turbo


def test_main_core_defaults_to_what_the_engine_took(tmp_path: Path) -> None:
    found = collect_environment(
        hello(), ports(), [0], None, 1, root=tmp_path, link_drivers=no_driver
    )
    assert found.main_core == hello().main_cpu


def test_kernel_drivers_are_asked_for_interfaces_only(tmp_path: Path) -> None:
    asked: list[tuple[str, str | None]] = []

    def veth(device: str, namespace: str | None) -> KernelDriver:
        asked.append((device, namespace))
        return KernelDriver("veth", "6.1")

    found = collect_environment(
        hello(),
        ports(),
        [0],
        1,
        1,
        namespace="tester",
        root=tmp_path,
        link_drivers=veth,
    )
    assert asked == [("tl", "tester")]
    assert [port.kernel_driver for port in found.ports] == ["veth", None]


def test_environment_comes_back_as_it_was_stored(
    tmp_path: Path, environment: Environment
) -> None:
    directory = ResultsDirectory.create(tmp_path / "run", "demo")
    directory.write_environment(environment)
    assert load_environment(directory.path) == environment


def test_the_hosts_name_is_not_stored(environment: Environment) -> None:
    assert "host" not in " ".join(environment.model_dump())


def test_this_machine_can_be_described() -> None:
    found = collect_environment(hello(), ports(), [0], None, 1)
    assert found.cpus_total >= 1
    assert found.memory_mb > 0


def test_kind_of_a_virtual_link_is_its_driver(tmp_path: Path) -> None:
    link = {"ifname": "tl", "linkinfo": {"info_kind": "veth"}}
    assert driver_of(link, tmp_path).name == "veth"


def test_driver_of_a_real_link_is_that_of_its_device(tmp_path: Path) -> None:
    device = tmp_path / "bus/pci/devices/0000:03:00.0"
    device.mkdir(parents=True)
    (tmp_path / "bus/pci/drivers/ixgbe").mkdir(parents=True)
    (device / "driver").symlink_to("../../drivers/ixgbe")
    make_machine(tmp_path, {"module/ixgbe/version": "5.1\n"})
    link = {"parentbus": "pci", "parentdev": "0000:03:00.0"}
    assert driver_of(link, tmp_path) == KernelDriver("ixgbe", "5.1")


@pytest.mark.parametrize("link", [{}, {"parentbus": "pci", "parentdev": "none"}])
def test_a_link_without_driver_has_none(tmp_path: Path, link: dict[str, str]) -> None:
    assert driver_of(link, tmp_path) == KernelDriver(None, None)


def test_an_interface_that_does_not_exist_has_no_driver() -> None:
    assert interface_driver("nosuchdevice0", None) == KernelDriver(None, None)
