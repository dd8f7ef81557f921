"""Samples of perf, and the shares that they are grouped to."""

from __future__ import annotations

import pytest

from dutperf.bench.path_profile import (
    DUT_RULES,
    WORKER_RULES,
    CpuProfile,
    PerfProfiler,
    StackSample,
    cpu_profile,
    parse_script,
)

ENGINE = "/usr/lib/dutperf/dutperf-engine"
PMD = "/usr/lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_net_af_xdp.so.23.0"
LIBC = "/usr/lib/x86_64-linux-gnu/libc.so.6"

SCRIPT = f"""\
rte-worker-1  8834 [000]\x20
    ffffffff821f3a6a __pi_memcpy ([kernel.kallsyms])
    ffffffff81e3ca64 skb_store_bits ([kernel.kallsyms])
    ffffffff82195ad4 __xsk_generic_xmit ([kernel.kallsyms])
    ffffffff8219610e xsk_sendmsg ([kernel.kallsyms])
    ffffffff821ecc51 do_syscall_64 ([kernel.kallsyms])

rte-worker-1  8834 [000]\x20
                5175 [unknown] ({PMD})
                   0 [unknown] ([unknown])

rte-worker-1  8834 [000]\x20
               12345 dutperf::vary::lanes::store(unsigned char*, int) ({ENGINE})

rte-worker-1  8834 [000]\x20
               858d1 __GI___pthread_disable_asynccancel ({LIBC})

memfd:a b     1 [001]\x20
    ffffffff81000000 ip_forward ([kernel.kallsyms])
    ffffffff81e66003 process_backlog ([kernel.kallsyms])
    ffffffff81e66c3b net_rx_action ([kernel.kallsyms])

swapper     0 [001]\x20
    ffffffff821f236b pv_native_safe_halt ([kernel.kallsyms])

"""


def stack(task: str, cpu: int, *kernel: str) -> list[str]:
    frames = [f"\tffffffff81000000 {name} ([kernel.kallsyms])" for name in kernel]
    return [f"{task}  22 [{cpu:03}] ", *frames, ""]


def samples(*stacks: list[str]) -> list[StackSample]:
    return list(parse_script([line for lines in stacks for line in lines]))


def shares(profile: CpuProfile | None) -> dict[str, float]:
    assert profile is not None
    assert sum(s.percent for s in profile.shares) == pytest.approx(100, abs=0.5)
    return {s.name: s.percent for s in profile.shares if s.percent}


def test_every_sample_of_a_script_is_read_with_its_stack() -> None:
    found = list(parse_script(SCRIPT.splitlines()))
    assert [(s.task, s.cpu, len(s.stack)) for s in found] == [
        ("rte-worker-1", 0, 5),
        ("rte-worker-1", 0, 2),
        ("rte-worker-1", 0, 1),
        ("rte-worker-1", 0, 1),
        ("memfd:a b", 1, 3),
        ("swapper", 1, 1),
    ]
    assert found[2].stack[0].symbol == (
        "dutperf::vary::lanes::store(unsigned char*, int)"
    )


def test_a_workers_time_is_the_engines_the_drivers_and_the_kernels() -> None:
    profile = cpu_profile(parse_script(SCRIPT.splitlines()), 0, WORKER_RULES)
    assert shares(profile) == {
        "send, receive, vary": 25,
        "DPDK's drivers and pools": 25,
        "C library": 25,
        "copying frames": 25,
    }
    assert profile is not None
    assert profile.kernel_percent == 25
    assert profile.top_kernel == [("__pi_memcpy", 25)]
    assert ("librte_net_af_xdp.so.23.0", 25) in profile.top_engine


def test_work_in_a_system_call_counts_as_what_it_is_for() -> None:
    call = ("do_syscall_64", "entry_SYSCALL_64_after_hwframe")
    found = samples(
        stack("rte-worker-1", 0, "kfree", "veth_xmit", "packet_sendmsg", *call),
        stack("rte-worker-1", 0, "__alloc_skb", "packet_sendmsg", *call),
        stack("rte-worker-1", 0, "fdget", *call),
        stack("rte-worker-1", 0, "ip_rcv", "handle_softirqs", "xsk_sendmsg", *call),
    )
    assert shares(cpu_profile(found, 0, WORKER_RULES)) == {
        "wire to the DUT (veth)": 25,
        "socket, sending": 25,
        "entering and leaving system calls": 25,
        "soft interrupts (of the DUT, too)": 25,
    }


def test_the_devices_cpu_tells_forwarding_from_the_testers_sockets() -> None:
    softirq = ("net_rx_action", "handle_softirqs")
    found = samples(
        stack("ksoftirqd/1", 1, "memcpy", "tpacket_rcv", "ip_output", *softirq),
        stack("ksoftirqd/1", 1, "ip_forward", *softirq),
        stack("kworker/1:0", 1, "process_backlog", *softirq),
        stack("cc1plus", 1, "exc_page_fault"),
    )
    profile = cpu_profile(found, 1, DUT_RULES)
    assert shares(profile) == {
        "the tester's sockets": 25,
        "forwarding": 25,
        "steering and queues": 25,
        "other processes": 25,
    }
    assert profile is not None
    assert (profile.ksoftirqd_percent, profile.busy_percent) == (50, 100)


def test_the_idle_loop_is_no_work_of_the_kernel() -> None:
    found = list(parse_script(SCRIPT.splitlines()))
    profile = cpu_profile(found, 1, DUT_RULES)
    assert shares(profile) == {"forwarding": 50, "idle": 50}
    assert profile is not None
    assert (profile.kernel_percent, profile.busy_percent) == (50, 50)


def test_a_cpu_without_samples_has_no_profile() -> None:
    assert cpu_profile(parse_script(SCRIPT.splitlines()), 7, WORKER_RULES) is None


def test_a_machine_without_perf_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    profiler = PerfProfiler([0])
    profiler.start()
    assert profiler.finish() == []
    assert "perf is not installed" in profiler.trouble
    profiler.close()


def test_a_profiler_that_was_never_started_has_no_samples() -> None:
    profiler = PerfProfiler([0])
    assert profiler.finish() == []
    assert "before it was sampled" in profiler.trouble
    profiler.close()
