from __future__ import annotations

import pytest

from dutperf.lab.processes import CpuPlan, cpus_of_mask, plan_cpus, rps_mask


@pytest.mark.parametrize(
    ("usable", "plan"),
    [
        ({3}, CpuPlan(worker=3, dut=None, main=3)),
        ({0, 1}, CpuPlan(worker=0, dut=1, main=1)),
        ({2, 5, 7}, CpuPlan(worker=2, dut=7, main=5, receive=5)),
        (range(64), CpuPlan(worker=0, dut=63, main=1, receive=62)),
    ],
)
def test_worker_and_dut_get_cpus_of_their_own_where_possible(
    usable: set[int], plan: CpuPlan
) -> None:
    assert plan_cpus(usable) == plan


def test_only_cpus_that_the_process_may_use_are_planned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {4, 6})
    assert plan_cpus() == CpuPlan(worker=4, dut=6, main=6)


@pytest.mark.parametrize("cpu", [0, 1, 31, 32, 63, 64, 255])
def test_an_rps_mask_has_exactly_the_bit_of_its_cpu(cpu: int) -> None:
    words = rps_mask(cpu).split(",")
    assert all(len(word) == 8 for word in words)
    assert int("".join(words), 16) == 1 << cpu


@pytest.mark.parametrize("cpu", [0, 1, 31, 32, 63, 64, 255])
def test_a_mask_is_read_as_it_is_written(cpu: int) -> None:
    assert cpus_of_mask(rps_mask(cpu)) == [cpu]
    assert cpus_of_mask("00000001,00000006") == [1, 2, 32]
    assert cpus_of_mask("0") == []


def test_the_description_says_when_tester_and_dut_share_a_cpu() -> None:
    assert "tester's own CPU 3" in plan_cpus({3}).describe()
    assert "steered to CPU 1" in plan_cpus({0, 1}).describe()
