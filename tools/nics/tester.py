"""The guest as a tester: its NICs, its testbeds, and dutperf's commands."""

from __future__ import annotations

import base64
import json
import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dutperf.errors import SetupError
from tools.nics.accounts import differences, passed
from tools.nics.machine import CABLE, ROUTED, Done, Machine, Model, mac_of

MAX_FPS = 2000
"""Enough for counts, and what software emulation does beside other work."""
_READ = (
    "import base64, sys, zlib; sys.stdout.write(base64.b64encode(zlib.compress("
    "open(sys.argv[1], 'rb').read())).decode())"
)
_DUTPERF_S = 900
_LOG = re.compile(r"the log is (\S+)")


@dataclass(frozen=True)
class Nic:
    """One of the guest's.

    Attributes:
        interface: its name while the kernel has it.
    """

    pci: str
    interface: str


@dataclass(frozen=True)
class Seen:
    """What came out of a step.

    Attributes:
        outcome: in a word: measured, refused, invalid.
        message: what was said, or found.
    """

    outcome: str
    message: str = ""


@dataclass(frozen=True)
class Ran:
    """A command of dutperf that has ended.

    Attributes:
        trials: results, from its journal.
        cause: what the engine's log ends with.
    """

    code: int
    out: str
    err: str
    trials: Sequence[Mapping[str, Any]] = ()
    cause: str = ""

    @property
    def outcome(self) -> str:
        """By the exit code."""
        words = {0: "measured", 1: "invalid", 2: "refused", 3: "refused"}
        return words.get(self.code, f"exit code {self.code}")

    @property
    def message(self) -> str:
        """What it complained of, or its counts, and why trials were invalid."""
        said = [line for line in self.err.splitlines() if line.startswith("error:")]
        return "; ".join(
            [*said, *self.cause.splitlines(), *self._counts(), *self.reasons]
        )

    def _counts(self) -> Iterator[str]:
        if not self.trials:
            return
        sent, lost = (
            sum(
                stream[key]
                for trial in self.trials
                for direction in trial["directions"]
                for stream in direction["streams"]
            )
            for key in ("sent", "lost")
        )
        yield f"{len(self.trials)} trials, {sent} frames sent, {lost} lost"
        ports = [port for trial in self.trials for port in trial["ports"]]
        if handed_over := sum(port.get("handed_over", 0) for port in ports):
            yield f"{handed_over} by the other share's queue"

    @property
    def reasons(self) -> list[str]:
        """Why trials were invalid, each once."""
        return sorted(
            {
                each["code"]
                for trial in self.trials
                for each in trial["verdict"]["reasons"]
            }
        )

    @property
    def seen(self) -> Seen:
        """As a step's."""
        return Seen(self.outcome, self.message)


