"""How the device's CPUs shared a trial, by what its hooks printed."""

from __future__ import annotations

import pytest

from dutperf.results.device_words import counted_queues, queue_loads
from dutperf.results.trial_record import HookMoment, HookRun

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
    assert counted_queues(text) == found


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
    assert counted_queues(text) == {"queue 0": 12, "queue 10": 34}


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


def test_a_counter_that_goes_on_counts_by_how_much_it_rose() -> None:
    found = queue_loads(
        hooks(
            ("before_trial", "softnet", SOFTNET.format(100, 17)),
            ("after_trial", "softnet", SOFTNET.format(1100, 17)),
            ("after_trial", "account", ACCOUNT),
        )
    )
    assert found["CPU 0"] == 1000
    assert "CPU 3" not in found
    assert found["forward queue 1"] == 30


def test_a_counter_that_was_read_once_tells_nothing_unless_it_is_the_trials() -> None:
    assert queue_loads(hooks(("after_trial", "softnet", OLD_SOFTNET))) == {}
    assert queue_loads(hooks(("after_trial", "pmd", PMD))) == {
        "CPU 2": 1200,
        "CPU 11": 34,
    }
    both = hooks(("before_trial", "pmd", PMD), ("after_trial", "pmd", PMD))
    assert queue_loads(both) == {}
