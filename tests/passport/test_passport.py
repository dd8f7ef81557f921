"""The tester's passport: measured on a simulated tester, kept, and held to results."""

from __future__ import annotations

import contextlib
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import several_ports
from passport_sample import OWNER
from planning import TESTBED, TRANSLATOR, FakeOpener, campaign, cell, spec

from dutperf.config import Campaign, PlannedTestbed, Testbed, expand
from dutperf.config.campaign import LabKeys
from dutperf.engine.client import ProgressCallback, ignore_progress
from dutperf.errors import EngineError, InputError, SetupError
from dutperf.lab.presence import LabStatus
from dutperf.model.cell import Cell
from dutperf.model.traffic import Traffic
from dutperf.passport import making
from dutperf.passport.keeping import (
    check_loop,
    connected,
    load_passport,
    loop_of,
    owner_of,
    save_passport,
)
from dutperf.passport.making import Maker, default_grid, opened_at_fps
from dutperf.passport.measuring import OPENED_AT_FPS, SHORT, Thoroughness, cell_of
from dutperf.procedures.measurements import tables
from dutperf.procedures.passport_use import (
    beside_passport,
    entries_of,
    features,
    first_load_fps,
    sent_by,
)
from dutperf.procedures.stateful.establishing import stateful_of
from dutperf.protocol.result_messages import Reason, TrialResult, Verdict
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.report import write_report
from dutperf.results import ResultsFile, load_environment
from dutperf.results.details import Measure, MeasuredValue
from dutperf.results.model import CellResult
from dutperf.results.passport import (
    Passport,
    PassportDelay,
    PassportEntry,
    PassportOwner,
    Sent,
)
from dutperf.run.campaign_run import run_campaign
from dutperf.run.local_executor import Surroundings
from dutperf.simulation.fake_engine import FakeEngine, lossy, perfect, step
from dutperf.tables import subjects

RING = Testbed.model_validate(
    {
        **TESTBED.model_dump(exclude_none=True),
        "left": {**TESTBED.left.model_dump(exclude_none=True), "port": {"ring": True}},
        "right": {
            **TESTBED.right.model_dump(exclude_none=True),
            "port": {"ring": True},
        },
    }
)
PLANNED = PlannedTestbed(testbed=RING)
LIMIT_FPS = 400_000


