"""Where no hook empties a device's table, each test opens what nobody opened before."""

from __future__ import annotations

import json
import random
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from gateways import NAT44
from planning import Run, campaign, cell, spec

from dutperf.errors import SetupError
from dutperf.model.cell import Cell
from dutperf.procedures.stateful.establishing import phase1
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import CellResult, ResultsFile
from dutperf.run.openings import ConnectionsRemainError, Openings, path_of
from dutperf.run.trial_request import trial_request
from dutperf.simulation.fake_engine import FakeEngine, SimulatedNat, perfect, step

N = 2000
RATE = {"procedure": "connection-rate", "resolution": "2%", "repeats": 3}


def run_of(
    path: Path,
    nat: SimulatedNat,
    openings: Openings | None,
    **dut: Any,  # noqa: ANN401
) -> Run:
    """A campaign on a gateway without hooks, in its own time."""
    return Run(
        path,
        FakeEngine(dut.get("dut", perfect()), nat=nat),
        testbed=NAT44,
        openings=openings,
        sleep=lambda seconds: nat.wait(int(seconds * 1e9)),
    )


def remembering(nat: SimulatedNat, path: Path | None = None) -> Openings:
    return Openings(path, ("left", "right"), now=lambda: nat.now_ns / 1e9)


def stateful(**keys: object) -> dict[str, object]:
    return {"connections": N, "timeout_ms": 50, **keys}


def firsts(results: ResultsFile) -> list[int]:
    """Where the tests began."""
    found = []
    for record in results.trials:
        if record.request.learn and not record.request.learn.keep:
            tuples = record.request.directions[0].streams[0].tuples
            found.append(tuples.first if tuples else 0)
    return found


def only(results: ResultsFile) -> CellResult:
    (result,) = results.cells
    return result


@pytest.mark.parametrize("alpha", [None, 0.8])
def test_a_rate_is_not_that_of_connections_which_the_gateway_knows(
    tmp_path: Path, alpha: float | None
) -> None:
    asked = campaign(
        spec(
            **RATE,
            max_rate_fps=100_000,
            stateful=stateful(alpha=alpha, table_size=10**6),
        )
    )
    forgetful = SimulatedNat(connection_rate_fps=5000)
    found = only(run_of(tmp_path / "a", forgetful, None)(asked))
    assert found.median == 100_000, "what nobody remembers is measured wrongly"

    nat = SimulatedNat(connection_rate_fps=5000)
    results = run_of(tmp_path / "b", nat, remembering(nat))(asked)
    found = only(results)
    assert found.verdict == "pass"
    for repeat in found.repeats:
        assert repeat.value is not None
        assert abs(repeat.value - 5000) <= 0.02 * 5000
    begun = firsts(results)
    assert begun == [N * test for test in range(len(begun))]
    assert found.earlier is not None
    assert found.earlier.connections == begun[-1]
    (empty,) = (d for d in found.deviations if d.rfc == "RFC 9693 4.4")
    assert f"up to {begun[-1]:,} other connections" in empty.actual


