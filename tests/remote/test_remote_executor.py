"""What a run makes of what a scheduler tells it; the hub is a fake, nothing runs."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from remote_hosts import campaign_of, write_testbed

from dutperf import __version__
from dutperf.config import PlannedTestbed, Testbed, load_campaign, load_testbed
from dutperf.errors import DutperfError, InputError, SetupError
from dutperf.procedures.events import Event, Notice
from dutperf.remote.hub import Came, Happening, Refused, Went
from dutperf.remote.messages import (
    TICKET_VERSION,
    Begun,
    Claim,
    Ended,
    Envelope,
    Mail,
    Message,
    OnCell,
    OnTrial,
    Owner,
    Ticket,
    WorkerFailure,
    claim_of,
    place_for,
    ticket_of,
)
from dutperf.remote.remote_executor import RemoteExecutor
from dutperf.run import TestbedsError
from dutperf.run.campaign_run import run_campaign
from dutperf.run.local_executor import Surroundings


def claim(*testbeds: Testbed, **keys: object) -> Claim:
    how = {
        "host": "one",
        "is_root": True,
        "is_simulated": False,
        "time_s": 0.0,
        "testbeds": list(testbeds),
        "labs": [],
    }
    return Claim.model_validate(how | keys)


def owner(address: str, *testbeds: Testbed, **keys: object) -> Owner:
    return Owner(address, claim(*testbeds, **keys))


class FakeHub:
    """Tells what a test has it tell; remembers what it was asked."""

    def __init__(self, owners: Sequence[Owner], *coming: object) -> None:
        self._owners = list(owners)
        self._coming = deque(coming)
        self.sent: list[tuple[Ticket, str]] = []
        self.taken_back: list[tuple[str, str]] = []
        self.answered: list[Mapping[int, str]] = []
        self.closed = False

    def owners(self) -> list[Owner]:
        return self._owners

    def send(self, ticket: Ticket, to: str) -> None:
        self.sent.append((ticket, to))

    def take_back(self, key: str, address: str) -> None:
        self.taken_back.append((key, address))

    def next(self, timeout_s: float) -> Happening | None:
        """Errors are raised; messages are of the ticket that was sent last."""
        assert timeout_s > 0
        coming = self._coming.popleft() if self._coming else None
        if isinstance(coming, DutperfError):
            raise coming
        if isinstance(coming, Message):
            ticket, to = self.sent[-1]
            return Mail(to, [Envelope(key=ticket.key, number=1, message=coming)])
        if coming == "gives up":
            return Refused(self.sent[-1][0].key, "")
        assert coming is None or isinstance(coming, Came | Went | Refused | Mail)
        return coming

    def answer(self, _mail: Mail, answers: Mapping[int, str]) -> None:
        self.answered.append(answers)

    def close(self) -> None:
        self.closed = True


class Clock:
    """A minute passes whenever it is looked at."""

    now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 60
        return self.now_s


def measure(folder: Path, hub: FakeHub, *names: str) -> list[str]:
    """Run a campaign at the testbeds; what a user is told."""
    told: list[str] = []

    def on_event(event: Event) -> None:
        if isinstance(event, Notice):
            told.append(event.text)

    asked = load_campaign(campaign_of(folder, *names))
    around = Surroundings(lambda *_: pytest.fail("opened here"), lambda path: path)
    try:
        run_campaign(
            asked,
            [PlannedTestbed(testbed=testbed) for testbed in asked.testbeds],
            around,
            on_event=on_event,
            results_dir=folder / "out",
            make_executor=lambda around, directory, on_event: RemoteExecutor(
                hub, around, directory, on_event, "run", clock=Clock()
            ),
        )
    finally:
        assert hub.closed
    return told


def bed(folder: Path, name: str, more: str = "") -> Testbed:
    return load_testbed(write_testbed(folder, name, more))


def test_without_an_owner_nothing_begins(tmp_path: Path) -> None:
    hub = FakeHub([owner("tls://one", bed(tmp_path, "a"))])
    with pytest.raises(InputError, match="no worker owns testbed b: those there own a"):
        measure(tmp_path, hub, "a", "b")
    assert hub.sent == []
    assert not (tmp_path / "out").exists()


def test_two_owners_are_one_too_many(tmp_path: Path) -> None:
    a = bed(tmp_path, "a")
    hub = FakeHub([owner("tls://one", a), owner("tls://two", a)])
    with pytest.raises(
        InputError, match=r"a is owned by two workers: .*one.* and .*two"
    ):
        measure(tmp_path, hub, "a")
    assert hub.sent == []


def test_a_worker_without_root_is_refused(tmp_path: Path) -> None:
    hub = FakeHub([owner("tls://one", bed(tmp_path, "a"), is_root=False)])
    with pytest.raises(InputError, match="is not root, so it cannot measure at a"):
        measure(tmp_path, hub, "a")


def test_another_testbed_of_the_same_name_is_refused(tmp_path: Path) -> None:
    other = bed(tmp_path, "a", "hops: 3")
    hub = FakeHub([owner("tls://one", other)])
    with pytest.raises(InputError, match=r"is not that of the campaign:\n.*hops"):
        measure(tmp_path, hub, "a")


def test_what_is_not_equal_is_not_taken_for_it(tmp_path: Path) -> None:
    a = bed(tmp_path, "a")
    spare = bed(tmp_path, "spare", "equal_to: a\nmemory_mb: 1024")
    found = place_for(PlannedTestbed(testbed=a), [owner("tls://one", spare)])
    assert found is not None
    assert (found.testbed, found.stands_in) == ("spare", True)
    worse = bed(tmp_path, "spare", "equal_to: a\nhops: 3\ncores: [0, 1]")
    with pytest.raises(InputError, match=r"(?s)is not:.*hops.*cores"):
        place_for(PlannedTestbed(testbed=a), [owner("tls://one", worse)])


def test_the_testbed_itself_comes_first(tmp_path: Path) -> None:
    a, spare = bed(tmp_path, "a"), bed(tmp_path, "spare", "equal_to: a")
    owners = [owner("tls://spare", spare), owner("tls://own", a)]
    found = place_for(PlannedTestbed(testbed=a), owners)
    assert found is not None
    assert found.owner.address == "tls://own"


def test_a_number_of_active_cores_is_the_testbed_that_chooses_it(
    tmp_path: Path,
) -> None:
    hook = "hooks: {set_cores: {command: [set, '{cores}']}}"
    planned = PlannedTestbed(testbed=bed(tmp_path, "a", hook)).with_cores(4)
    own = owner("tls://one", bed(tmp_path, "a", hook))
    found = place_for(planned, [own])
    assert found is not None
    assert found.testbed == "a"
    other = owner("tls://one", bed(tmp_path, "a", hook.replace("set,", "sets,")))
    assert place_for(planned, [other]) is None


def test_a_worker_that_stays_away_costs_its_testbed_only(tmp_path: Path) -> None:
    a, b = bed(tmp_path, "a"), bed(tmp_path, "b")
    hub = FakeHub(
        [owner("tls://one", a), owner("tls://two", b)],
        Went("tls://one"),
        Went("tls://two"),
    )
    with pytest.raises(TestbedsError, match="a: its worker has gone, and did not come"):
        measure(tmp_path, hub, "a", "b")
    assert len(hub.taken_back) == 2


def test_one_that_comes_back_gets_its_ticket_again(tmp_path: Path) -> None:
    own = owner("tls://one", bed(tmp_path, "a"))
    again = dataclasses.replace(own, address="tls://two")
    failure = WorkerFailure(message="its ports are in use", hint="end what uses them")
    hub = FakeHub(
        [own], Went("tls://one"), Came(again), Begun(), Ended(failure=failure)
    )
    with pytest.raises(SetupError, match="its ports are in use") as failed:
        measure(tmp_path, hub, "a")
    assert failed.value.hint == "end what uses them"
    assert [to for _, to in hub.sent] == ["tls://one", "tls://two"]
    assert hub.sent[0][0].key != hub.sent[1][0].key == "dutperf-run-a-2"
    assert any(
        '"stop":false' in text for told in hub.answered for text in told.values()
    )


def test_an_attempt_that_was_given_up_is_told_to_stop(tmp_path: Path) -> None:
    late = Mail("tls://one", [Envelope(key="earlier", number=7, message=Begun())])
    hub = FakeHub([owner("tls://one", bed(tmp_path, "a"))], late, SetupError("end"))
    with pytest.raises(SetupError, match="end"):
        measure(tmp_path, hub, "a")
    assert '"stop":true' in hub.answered[0][7]


@pytest.mark.parametrize(
    "strange",
    [
        OnCell(cell="../../etc/passwd", index=1, safe_fps=None),
        OnTrial(cell="no", repeat=1, attempt=1, rate_fps=1, planned_s=1.0),
    ],
)
def test_a_worker_that_tells_of_other_test_cases_costs_its_testbed(
    tmp_path: Path, strange: Message
) -> None:
    hub = FakeHub([owner("tls://one", bed(tmp_path, "a"))], strange)
    with pytest.raises(InputError, match="that it was not asked to measure"):
        measure(tmp_path, hub, "a")
    assert hub.taken_back == [("dutperf-run-a-1", "tls://one")]


def test_a_worker_cannot_speak_for_another(tmp_path: Path) -> None:
    a = owner("tls://one", bed(tmp_path, "a"))
    failure = Ended(failure=WorkerFailure(message="all is lost"))
    envelope = Envelope(key="dutperf-run-a-1", number=1, message=failure)
    hub = FakeHub([a], Mail("tls://two", [envelope]), SetupError("end"))
    with pytest.raises(SetupError, match="end"):
        measure(tmp_path, hub, "a")


def test_what_a_worker_gives_up_is_sent_again(tmp_path: Path) -> None:
    own = owner("tls://one", bed(tmp_path, "a"))
    hub = FakeHub([own], "gives up", SetupError("end"))
    with pytest.raises(SetupError, match="end"):
        measure(tmp_path, hub, "a")
    assert len(hub.sent) == 2
    hub = FakeHub([own], *["gives up"] * 100)
    with pytest.raises(InputError, match="it failed too often"):
        measure(tmp_path, hub, "a")


def test_what_a_worker_refuses_is_told_with_its_reason(tmp_path: Path) -> None:
    own = owner("tls://one", bed(tmp_path, "a"))
    refused = Refused("dutperf-run-a-1", "it knows jobs up to version 0\ninstall it")
    hub = FakeHub([own], refused)
    with pytest.raises(InputError, match=r"worker on one \(tls://one\): it knows jobs"):
        measure(tmp_path, hub, "a")


def test_clocks_that_differ_are_told(tmp_path: Path) -> None:
    own = dataclasses.replace(owner("tls://one", bed(tmp_path, "a")), ahead_s=-200.0)
    told: list[str] = []
    hub = FakeHub([own], SetupError("end"))
    asked = load_campaign(campaign_of(tmp_path, "a"))
    with pytest.raises(SetupError, match="end"):
        run_campaign(
            asked,
            [PlannedTestbed(testbed=each) for each in asked.testbeds],
            Surroundings(lambda *_: pytest.fail("opened"), lambda path: path),
            on_event=lambda e: told.append(e.text) if isinstance(e, Notice) else None,
            results_dir=tmp_path / "out",
            make_executor=lambda around, directory, on_event: RemoteExecutor(
                hub, around, directory, on_event, "run"
            ),
        )
    assert any("is 3.3 min behind this machine's" in text for text in told)


def test_a_job_of_a_newer_version_is_refused_with_both() -> None:
    newer = f'{{"version": {TICKET_VERSION + 1}, "dutperf_version": "9.9"}}'
    with pytest.raises(InputError, match=r"jobs of version 2 \(dutperf 9.9\).*up to"):
        ticket_of(newer, "the run")


def test_a_claim_of_another_version_is_refused_before_its_keys(tmp_path: Path) -> None:
    text = claim(bed(tmp_path, "a")).model_dump_json()
    other = text.replace(f'"dutperf_version":"{__version__}"', '"dutperf_version":"9"')
    with pytest.raises(InputError, match=f"has dutperf 9, this is {__version__}"):
        claim_of(other.replace('"host"', '"hosts"'), "the worker at tls://one")
    with pytest.raises(InputError, match="does not understand: host"):
        claim_of(text.replace('"host"', '"hosts"'), "the worker at tls://one")
