"""How the device's CPUs shared a trial, by what its hooks printed."""

from __future__ import annotations

import re

import pytest

from dutperf.results.queue_loads import counted_queues, queue_loads
from dutperf.results.trial_record import NOT_KEPT, HookMoment, HookRun

_ZEROS = " 00000000" * 9
SOFTNET = (
    f"{{:08x}} 00000000 0000000a{_ZEROS} 00000000 00000000 00000000\n"
    f"{{:08x}} 00000002 00000000{_ZEROS} 00000003 00000000 00000000\n"
)
OLD_SOFTNET = """\
00000010 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
000000ff 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000
"""
PMD = """\
pmd thread numa_id 0 core_id 2:
  packets received: 1200
  packet recirculations: 0
pmd thread numa_id 1 core_id 11:
  packets received: 34
main thread:
  packets received: 5
"""
ACCOUNT = """\
trial id 7, 1.000 s
forward foreground: seen 100, left 90, dropped_by_queue 10
forward, frames served by each receive queue: 40, 30, 20, 0
reverse, frames served by each receive queue: 1, 2
"""
ETHTOOL = """\
NIC statistics:
     rx_packets: 999
     tx_queue_0_packets: 5
     {}: 12
     {}: 34
     rx_queue_0_bytes: 77
"""


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (SOFTNET.format(256, 17), {"CPU 0": 256, "CPU 3": 17}),
        (OLD_SOFTNET, {"CPU 0": 16, "CPU 1": 255}),
        (PMD, {"CPU 2": 1200, "CPU 11": 34}),
        (
            ACCOUNT,
            {f"forward queue {n}": f for n, f in enumerate((40, 30, 20, 0))}
            | {"reverse queue 0": 1, "reverse queue 1": 2},
        ),
        ("0 packets\n12345678 abcdefgh\n", {}),
        ("", {}),
    ],
)
def test_each_text_has_its_counts(text: str, found: dict[str, int]) -> None:
    assert counted_queues(text).counts == found


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("rx_queue_0_packets", "rx_queue_10_packets"),
        ("rx0_packets", "rx10_packets"),
        ("rx-0.packets", "rx-10.packets"),
        ("rx_0_pkts", "rx_10_pkts"),
    ],
)
def test_drivers_name_their_queues_in_several_ways(first: str, second: str) -> None:
    text = ETHTOOL.format(first, second)
    assert counted_queues(text).counts == {"queue 0": 12, "queue 10": 34}


def hooks(*runs: tuple[HookMoment, str, str]) -> list[HookRun]:
    return [
        HookRun(
            moment=moment,
            command=[command],
            host=None,
            attempts=1,
            exit_code=0,
            ended="",
            output=output,
            duration_s=0.0,
        )
        for moment, command, output in runs
    ]


def taken(*runs: tuple[HookMoment, str, str]) -> dict[str, int | None]:
    loads, unread = queue_loads(hooks(*runs))
    assert unread == []
    return {each.queue: each.frames for each in loads}


def between(before: str, after: str) -> tuple[dict[str, int | None], list[str]]:
    """Interrupts, and what could not be read."""
    loads, unread = queue_loads(
        hooks(("before_trial", "irq", before), ("after_trial", "irq", after))
    )
    assert all(each.frames is None for each in loads)
    return {each.queue: each.interrupts for each in loads}, unread


def test_a_counter_that_goes_on_counts_by_how_much_it_rose() -> None:
    found = taken(
        ("before_trial", "softnet", SOFTNET.format(100, 17)),
        ("after_trial", "softnet", SOFTNET.format(1100, 17)),
        ("after_trial", "account", ACCOUNT),
    )
    assert found["CPU 0"] == 1000
    assert "CPU 3" not in found
    assert found["forward queue 1"] == 30
    assert found["forward queue 3"] == 0


def test_a_counter_of_32_bits_begins_again() -> None:
    found = taken(
        ("before_trial", "softnet", SOFTNET.format(2**32 - 100, 17)),
        ("after_trial", "softnet", SOFTNET.format(900, 17)),
    )
    assert found == {"CPU 0": 1000}


def test_a_counter_that_was_read_once_tells_nothing_unless_it_is_the_trials() -> None:
    assert queue_loads(hooks(("after_trial", "softnet", OLD_SOFTNET))) == (
        [],
        ["softnet: was not read before the trial, too (before_trial)"],
    )
    assert taken(("after_trial", "pmd", PMD)) == {"CPU 2": 1200, "CPU 11": 34}
    assert taken(("before_trial", "pmd", PMD), ("after_trial", "pmd", PMD)) == {}
    assert taken(("before_trial", "pmd", "cleared"), ("after_trial", "pmd", PMD))


# /proc/interrupts: which lines are a network interface's, and on which CPU.