class Tester:
    """The tester; all its NICs are of one model."""

    def __init__(self, machine: Machine, model: Model) -> None:
        self.machine, self.model = machine, model
        self.nics = {name: self._nic(mac_of(name)) for name in (*CABLE, *ROUTED)}
        self._runs = 0
        self.sh("mkdir -p /tmp/runs")

    def sh(self, command: str, timeout_s: float = 120) -> str:
        """What a command prints.

        Raises:
            SetupError: it fails.
        """
        done = self.machine.run(command, timeout_s)
        if done.code != 0:
            raise SetupError(f"the guest refuses {command!r}: {_last(done)}")
        return done.out.strip()

    def _nic(self, mac: str) -> Nic:
        interface = self.sh(f"grep -l {mac} /sys/class/net/*/address | cut -d/ -f5")
        # Of virtio the device is a child of the PCI one.
        path = self.sh(f"readlink -f /sys/class/net/{interface}/device")
        pci = [word for word in path.split("/") if word.count(":") == 2]
        return Nic(pci[-1], interface)

    def bind(self, driver: str) -> None:
        """All its NICs to that driver, as the documents say.

        Raises:
            SetupError: it fails.
        """
        addresses = " ".join(nic.pci for nic in self.nics.values())
        self.sh(f"modprobe {driver}; dpdk-devbind.py --bind={driver} {addresses}")

    def testbed(
        self,
        netdevs: tuple[str, str] = ROUTED,
        *,
        driver: str | None = None,
        ports: Mapping[str, Any] | None = None,
        sides: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """One on those NICs, its addresses as the router wants them.

        ``driver``: of kernel interfaces; None: by PCI. ``ports``, ``sides``: more keys.
        """
        found: dict[str, Any] = {
            "schema_version": 1,
            "name": self.model.name,
            "description": "Linux as a router",
            "cores": [1],
            "max_rate_fps": MAX_FPS,
        }
        for number, (side, name) in enumerate(zip(ROUTED, netdevs, strict=True)):
            nic = self.nics[name]
            port = (
                {"pci": nic.pci}
                if driver is None
                else {"interface": nic.interface, "driver": driver}
            )
            found[side] = {"port": port | dict(ports or {})} | {
                "ipv4": {
                    "address": f"198.{18 + number}.1.2",
                    "gateway": f"198.{18 + number}.1.1",
                },
                "ipv6": {
                    "address": f"2001:2:0:{number}::2",
                    "gateway": f"2001:2:0:{number}::1",
                },
            }
            found[side] |= (sides or {}).get(side, {})
        return found

    def cabled(self, **keys: object) -> dict[str, Any]:
        """One on the two NICs that are connected, each the other's next hop.

        ``keys``: of both sides, beside their addresses.
        """
        ends = ("198.18.1.2", "198.18.1.3")
        sides = {
            side: {"ipv4": {"address": own, "gateway": other}, "ipv6": None} | keys
            for side, own, other in zip(ROUTED, ends, ends[::-1], strict=True)
        }
        return self.testbed(CABLE, sides=sides)

    def write(self, name: str, text: str) -> str:
        """A file of the guest's; its path."""
        path = f"/tmp/runs/{name}"  # noqa: S108 - the guest's
        self.sh(f"cat >{path} <<'END'\n{text}\nEND")
        return path

    def router_frames(self) -> int:
        """So many have come to the router from the left."""
        links = json.loads(self.machine.in_router("ip -s -j link show dev left"))
        return int(links[0]["stats64"]["rx"]["packets"])

    def start(self, words: str, testbed: Mapping[str, Any]) -> str:
        """Starts dutperf; where it writes its results, which ``finish`` takes."""
        self._runs += 1
        place = f"/tmp/runs/{self._runs}"  # noqa: S108 - the guest's
        text = json.dumps(testbed)
        first, *rest = words.split(" ", 1)
        command = f"dutperf {first} {place}.yaml {' '.join(rest)}"
        if first != "doctor":
            command += f" --output {place}"
        command += f" >{place}.out 2>{place}.err; echo $? >{place}.code"
        self.sh(
            f"cat >{place}.yaml <<'END'\n{text}\nEND\n"
            f"({command}) >/dev/null 2>&1 &"  # the agent waits for its output
        )
        return place

    def finish(self, place: str, timeout_s: float = _DUTPERF_S) -> Ran:
        """Waits for what was started.

        Raises:
            SetupError: it does not end.
        """
        end = time.monotonic() + timeout_s
        while self.machine.run(f"test -s {place}.code").code != 0:
            if time.monotonic() > end:
                said = self.read(f"{place}.err").strip().splitlines()[-1:]
                raise SetupError(
                    f"dutperf has not ended within {timeout_s:.0f} s, and said last: "
                    f"{''.join(said) or 'nothing'}"
                )
            time.sleep(0.5)
        err = self.read(f"{place}.err")
        log = _LOG.search(err)
        cause = self.sh(f"grep -v ^EAL {log[1]} | tail -n 2") if log else ""
        journal = f"{place}/journal.jsonl"
        lines = self.read(journal).splitlines() if self._has(journal) else []
        return Ran(
            int(self.sh(f"cat {place}.code")),
            self.read(f"{place}.out"),
            err,
            [each["result"] for each in map(json.loads, lines) if "result" in each],
            cause,
        )

    def dutperf(self, words: str, testbed: Mapping[str, Any]) -> Ran:
        """A command from beginning to end."""
        return self.finish(self.start(words, testbed))

    def _has(self, path: str) -> bool:
        return self.machine.run(f"test -f {path}").code == 0

    def read(self, path: str) -> str:
        """A file of the guest."""
        packed = self.sh(f'python3 -c "{_READ}" {path}')
        return zlib.decompress(base64.b64decode(packed)).decode(errors="replace")

    def counted(
        self, words: str, testbed: Mapping[str, Any], netdevs: tuple[str, str] = ROUTED
    ) -> Seen:
        """A command, and whether its counts are those of what passed by outside.

        QEMU dumps nothing of a tap with several queues: there it is the command alone.
        """
        if self.model.queues > 1 and netdevs == ROUTED:
            return self.dutperf(words, testbed).seen
        with self.machine.capturing(netdevs) as captures:
            ran = self.dutperf(words, testbed)
        left, right = (
            passed(path.read_bytes(), mac_of(name))
            for path, name in zip(captures, netdevs, strict=True)
        )
        found = differences(ran.trials, left, right)
        if found:
            return Seen("miscounted", "; ".join(found[:3]))
        return Seen(ran.outcome, f"{ran.message}; counted alike")


def _last(done: Done) -> str:
    said = (done.err or done.out).strip().splitlines()
    return said[-1] if said else f"exit code {done.code}"
