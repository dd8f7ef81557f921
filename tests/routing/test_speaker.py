"""When the device is told, waited for, and found to have given up its neighbour."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import pytest
from planning import TESTBED, cell

from dutperf.errors import SetupError
from dutperf.model.cell import Cell
from dutperf.results.trial_record import RoutingSession
from dutperf.routing import SAME_AGAIN_S, SPREAD_S, BirdSpeaker
from dutperf.routing.bird import sessions_of


@dataclass
class FakeBird:
    """A daemon whose device becomes a neighbour ``opens_s`` after ``start``."""

    opens_s: float = 0.0
    now_s: float = 0.0
    protocol: str = "ospf"
    configurations: list[str] = field(default_factory=list)
    asked: list[tuple[str, ...]] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    namespace: str = "/proc/1/ns/net"

    def set_up(self, hosts: object) -> None:
        self.hosts = hosts

    def start(self, configuration: str) -> None:
        self.configurations.append(configuration)

    def configure(self, configuration: str) -> None:
        self.configurations.append(configuration)

    def ask(self, *words: str) -> str:
        self.asked.append(words)
        if words != ("show", "protocols"):
            return ""
        is_open = self.now_s >= self.opens_s
        of_bgp = ("Established", "up") if is_open else ("Active", "start")
        of_ospf = ("Running", "up") if is_open else ("Alone", "up")
        word, state = of_ospf if self.protocol == "ospf" else of_bgp
        return "BIRD 2.0.12 ready.\nName Proto Table State Since Info\n" + "".join(
            f"{side}_{self.protocol}4 X t {state} 12:00:00.000 {word} {rest}\n"
            f"{side}_{self.protocol}4_routes Static t up 12:00:00.000\n"
            for side, rest in (("left", ""), ("right", "Socket: refused"))
        )

    def news(self) -> Iterator[str]:
        while self.log:
            yield self.log.pop(0)


@dataclass
class World:
    daemon: FakeBird
    cells: list[Cell]
    told: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.speaker = BirdSpeaker(
            TESTBED,
            sessions_of(self.cells),
            self.daemon,  # type: ignore[arg-type]
            self.told.append,
            sleep=self.sleep,
            clock=lambda: self.daemon.now_s,
        )
        self.speaker.begin()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.daemon.now_s += seconds

    @property
    def configured(self) -> int:
        return len(self.daemon.configurations) - 1


def asked(protocol: str = "ospf", networks: int = 1) -> Cell:
    return cell(ip=[4], traffic={"routes": protocol, "networks": networks})


def world(protocol: str = "ospf", opens_s: float = 0.0) -> World:
    cells = [asked(protocol), asked(protocol, 256), cell(ip=[4])]
    return World(FakeBird(opens_s, protocol=protocol), cells)


def test_the_first_trial_waits_for_the_neighbour_and_for_its_routes() -> None:
    it = world(opens_s=4.0)
    it.speaker.tell(it.cells[0])
    assert it.configured == 1
    assert it.daemon.now_s >= 4.0 + SPREAD_S
    (told,) = it.told
    assert told == (
        "waited 4 s for the device as neighbour: OSPFv2 on the left, OSPFv2 on the "
        "right"
    )


@pytest.mark.parametrize("protocol", ["ospf", "bgp"])
def test_each_trial_is_told_all_again_without_another_wait(protocol: str) -> None:
    it = world(protocol)
    it.speaker.tell(it.cells[0])
    it.slept.clear()
    for trial in count(2):
        it.daemon.now_s += SAME_AGAIN_S
        it.speaker.tell(it.cells[0])
        assert it.configured == trial
        if trial == 5:
            break
    assert it.slept == []
    # Another tag, so that the same routes are other ones for OSPF.
    assert len(set(it.daemon.configurations)) == (6 if protocol == "ospf" else 2)
    again = [words for words in it.daemon.asked if words[0] == "reload"]
    sides = [("reload", "out", f"{side}_bgp4") for side in ("left", "right")]
    assert again == (sides * 5 if protocol == "bgp" else [])


def test_the_same_is_not_told_sooner_than_ospf_allows() -> None:
    it = world()
    it.speaker.tell(it.cells[0])
    told_s = it.daemon.now_s - SPREAD_S
    it.daemon.now_s = told_s + SAME_AGAIN_S - 0.1
    it.speaker.tell(it.cells[0])
    assert it.configured == 1
    it.daemon.now_s = told_s + SAME_AGAIN_S
    it.speaker.tell(it.cells[0])
    assert it.configured == 2


def test_other_networks_are_told_at_once_and_waited_for() -> None:
    it = world()
    it.speaker.tell(it.cells[0])
    it.slept.clear()
    it.speaker.tell(it.cells[1])
    assert it.configured == 2
    assert it.daemon.configurations[-1].count("blackhole") == 512
    assert it.slept == [SPREAD_S]


def test_a_cell_with_static_routes_is_told_nothing() -> None:
    it = world()
    it.speaker.tell(it.cells[2])
    assert (it.configured, it.slept, it.speaker.sessions()) == (0, [], [])


def test_a_neighbour_that_fell_in_a_trial_is_told_of_and_waited_for() -> None:
    it = world()
    it.speaker.tell(it.cells[0])
    fall = "x <TRACE> left_ospf4: Neighbor 198.18.0.1 on left changed state from "
    it.daemon.log += [
        f"{fall}Full to Down\n",
        f"{fall}Loading to Full\n",
        f"{fall}Full to Init\n",
        "x <TRACE> left_ospf4_routes: State changed to up\n",
    ]
    left, right = it.speaker.sessions()
    assert left == RoutingSession(
        port="left", ip_version=4, protocol="ospf", open=True, falls=2
    )
    assert (right.open, right.falls) == (True, 0)
    it.slept.clear()
    it.speaker.tell(it.cells[0])
    assert it.slept == [SPREAD_S]
    # What fell before a trial is not told of that trial.
    assert [each.falls for each in it.speaker.sessions()] == [0, 0]


def test_bgp_falls_are_counted_too() -> None:
    it = world("bgp")
    it.speaker.tell(it.cells[0])
    it.daemon.log.append("x <TRACE> right_bgp4: BGP session closed\n")
    assert [each.falls for each in it.speaker.sessions()] == [0, 1]


def test_a_session_that_is_closed_after_a_trial_is_not_open() -> None:
    it = world()
    it.speaker.tell(it.cells[0])
    it.daemon.opens_s = it.daemon.now_s + 100
    assert [each.open for each in it.speaker.sessions()] == [False, False]


@pytest.mark.parametrize(
    ("protocol", "what"),
    [
        ("ospf", "area 0, hello 10 s, dead 40 s, prefix length 24, MTU 1500"),
        ("bgp", "its AS 65000, the tester's 65001, no password"),
    ],
)
def test_a_device_that_is_no_neighbour_is_refused(protocol: str, what: str) -> None:
    it = world(protocol, opens_s=1000.0)
    with pytest.raises(SetupError) as refused:
        it.speaker.tell(it.cells[0])
    words = {"ospf": "OSPFv2", "bgp": "BGP for IPv4"}[protocol]
    assert refused.value.message == (
        f"left: after 120 s the device is no neighbour by {words} (the tester is "
        "198.18.0.2)"
    )
    assert refused.value.hint
    assert what in refused.value.hint
    assert f"routing.{protocol}" in refused.value.hint


def test_taps_are_named_after_the_sides() -> None:
    it = world()
    assert {side: tap.interface for side, tap in it.speaker.taps.items()} == {
        "left": "left",
        "right": "right",
    }


def test_a_daemon_that_has_gone_costs_no_trial_and_is_told_before_the_next() -> None:
    it = world()
    it.speaker.tell(it.cells[0])

    def gone(*_words: str) -> str:
        raise SetupError("it has gone")

    it.daemon.ask = gone  # type: ignore[method-assign]
    assert it.speaker.sessions() == []  # no word against the device
    with pytest.raises(SetupError, match="gone"):
        it.speaker.tell(it.cells[0])
