"""Results of cells with management queries, on simulated agents."""

from __future__ import annotations

from typing import Any

import pytest
from planning import Recording, cell

from dutperf.procedures.cell_results import with_management
from dutperf.procedures.max_rate import MaxRate
from dutperf.protocol.result_messages import Answer, TrialResult
from dutperf.results import CellResult, TrialRecord
from dutperf.results.words import management_sentence
from dutperf.run.local_executor import measure_cell
from dutperf.simulation.fake_engine import FakeEngine, perfect, step
from dutperf.simulation.simulated_gateway import SimulatedAgent
from oracle.management import management

LIMIT = MaxRate(20_000, "media")
ASKED = cell(
    ip=[4],
    traffic={"management": True},
    trial_duration_s=2,
    resolution="10%",
    max_rate_fps=LIMIT.rate_fps,
)


def records(engine: FakeEngine) -> tuple[CellResult, list[TrialRecord]]:
    recording = Recording(engine)
    return measure_cell(recording.runner, ASKED, LIMIT), recording.records


def concluded(result: CellResult, own: list[TrialRecord]) -> CellResult:
    """By both implementations."""
    found = with_management(result, ASKED, own)
    assert found.management
    again = management([record.model_dump(mode="json") for record in own])
    assert again == found.management.model_dump()
    return found


def measured(agent: SimulatedAgent | None, **keys: Any) -> CellResult:  # noqa: ANN401
    return concluded(*records(FakeEngine(perfect(), agent=agent, **keys)))


def test_all_that_were_asked_were_answered() -> None:
    found = measured(SimulatedAgent(after_ns=1_250_000))
    count = found.management
    assert count
    assert count.asked == count.answered > 0
    assert count.asked % 2 == 0
    assert (count.wrong, count.slowest_ns, found.findings) == (0, 1_250_000, [])
    assert management_sentence(found) == (
        f"SNMP queries beside the stream: {count.asked} asked, all answered, the "
        "slowest within 1.25 ms"
    )
    assert "one SNMP query a second (RFC 2544 11.2) in the load" in found.quantity


@pytest.mark.parametrize(
    ("agent", "answered", "says"),
    [
        (SimulatedAgent("private"), 0, "does it take the testbed's snmp.community"),
        (SimulatedAgent(interfaces=0), 0, "has the device the interface"),
        (SimulatedAgent(silent_every=2), 1, "answered with all values"),
    ],
)
def test_what_was_not_answered_is_told(
    agent: SimulatedAgent, answered: int, says: str
) -> None:
    found = measured(agent)
    count = found.management
    assert count
    trials = count.asked // 2
    assert count.answered == answered * trials
    (finding,) = found.findings
    assert finding.kind == "unanswered"
    assert f"of {count.asked} SNMP queries {count.answered} were" in finding.message
    assert says in finding.message


def test_only_trials_that_passed_are_counted() -> None:
    result, own = records(FakeEngine(step(5000)))
    assert {record.result.verdict.kind for record in own} == {"pass", "fail"}
    passed = [r for r in own if r.result.verdict.kind == "pass" and r.role == "trial"]
    found = concluded(result, own).management
    assert found
    assert found.asked == 2 * len(passed)


def changed(record: TrialRecord, change: Any) -> TrialRecord:  # noqa: ANN401 - a function
    result: TrialResult = record.result
    ports = [
        port.model_copy(update={"answers": change(port.answers)})
        for port in result.ports
    ]
    update = {"result": result.model_copy(update={"ports": ports})}
    return record.model_copy(update=update)


def answered(change: Any) -> tuple[int, int, int]:  # noqa: ANN401 - a function
    """Asked, answered and wrong of one trial whose answers were changed."""
    result, own = records(FakeEngine(perfect()))
    one = next(r for r in own if r.role == "trial")
    found = concluded(result, [changed(one, change)]).management
    assert found
    return found.asked, found.answered, found.wrong


def flipped(answer: Answer, place: int) -> Answer:
    packet = bytearray.fromhex(answer.packet)
    packet[place] ^= 1
    return answer.model_copy(update={"packet": packet.hex()})


def test_an_answer_counts_once_and_a_damaged_one_is_none() -> None:
    assert answered(lambda told: told) == (2, 2, 0)
    assert answered(lambda told: told + told) == (2, 2, 0)
    assert answered(lambda told: told[:1] + told[:1]) == (2, 1, 0)
    assert answered(lambda told: [flipped(a, -1) for a in told]) == (2, 0, 2)
    assert answered(lambda told: [flipped(a, 8) for a in told]) == (2, 0, 0)
    assert answered(lambda _told: []) == (2, 0, 0)


def test_queries_that_never_left_were_not_asked() -> None:
    result, own = records(FakeEngine(perfect()))
    one = next(r for r in own if r.role == "trial")
    ports = [p.model_copy(update={"announced": 0}) for p in one.result.ports]
    held = one.result.model_copy(update={"ports": ports})
    found = concluded(result, [one.model_copy(update={"result": held})]).management
    assert found
    assert found.asked == 0


def test_trials_of_older_files_announced_nothing() -> None:
    _, own = records(FakeEngine(perfect()))
    older = [record.model_dump(mode="json") for record in own]
    for trial in older:
        del trial["request"]["announcements"]
        for port in trial["result"]["ports"]:
            del port["answers"], port["announced"]
    assert management(older) is None
