"""Which CPU does what: the tester's worker and the DUT must not share one.

A veth device runs the receiver's work on the sender's CPU. Receive packet steering
(RPS) at the DUT's interfaces moves forwarding to a CPU of its own; that is the
difference between measuring the DUT and measuring the two together. What the DUT sends
is received on its CPU likewise, unless there is a third one for that (``receive``).
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class CpuPlan:
    """CPU numbers. ``dut`` is None where the machine has but one CPU to use.

    ``receive``: takes in what the DUT sends; None: the DUT's own CPU has to.
    """

    worker: int
    dut: int | None
    main: int
    receive: int | None = None

    def describe(self) -> str:
        """Says where the DUT works, as part of the testbed's description."""
        if self.dut is None:
            return f"on the tester's own CPU {self.worker} (no other is usable)"
        return f"steered to CPU {self.dut} by RPS"

    def describe_process(self) -> str:
        """As ``describe``, for a DUT that is a process and not the kernel."""
        return self.describe() if self.dut is None else f"on CPU {self.dut}"


def plan_cpus(usable: Collection[int] | None = None) -> CpuPlan:
    """Gives the worker the first usable CPU, the DUT the last one.

    The main thread, which sleeps during trials, takes one that is free, or else the
    DUT's. Of three CPUs it shares one with the kernel's receive work, of more it need
    not. ``usable`` defaults to the CPUs that this process may run on.
    """
    cpus = sorted(os.sched_getaffinity(0) if usable is None else usable)
    if len(cpus) == 1:
        return CpuPlan(worker=cpus[0], dut=None, main=cpus[0])
    receive = cpus[-2] if len(cpus) > 2 else None
    return CpuPlan(worker=cpus[0], dut=cpus[-1], main=cpus[1], receive=receive)


def cpus_of_mask(mask: str) -> list[int]:
    """The CPUs in a mask as ``rps_cpus`` shows it: 32-bit words, highest first."""
    bits = int(mask.replace(",", "") or "0", 16)
    return [cpu for cpu in range(bits.bit_length()) if bits >> cpu & 1]


def rps_mask(*cpus: int) -> str:
    """The mask of some CPUs as ``rps_cpus`` takes it: 32-bit words, highest first."""
    bits = sum(1 << cpu for cpu in set(cpus))
    words = max(1, -(-bits.bit_length() // 32))
    return ",".join(
        f"{bits >> 32 * n & 0xFFFFFFFF:08x}" for n in reversed(range(words))
    )


def dut_cpus(plan: CpuPlan, usable: Collection[int] | None = None) -> list[int]:
    """Those that the DUT may have, its own first: none that the tester needs.

    Of two CPUs the DUT's one is also the main thread's, which sleeps during trials.
    """
    if plan.dut is None:
        return []
    cpus = sorted(os.sched_getaffinity(0) if usable is None else usable)
    taken = {plan.worker, plan.main, plan.receive}
    return [plan.dut, *(c for c in reversed(cpus) if c not in taken | {plan.dut})]