def test_the_next_run_goes_on_where_this_one_ended(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    nat = SimulatedNat(connection_rate_fps=5000)
    asked = campaign(
        spec(**RATE, max_rate_fps=20_000, stateful=stateful(table_size=10**6)),
        # Another number of connections is another test of the same enumeration.
        spec(
            procedure="connection-rate",
            resolution="5%",
            max_rate_fps=20_000,
            stateful={"connections": 700, "timeout_ms": 50, "table_size": 10**6},
        ),
    )
    first = run_of(tmp_path / "1", nat, remembering(nat, kept))(asked)
    second = run_of(tmp_path / "2", nat, remembering(nat, kept))(asked)
    for results in (first, second):
        values = [
            repeat.value or 0 for cell in results.cells for repeat in cell.repeats
        ]
        assert all(abs(value - 5000) <= 0.06 * 5000 for value in values), values
    begun = firsts(first) + firsts(second)
    assert begun == sorted(set(begun))
    tried = sum(map(tuples_of, (first, second)))
    assert tried == nat.table_count() + sum(map(lost_of, (first, second)))


def tuples_of(results: ResultsFile) -> int:
    return sum(r.request.learn.entries for r in results.trials if r.request.learn)


def lost_of(results: ResultsFile) -> int:
    return sum(
        stream.lost
        for record in results.trials
        for direction in record.result.directions
        for stream in direction.streams
    )


def test_where_the_table_has_no_room_the_device_is_given_time_to_forget(
    tmp_path: Path,
) -> None:
    nat = SimulatedNat(
        connection_rate_fps=5000, table_size=3 * N, timeout_ns=30 * 10**9
    )
    asked = campaign(
        spec(
            **RATE,
            max_rate_fps=50_000,
            stateful=stateful(table_size=3 * N, dut_timeout_s=30),
        )
    )
    run = run_of(tmp_path / "a", nat, remembering(nat))
    found = only(run(asked))
    assert found.verdict == "pass"
    assert found.median is not None
    assert abs(found.median - 5000) <= 100
    assert found.earlier is not None
    assert found.earlier.connections == 2 * N
    assert found.earlier.waited_s > 30
    assert any(text.startswith("waiting ") for text in run.notices), run.notices


def test_without_a_size_each_test_waits_and_begins_with_an_empty_table(
    tmp_path: Path,
) -> None:
    nat = SimulatedNat(connection_rate_fps=5000, timeout_ns=30 * 10**9)
    keys = stateful(dut_timeout_s=30)
    asked = campaign(spec(**RATE, max_rate_fps=50_000, stateful=keys))
    found = only(run_of(tmp_path / "a", nat, remembering(nat))(asked))
    assert found.earlier is not None
    assert found.earlier.connections == 0
    assert not [d for d in found.deviations if d.rfc == "RFC 9693 4.4"]
    tests = sum(repeat.trials for repeat in found.repeats)
    assert 30 * (tests - 1) < found.earlier.waited_s <= 33 * (tests - 1)


@pytest.mark.parametrize(
    ("procedure", "keys"),
    [
        ("connection-rate", {}),
        ("table-capacity", {"first": 100, "error": 100, "table_size": 10**6}),
    ],
)
def test_what_cannot_be_promised_is_no_result(
    tmp_path: Path, procedure: str, keys: dict[str, object]
) -> None:
    nat = SimulatedNat(connection_rate_fps=5000, table_size=10**6)
    asked = campaign(
        spec(
            procedure=procedure,
            resolution="2%",
            max_rate_fps=50_000,
            stateful=stateful(**keys),
        )
    )
    run = run_of(tmp_path / "a", nat, remembering(nat))
    found = only(run(asked))
    assert (found.verdict, found.median) == ("invalid", None)
    assert [reason.code for reason in found.reasons] == ["connections_remain"]
    assert "bulk_delete" in (found.reasons[0].hint or "")
    assert len(firsts_of_cells(run)) <= 1
    assert any("only one test can be made" in text for text in run.notices)


def firsts_of_cells(run: Run) -> list[str]:
    """The journal's trials of phase 1."""
    lines = (run.path / "journal.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [r["cell"] for r in records if r.get("role") == "trial"]


def test_a_capacity_is_that_of_a_table_which_was_given_time(tmp_path: Path) -> None:
    nat = SimulatedNat(table_size=1500, timeout_ns=20 * 10**9)
    keys = stateful(first=100, error=50, dut_timeout_s=20, table_size=10**6)
    asked = campaign(
        spec(
            procedure="table-capacity",
            resolution="500",
            max_rate_fps=10_000,
            stateful=keys,
        )
    )
    found = only(run_of(tmp_path / "a", nat, remembering(nat))(asked))
    assert found.verdict == "pass"
    assert found.median is not None
    assert 1450 <= found.median <= 1500
    assert found.earlier is not None
    assert found.earlier.connections == 0


def test_phase_2_uses_what_its_own_phase_1_opened(tmp_path: Path) -> None:
    nat = SimulatedNat()
    keys = stateful(phase1_rate=10_000, table_size=10**6)
    asked = campaign(
        spec(
            procedure="throughput",
            resolution="10%",
            max_rate_fps=20_000,
            repeats=2,
            trial_duration_s=0.2,
            stateful=keys,
        )
    )
    dut = step(15_000)
    results = run_of(tmp_path / "a", nat, remembering(nat), dut=dut)(asked)
    found = only(results)
    assert found.verdict == "pass"
    assert found.median is not None
    assert abs(found.median - 15_000) <= 1500
    opened = 0
    for record in results.trials:
        streams = [s for d in record.request.directions for s in d.streams]
        sent = [s.tuples.first for s in streams if s.tuples and not s.is_learned]
        if record.role == "phase1":
            opened = sent[0] if sent else 0
        else:
            assert sent in ([], [opened])
    assert opened > 0
    # None was opened anew in phase 2.
    assert nat.table_count() == opened + N


def test_a_clock_that_was_set_back_is_not_waited_for(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    waits: list[float] = []
    asked = cell(
        NAT44,
        procedure="connection-rate",
        stateful={"connections": 10, "dut_timeout_s": 20},
    )

    def wait(wait_s: float, _connections: int) -> None:
        waits.append(wait_s)

    yesterday = Openings(kept, now=lambda: 1_000_000.0)
    request, _ = yesterday.placed(request_of(asked, 1000), asked, wait)
    yesterday.used(request, 5)
    today = Openings(kept, now=lambda: 900_000.0)
    today.placed(request, asked, wait)
    assert waits == [pytest.approx(22)]


def test_what_is_kept_cannot_be_read(tmp_path: Path) -> None:
    kept = tmp_path / "kept.json"
    kept.write_text('{"schema_version": 1')
    with pytest.raises(SetupError, match=r"kept\.json.*cannot be read") as caught:
        Openings(kept)
    assert "remove the file" in caught.value.hint


def test_ports_have_a_file_of_their_own(tmp_path: Path) -> None:
    paths = {
        path_of(ports, tmp_path)
        for ports in (["a", "b"], ["a"], ["b"], ["ab"], ["b", "a"])
    }
    assert len(paths) == 4


# --- against a device that is nothing but a memory


@pytest.mark.parametrize("jump_s", [86_400, -86_400])
def test_a_device_does_not_forget_because_the_clock_was_set(
    jump_s: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    asked = cell(
        NAT44,
        procedure="connection-rate",
        stateful={"connections": 10, "dut_timeout_s": 1000},
    )

    def wait(wait_s: float, _connections: int) -> None:
        waits.append(wait_s)

    openings = Openings()
    request, _ = openings.placed(request_of(asked, 1000), asked, wait)
    openings.used(request, 0)
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + jump_s)
    openings.placed(request, asked, wait)
    (waited,) = waits
    assert 1000 <= waited <= 1100


@dataclass
class Memory:
    """When which four-tuple was used last, and by what enumeration it is called."""

    lives_s: float
    used: dict[tuple[str, int], float] = field(default_factory=dict)

    def alive(self, now: float) -> set[tuple[str, int]]:
        return {k for k, at in self.used.items() if at + self.lives_s > now}


def request_of(asked: Cell, rate_fps: int) -> TrialRequest:
    assert asked.stateful is not None
    plain = trial_request(NAT44, asked, rate_fps, 1)
    return phase1(plain, asked, asked.stateful)


@pytest.mark.parametrize("seed", range(12))
def test_no_test_ever_opens_what_the_device_may_know(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)  # noqa: S311 - a test, not a secret
    timeout_s = draw.choice([None, 5, 40])
    size = draw.choice([None, 100, 400])
    clock = [1000.0]
    kept = tmp_path / "kept.json"
    cells = [
        cell(
            NAT44,
            procedure="connection-rate",
            stateful={
                "connections": count,
                "source_ports": ports,
                "destination_ports": "80-89",
                "dut_timeout_s": timeout_s,
                "table_size": size,
            },
        )
        for count in (7, 30, 60)
        for ports in ("1000-1019", "1000-1011")
    ]
    memory = Memory(timeout_s or 10**9)
    opened = refused = 0

    def wait(seconds: float, _connections: int) -> None:
        clock[0] += seconds

    openings = Openings(kept, now=lambda: clock[0])
    for _ in range(60):
        if draw.random() < 0.2:
            openings = Openings(kept, now=lambda: clock[0])
        asked = draw.choice(cells)
        assert asked.stateful is not None
        try:
            request, earlier = openings.placed(request_of(asked, 1000), asked, wait)
        except ConnectionsRemainError:
            refused += 1
            assert timeout_s is None
            continue
        assert earlier is not None
        (direction,) = request.directions
        tuples = direction.streams[0].tuples
        first = tuples.first if tuples else 0
        name = asked.stateful.source_ports
        alive = memory.alive(clock[0])
        count = asked.stateful.connections
        new = {(name, k) for k in range(first, first + count)}
        assert first + count <= asked.stateful.combinations
        assert not alive & new
        # Of another enumeration nobody knows which four-tuples are the same.
        assert {each for each, _ in alive} <= {name}
        if alive:
            assert size is not None
            assert len(alive) + count <= size
        assert earlier.connections >= len(alive)
        lasts_s = draw.choice([0.01, 1.0, 7.0])
        openings.used(request, lasts_s)
        clock[0] += lasts_s
        memory.used |= dict.fromkeys(new, clock[0])
        opened += 1
        if draw.random() < 0.5:
            clock[0] += draw.choice([0.0, 3.0, 60.0])
    assert opened > 0
    if timeout_s is None:
        assert refused > 0