@pytest.fixture(autouse=True)
def _an_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whoever has not built one, or is not root, can test this, too."""
    monkeypatch.setattr(making, "SOCKETS", tmp_path / "sockets")
    program = tmp_path / "engine"
    program.write_bytes(b"an engine")
    program.chmod(0o755)
    monkeypatch.setenv("DUTPERF_ENGINE", str(program))


def maker(path: Path, engine: FakeEngine, pace: Thoroughness = SHORT) -> Maker:
    return Maker(
        path,
        lambda planned: contextlib.nullcontext(planned.testbed),
        FakeOpener(engine),
        pace,
    )


def made(
    path: Path, engine: FakeEngine, of: Cell, pace: Thoroughness = SHORT
) -> PassportEntry:
    told: list[str] = []
    passport = maker(path, engine, pace)(PLANNED, [of], told.append)
    assert passport, told
    (entry,) = passport.entries
    return entry


def entry_with(sent: Sent, **keys: Any) -> PassportEntry:  # noqa: ANN401
    given: dict[str, Any] = {
        "sent": sent,
        "made_at": "2026-01-01T00:00:00+00:00",
        "trial_duration_s": 0.5,
        "trials": 20,
        "safe_rate_fps": 100_000,
        "highest_rate_fps": 120_000,
        "next_rate_fps": 130_000,
    }
    return PassportEntry.model_validate(given | keys)


def passport_of(of: Cell, **keys: Any) -> Passport:  # noqa: ANN401
    entries = [entry_with(sent, **keys) for sent in sent_by(of)]
    return Passport(owner=OWNER, entries=entries)


# --- what is measured


def test_the_safe_rate_is_one_at_which_all_trials_passed(tmp_path: Path) -> None:
    engine = FakeEngine(perfect(), tester_limit_fps=LIMIT_FPS)
    entry = made(tmp_path, engine, cell(), Thoroughness(0.5, 20, 2, "2%"))
    assert entry.trials == 20
    assert entry.safe_rate_fps
    assert 0.9 * LIMIT_FPS < entry.safe_rate_fps <= LIMIT_FPS
    assert entry.highest_rate_fps
    assert entry.highest_rate_fps <= LIMIT_FPS


def test_a_rate_that_passes_only_now_and_then_is_not_safe(tmp_path: Path) -> None:
    """Above 200,000 fps each third trial is spoilt, as on a busy machine."""
    engine = FakeEngine(step(LIMIT_FPS))
    measure, number = engine.measure, 0

    def disturbed(trial: Any, *rest: Any) -> Any:  # noqa: ANN401
        nonlocal number
        number += 1
        result = measure(trial, *rest)
        fast = trial.directions[0].rate_fps > 200_000
        if number % 3 or not fast or result.verdict.kind != "pass":
            return result
        spoilt = {"kind": "invalid", "reasons": [_STALL]}
        return result.model_copy(
            update={"verdict": type(result.verdict).model_validate(spoilt)}
        )

    engine.measure = disturbed  # type: ignore[method-assign,assignment]
    entry = made(tmp_path, engine, cell(), Thoroughness(0.5, 20, 2, "2%"))
    assert entry.safe_rate_fps
    assert 150_000 < entry.safe_rate_fps <= 200_000
    assert entry.highest_rate_fps
    assert entry.highest_rate_fps > 350_000


_STALL = {"code": "sender_lag", "message": "it was late", "hint": ""}


def test_where_nothing_passes_no_rate_is_safe_and_it_says_why(tmp_path: Path) -> None:
    entry = made(tmp_path, FakeEngine(lossy(500_000)), cell())
    assert entry.safe_rate_fps is None
    assert entry.trials == 0
    assert entry.delays == []
    assert entry.why_not.startswith("fail: ")


def test_delays_and_lag_are_those_of_the_loop(tmp_path: Path) -> None:
    entry = made(tmp_path, FakeEngine(perfect(), tester_limit_fps=LIMIT_FPS), cell())
    assert entry.floor
    assert entry.floor.minimum_ns <= entry.floor.typical_ns <= entry.floor.worst_ns
    assert [d.rate_fps for d in entry.delays] == [
        (entry.safe_rate_fps or 0) * percent // 100 for percent in (10, 50, 100)
    ]
    assert entry.lag
    assert entry.device_ns_per_frame is None


# --- what is kept, and for whom


def test_what_is_kept_is_not_measured_again(tmp_path: Path) -> None:
    first = made(tmp_path, FakeEngine(step(LIMIT_FPS)), cell())
    again = FakeEngine(step(LIMIT_FPS))
    assert made(tmp_path, again, cell()) == first
    assert again.trials == []


@pytest.mark.parametrize(
    ("hours", "pace", "again"),
    [
        (23, SHORT, False),
        (25, SHORT, True),
        (-1, SHORT, True),
        (9000, Thoroughness(0.5, 20, 1, "5%"), False),
    ],
)
def test_what_few_trials_said_holds_for_a_day(
    tmp_path: Path, hours: int, pace: Thoroughness, again: bool
) -> None:
    """Of a clock that was set back nobody knows how old it is."""
    made(tmp_path, FakeEngine(step(LIMIT_FPS)), cell(), pace)
    engine = FakeEngine(step(LIMIT_FPS))
    later = datetime.now(UTC) + timedelta(hours=hours)
    replace(maker(tmp_path, engine), now=lambda: later)(PLANNED, [cell()], _ignore)
    assert bool(engine.trials) == again


def test_other_frames_are_measured_beside_what_is_kept(tmp_path: Path) -> None:
    make = maker(tmp_path, FakeEngine(step(LIMIT_FPS)))
    make(PLANNED, [cell()], _ignore)
    both = make(PLANNED, [cell(), cell(frame_size=[512])], _ignore)
    assert both
    assert [e.sent.frame_sizes for e in both.entries] == [[64], [512]]


def test_what_costs_the_tester_nothing_needs_no_entry_of_its_own() -> None:
    free = cell(traffic={"ttl": 3, "dscp": 5, "df": True, "name": "other"})
    assert sent_by(free) == sent_by(cell())
    told = {"management": True, "routes": "rip", "route_changes": True}
    networks = {"networks": {"left": 1, "right": 8}}
    assert sent_by(cell(traffic=told | networks)) == sent_by(cell(traffic=networks))
    costly = cell(traffic={"ports": {"source": "fixed", "destination": "fixed"}})
    assert sent_by(costly) != sent_by(cell())


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"ipv6_headers": ["destination-options"]}, "IPv6 with destination-options"),
        ({"ipv4_options": ["router-alert"]}, "IPv4 with router-alert"),
    ],
)
def test_what_costs_the_tester_something_is_told(
    keys: dict[str, Any], says: str
) -> None:
    assert says in features(Traffic.model_validate(keys))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("machine", "another"),
        ("kernel", "6.99"),
        ("engine", "0" * 16),
        ("cores", [1]),
        ("main_core", 0),
        ("hugepages", True),
        ("link", "ring with a knot"),
        ("dutperf_version", "9"),
        ("memory_mb", 64),
        ("cpu_model", "another"),
    ],
)
def test_a_passport_is_of_one_machine_engine_and_link(
    tmp_path: Path, key: str, value: object
) -> None:
    save_passport(passport_of(cell()), tmp_path)
    assert load_passport(OWNER, tmp_path).entries
    other = PassportOwner.model_validate(OWNER.model_dump() | {key: value})
    assert load_passport(other, tmp_path).entries == []


def test_a_file_of_another_owner_under_the_same_name_is_not_taken(
    tmp_path: Path,
) -> None:
    other = PassportOwner.model_validate(OWNER.model_dump() | {"kernel": "6.99"})
    path = save_passport(passport_of(cell()), tmp_path)
    path.rename(tmp_path / f"{other.name}.json")
    assert load_passport(other, tmp_path).entries == []


def test_another_engine_program_is_another_tester(tmp_path: Path) -> None:
    loop = check_loop(loop_of(PLANNED))
    before = owner_of(loop)
    (tmp_path / "engine").write_bytes(b"a better engine")
    assert owner_of(loop) != before


def test_a_damaged_file_costs_the_passport_and_not_the_run(tmp_path: Path) -> None:
    path = save_passport(
        Passport(owner=owner_of(check_loop(loop_of(PLANNED)))), tmp_path
    )
    path.write_text(path.read_text()[:-10])
    told: list[str] = []
    engine = FakeEngine(perfect())
    assert maker(tmp_path, engine)(PLANNED, [cell()], told.append) is None
    assert [text for text in told if "cannot be read" in text]
    assert engine.trials == []


def test_an_engine_that_fails_costs_the_passport_and_not_the_run(
    tmp_path: Path,
) -> None:
    engine = FakeEngine(perfect(), troubles={3: EngineError("the engine died")})
    told: list[str] = []
    assert maker(tmp_path, engine)(PLANNED, [cell()], told.append) is None
    assert told[-1] == "no passport of the tester: the engine died"


@pytest.mark.parametrize(("alive", "measured"), [(True, False), (False, True)])
def test_a_lab_that_is_kept_is_in_the_way_and_what_a_killed_run_left_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alive: bool, measured: bool
) -> None:
    lab_there = LabStatus("wire", datetime.now(UTC), None, alive, (), ())
    monkeypatch.setattr("dutperf.lab.running", lambda: [lab_there])
    engine, told = FakeEngine(step(LIMIT_FPS)), list[str]()
    maker(tmp_path, engine)(_lab("linux-router"), [cell()], told.append)
    assert bool(engine.trials) == measured
    assert any("is kept" in text for text in told) == alive


# --- which loops there are


def test_ports_that_need_a_cable_have_no_loop_unless_there_is_one() -> None:
    planned = PlannedTestbed(testbed=TESTBED)
    assert loop_of(planned) is None
    with pytest.raises(InputError, match="cannot be connected"):
        check_loop(loop_of(planned))
    assert check_loop(loop_of(planned, cabled=True)).planned.testbed.left.port == (
        TESTBED.left.port
    )


def test_a_cable_is_offered_no_more_than_the_testbed_allows() -> None:
    allowed = TESTBED.model_copy(update={"max_rate_fps": 1000})
    loop = check_loop(loop_of(PlannedTestbed(testbed=allowed), cabled=True))
    assert loop.planned.testbed.max_rate_fps == 1000


def test_a_testbed_with_several_ports_on_a_side_has_none_and_says_so(
    tmp_path: Path,
) -> None:
    planned = PlannedTestbed(testbed=several_ports.testbed(2))
    of = cell(planned.testbed)
    assert sent_by(of) == []
    known = passport_of(cell())
    assert entries_of(of, known) == []
    assert first_load_fps(of, known) is None
    told: list[str] = []
    engine = FakeEngine(step(LIMIT_FPS))
    assert maker(tmp_path, engine)(planned, [of], told.append) is None
    assert engine.trials == []
    (notice,) = told
    assert notice.startswith("no passport of the tester: passports are of one port on")
    with pytest.raises(InputError, match="one port on each side"):
        loop_of(planned, cabled=True)


def test_what_was_measured_with_a_cable_counts_without_it(tmp_path: Path) -> None:
    planned = PlannedTestbed(testbed=TESTBED)
    engine = FakeEngine(step(LIMIT_FPS))
    make = maker(tmp_path, engine)
    assert make(planned, [cell()], _ignore) is None
    cabled = check_loop(loop_of(planned, cabled=True))
    made_by_cable = make.made(cabled, sent_by(cell()), _ignore)
    sent = len(engine.trials)
    assert make(planned, [cell()], _ignore) == made_by_cable
    assert make(planned, [cell(frame_size=[512])], _ignore) == made_by_cable
    assert len(engine.trials) == sent


def test_a_lab_on_veth_pairs_has_the_wire_and_others_have_shared_memory() -> None:
    wire = loop_of(_lab("linux-firewall"))
    assert wire
    assert wire.planned.lab == LabKeys(name="wire")
    assert loop_of(_lab("linux-router")) == wire
    memif = check_loop(loop_of(_lab("known-answer")))
    assert memif.planned.lab is None
    ends = [side.port.model_dump() for side in memif.planned.testbed.sides.values()]
    assert len({end["memif"] for end in ends}) == 1
    assert [end["role"] for end in ends] == ["server", "client"]


def _lab(name: str) -> PlannedTestbed:
    from dutperf import lab

    return PlannedTestbed(lab=LabKeys(name=name), testbed=lab.plan(name))


@pytest.mark.parametrize(
    "traffic",
    [
        {"addresses": 256},
        {"networks": 256},
        {"addresses": 60000},
        {"mix": "50/50", "background_ip": 4},
        {"imix": "aaafg"},
        {"flows": 1000},
        {"flows": 1000, "flows_by": "addresses"},
        {"flow_label": "random", "mac": "random"},
    ],
)
def test_each_profile_fits_a_loop(traffic: dict[str, Any]) -> None:
    of = cell(traffic=traffic)
    loop = connected(RING, {name: side.port for name, side in RING.sides.items()})
    for sent in sent_by(of):
        found = cell_of(sent, loop, SHORT)
        assert found.frame_sizes == of.frame_sizes
        assert sent_by(found) == [sent]


def test_the_default_grid_fits_a_loop_and_names_each_entry_once() -> None:
    loop = connected(RING, {name: side.port for name, side in RING.sides.items()})
    grid = list(default_grid([4, 6]))
    assert len({sent.model_dump_json() for sent in grid}) == len(grid)
    for sent in grid:
        assert sent_by(cell_of(sent, loop, SHORT)) == [sent]


def test_a_translators_cell_needs_the_frames_of_both_sides() -> None:
    procedures = [spec(ip=["6-4"], frame_size=[104])]
    whole = Campaign(name="t", testbed=[TRANSLATOR], procedures=procedures)
    (of,) = expand(whole, TRANSLATOR)
    assert [(s.ip, s.frame_sizes) for s in sent_by(of)] == [(4, [84]), (6, [104])]
    slow, fast = (
        entry_with(s, safe_rate_fps=r) for s, r in zip(sent_by(of), (7, 9), strict=True)
    )
    both = Passport(owner=OWNER, entries=[slow, fast])
    assert first_load_fps(of, both) == 7
    assert first_load_fps(of, Passport(owner=OWNER, entries=[fast])) is None


# --- what a result says of it


def result_of(of: Cell, **keys: Any) -> CellResult:  # noqa: ANN401
    given: dict[str, Any] = {
        "id": of.id,
        "cell": of,
        "procedure": of.procedure,
        "quantity": "q",
        "parameters": {},
        "median": 50_000,
        "unit": "fps",
        "repeats": [],
        "verdict": "pass",
    }
    return CellResult.model_validate(given | keys)


@pytest.mark.parametrize(
    ("median", "share", "near"),
    [
        (50_000, 50.0, False),
        (90_000, 90.0, False),
        (90_001, 90.001, True),
        (150_000, 150.0, True),
    ],
)
def test_a_result_above_90_percent_of_the_safe_rate_is_marked(
    median: float, share: float, near: bool
) -> None:
    of = cell()
    found = beside_passport(result_of(of, median=median), of, passport_of(of), [])
    assert found.passport
    assert found.passport.share_percent == pytest.approx(share)
    assert [f.kind for f in found.findings] == (["near_limit"] if near else [])


def test_a_result_without_a_rate_or_a_passport_is_not_marked() -> None:
    of = cell()
    nothing = result_of(of, median=None)
    assert beside_passport(nothing, of, None, []) == nothing
    found = beside_passport(nothing, of, passport_of(of), [])
    assert found.passport
    assert (found.passport.share_percent, found.findings) == (None, [])
    unsafe = passport_of(of, safe_rate_fps=None)
    found = beside_passport(result_of(of), of, unsafe, [])
    assert found.passport
    assert (found.passport.share_percent, found.findings) == (None, [])
    assert first_load_fps(of, unsafe) is None


def test_what_a_labs_device_does_for_the_tester_is_told() -> None:
    """1,000 ns for each of 2 x 50,000 frames a second is a tenth of its time."""
    of = cell()
    known = passport_of(of, device_ns_per_frame=1000.0)
    found = beside_passport(result_of(of), of, known, [])
    assert found.passport
    assert found.passport.device_share_percent == pytest.approx(10.0)
    one_way = cell(direction=["forward"])
    known = passport_of(one_way, device_ns_per_frame=1000.0)
    found = beside_passport(result_of(one_way), one_way, known, [])
    assert found.passport
    assert found.passport.device_share_percent == pytest.approx(5.0)


def test_delays_below_the_floor_are_told_as_below_it() -> None:
    of = cell()
    floor = PassportDelay(
        rate_fps=10, frames=100, minimum_ns=1000, typical_ns=5000, worst_ns=90_000
    )
    found = beside_passport(
        result_of(of, measures=[_measure("TL", 4999.0), _measure("WCL", 90_000.0)]),
        of,
        passport_of(of, delays=[floor]),
        [],
    )
    typical, worst = found.measures
    assert (typical.result.value, typical.result.below_ns) == (4999.0, 5000.0)
    assert worst.result.below_ns is None
    assert typical.percentile_1.below_ns == 5000.0


def _measure(name: str, value: float) -> Measure:
    figure = MeasuredValue(value=value)
    return Measure(
        name=name,
        quantity=name,
        direction="forward",
        repeats=[figure],
        samples=[1],
        lost=[0],
        count=1,
        result=figure,
        percentile_1=figure,
        percentile_99=figure,
    )


# --- in a run


def run(
    path: Path,
    engine: FakeEngine,
    passport: Passport | None,
    resume: Path | None = None,
) -> ResultsFile:
    around = Surroundings(
        open_engine=FakeOpener(engine),
        write_report=write_report,
        sleep=lambda _seconds: None,
        passport=lambda _planned, _cells, _notify: passport,
    )
    return run_campaign(
        campaign(spec()),
        [PlannedTestbed(testbed=TESTBED)],
        around,
        on_event=_ignore,
        kind="campaign",
        results_dir=None if resume else path,
        resume=resume,
    )


def test_a_search_begins_at_the_safe_rate_and_goes_on_to_the_maximum(
    tmp_path: Path,
) -> None:
    of = cell()
    slower, faster = FakeEngine(step(60_000)), FakeEngine(step(300_000))
    run(tmp_path / "slower", slower, passport_of(of))
    loads = [trial.directions[0].rate_fps for trial in slower.trials]
    assert 100_000 in loads
    assert max(loads) == 100_000
    results = run(tmp_path / "faster", faster, passport_of(of))
    loads = [trial.directions[0].rate_fps for trial in faster.trials]
    assert loads.index(100_000) < loads.index(1_000_000)
    assert results.cells[0].median == pytest.approx(300_000, rel=0.01)


def test_a_resumed_run_goes_by_the_passport_it_began_with(tmp_path: Path) -> None:
    of = cell()
    path = tmp_path / "run"
    stopped = FakeEngine(step(60_000), troubles={4: KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt):
        run(path, stopped, passport_of(of))
    kept = load_environment(path).passport
    assert kept == passport_of(of)
    other = passport_of(of, safe_rate_fps=777)
    resumed = run(path, FakeEngine(step(60_000)), other, resume=path)
    straight = run(tmp_path / "straight", FakeEngine(step(60_000)), passport_of(of))
    assert resumed.cells[0].median == straight.cells[0].median
    assert resumed.cells[0].passport == straight.cells[0].passport
    loads = [[t.load_fps for t in each.trials] for each in (resumed, straight)]
    assert loads[0] == loads[1]


def test_terminal_and_report_show_the_share(tmp_path: Path) -> None:
    results = run(tmp_path / "run", FakeEngine(step(95_000)), passport_of(cell()))
    shown = {table.key: table for table in tables(list(subjects(results)), [])}
    assert "passport" in shown
    page = (tmp_path / "run" / "report.html").read_text()
    assert 'data-key="passport"' in page
    assert re.search(r"Tester: 9\d\s?% of 100,000.fps", page)
    assert "its own limit" in page


def test_entries_that_are_not_all_there_are_not_used() -> None:
    of = cell()
    assert entries_of(of, None) == []
    assert entries_of(of, Passport(owner=OWNER)) == []


def _ignore(_anything: object) -> None:
    pass


# --- connections


@pytest.mark.parametrize("procedure", ["connection-rate", "throughput", "pdv"])
def test_connections_are_opened_and_used_without_a_device(
    tmp_path: Path, procedure: str
) -> None:
    keys: dict[str, Any] = {"procedure": procedure, "stateful": {"connections": 900}}
    if procedure == "pdv":
        keys["rate_fps"] = 1000
    if procedure != "connection-rate":
        keys["stateful"]["phase1_rate"] = 1000
    of = cell(**keys)
    (sent,) = sent_by(of)
    assert (sent.connections, sent.opens) == (900, procedure == "connection-rate")
    entry = made(tmp_path, FakeEngine(step(LIMIT_FPS)), of)
    assert entry.safe_rate_fps
    assert 0.8 * LIMIT_FPS < entry.safe_rate_fps <= LIMIT_FPS
    assert entry.delays or sent.opens


def test_the_tester_need_not_learn_more_than_some_connections() -> None:
    many = cell(
        procedure="connection-rate",
        stateful={"connections": 40_000_000},
    )
    (sent,) = sent_by(many)
    assert sent.connections == 100_000


class SpoiltOpenings(FakeEngine):
    """Each third time it is disturbed while it opens connections."""

    opened = 0

    def measure(
        self, trial: TrialRequest, on_progress: ProgressCallback = ignore_progress
    ) -> TrialResult:
        """Simulate ``trial``."""
        self.opened += trial.learn is not None
        result = super().measure(trial, on_progress)
        if trial.learn is None or self.opened % 3:
            return result
        why = Reason(code="sender_behind", message="the tester was disturbed")
        verdict = Verdict(kind="invalid", reasons=[why])
        return result.model_copy(update={"verdict": verdict})


def test_what_spoils_the_opening_of_connections_says_nothing_of_the_rate(
    tmp_path: Path,
) -> None:
    keys = {"stateful": {"connections": 900, "phase1_rate": 1000}}
    of = cell(procedure="throughput", **keys)
    entry = made(tmp_path, SpoiltOpenings(step(LIMIT_FPS)), of)
    assert entry.trials == SHORT.trials
    assert entry.safe_rate_fps == entry.highest_rate_fps
    assert 0.9 * LIMIT_FPS < (entry.safe_rate_fps or 0) <= LIMIT_FPS


def test_connections_are_opened_as_fast_as_is_safe() -> None:
    opened = next(sent for sent in default_grid([4]) if sent.opens)
    used = opened.model_copy(update={"opens": False, "direction": "both"})
    known = Passport(owner=OWNER, entries=[entry_with(opened, safe_rate_fps=1000)])
    assert opened_at_fps(used, known) == 500
    assert opened_at_fps(used.model_copy(update={"ip": 6}), known) == OPENED_AT_FPS


def test_a_kind_of_frames_that_cannot_be_reached_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def resolve(
        _engine: object, _bed: object, cells: list[Cell], _tell: object
    ) -> None:
        if cells[0].ip == 6:
            raise SetupError("2001:2::1 on the left does not answer")

    monkeypatch.setattr(making, "resolve_neighbours", resolve)
    make = maker(tmp_path, FakeEngine(step(LIMIT_FPS)))
    four, six = sent_by(cell(ip=[4])), sent_by(cell(ip=[6]))
    told: list[str] = []
    passport = make.made(check_loop(loop_of(PLANNED)), [*six, *four], told.append)
    assert [entry.sent for entry in passport.entries] == four
    assert "2001:2::1 on the left does not answer" in told[0]
    with pytest.raises(SetupError, match="does not answer"):
        make.made(check_loop(loop_of(PLANNED)), six, told.append)


def test_connections_are_opened_no_faster_than_the_testbed_allows() -> None:
    slow = RING.model_copy(update={"max_rate_fps": 2_000})
    for sent in default_grid([4]):
        if sent.connections:
            measured = cell_of(sent, slow, SHORT)
            assert measured.spec.max_rate_fps == 2_000
            if not sent.opens:
                assert stateful_of(measured).phase1_rate == 2_000