def interrupts(cpus: list[int], *lines: tuple[list[int], str], blanks: int = 11) -> str:
    """As the kernel prints them, with lines of others around."""
    texts = ["     " + "".join(f"{f'CPU{cpu}':<{blanks}}" for cpu in cpus)]
    zeros = [0 for _ in cpus]
    others = (
        ([*zeros[1:], 9], "IR-IO-APIC    9-fasteoi   acpi"),
        (zeros, "IR-PCI-MSIX-0000:5e:00.0    3-edge      nvme0q3"),
        (zeros, "PCI-MSI 65537-edge      virtio1-req.0"),
        (zeros, "PCI-MSI 65538-edge      virtio3-rx"),
        (zeros, "IR-PCI-MSIX-0000:3b:00.0    0-edge      ice-0000:3b:00.0:misc"),
        (zeros, "IR-PCI-MSI-0000:5f:00.0    1-edge      megasas0-msix1"),
        (zeros, "IR-PCI-MSIX-0000:af:00.0    0-edge      mlx5_async0@pci:0000:af:00.0"),
    )
    for number, (counts, words) in enumerate((*others, *lines), 24):
        texts.append(f"{number:4}: " + "".join(f"{c:>10} " for c in counts) + words)
    every = "".join(f"{77:>10} " for _ in cpus)
    texts += [f" NMI: {every}  Non-maskable interrupts", " ERR:          0", ""]
    return "\n".join(texts)


@pytest.mark.parametrize(
    "name",
    [
        "eth1-TxRx-0",
        "ice-ens1f0-TxRx-11",
        "iavf-ens1f0v0-TxRx-3",
        "hns3-0000:7d:00.0-TxRx-0",
        "lan0-rx-1",
        "eth0-Tx-Rx-7",
        "eth0-rxtx-0",
        "mlx5_comp12@pci:0000:af:00.0",
        "enp175s0f0np0-5",
        "virtio2-input.0",
        "virtio12-output.15",
        "eth0-fp-3",
        "vif3.0-q0-rx",
        "eth0-q0-tx",
        "enp2s0",
    ],
)
def test_lines_of_interfaces_are_known_by_their_names(name: str) -> None:
    line = f"IR-PCI-MSIX-0000:3b:00.0    1-edge      {name}"
    text = interrupts([0, 1], ([5, 60], line))
    assert counted_queues(text).counts == {
        f"{name} on CPU 0": 5,
        f"{name} on CPU 1": 60,
    }


def test_a_line_that_is_shared_is_the_interfaces_too() -> None:
    text = interrupts(
        [0], ([5], "IO-APIC   19-fasteoi   ehci_hcd:usb1, eth0, i801_smbus")
    )
    assert counted_queues(text).counts == {"eth0 on CPU 0": 5}


def test_interrupts_are_those_of_each_line_on_each_cpu_that_is_online() -> None:
    def text(first: int, second: int) -> str:
        return interrupts(
            [0, 2, 3],
            (
                [0, first, 0],
                "IR-PCI-MSIX-0000:3b:00.0    1-edge      ice-ens1f0-TxRx-0",
            ),
            (
                [7, 0, second],
                "IR-PCI-MSIX-0000:3b:00.0    2-edge      ice-ens1f0-TxRx-1",
            ),
        )

    assert between(text(1_000, 2**32 - 10), text(51_000, 90)) == (
        {"ice-ens1f0-TxRx-0 on CPU 2": 50_000, "ice-ens1f0-TxRx-1 on CPU 3": 100},
        [],
    )


def test_with_many_cpus_the_blanks_must_go() -> None:
    cpus = list(range(128))
    lines = [
        (
            [100 if cpu == queue else 0 for cpu in cpus],
            f"IR-PCI-MSIX-0000:af:00.0 {queue}-edge mlx5_comp{queue}@pci:0000:af:00.0",
        )
        for queue in range(64)
    ]
    whole = interrupts(cpus, *lines)
    squeezed = re.sub(" +", " ", whole)
    assert len(squeezed) < 64 * 1024 < len(whole)
    assert sum(counted_queues(squeezed).counts.values()) == 64 * 100
    cut = f"{whole[: 64 * 1024]}\n... and 9,999 {NOT_KEPT}\n"
    assert counted_queues(cut).counts == {}
    assert between(cut, cut)[1][0].startswith("irq: is too long to be kept whole")


RX = "PCI-MSI 49153-edge      virtio2-input.0"
TX = "PCI-MSI 49154-edge      virtio2-output.0"
BEFORE = interrupts([0, 1], ([500, 3], RX), ([70, 3], TX))


@pytest.mark.parametrize(
    ("after", "why"),
    [
        (
            interrupts([0, 1], ([4, 3], RX), ([80, 3], TX)),
            "virtio2-input.0 on CPU 0 was set back in the trial, from 500 to 4",
        ),
        (
            interrupts([0, 1], ([900, 3], RX)),
            "virtio2-output.0 on CPU 0 was not there any more after the trial",
        ),
        (
            interrupts([0], ([900], RX), ([80], TX)),
            "virtio2-input.0 on CPU 1 was not there any more after the trial",
        ),
        (
            interrupts([0, 1, 2], ([900, 3, 40], RX), ([80, 3, 0], TX)),
            "virtio2-input.0 on CPU 2 was not there before the trial",
        ),
        (interrupts([0, 1]), "no line is known as that of a network interface"),
    ],
)
def test_what_is_not_known_whole_is_not_told_but_why(after: str, why: str) -> None:
    assert between(BEFORE, after) == ({}, [f"irq: {why}"])


def test_a_cpu_that_came_up_and_did_nothing_is_no_gap() -> None:
    after = interrupts([0, 1, 2], ([900, 3, 0], RX), ([70, 3, 0], TX))
    assert between(BEFORE, after) == ({"virtio2-input.0 on CPU 0": 400}, [])
