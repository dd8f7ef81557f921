"""The engine's side of the socket: wrong lines, busy answers, aborts, a lost client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from livetools import (
    BOTH,
    NO_ODD_FRAMES,
    STALLS,
    RawEngine,
    Trial,
    codes,
    counting,
    crossed_neighbours,
    odd_frames,
    raw_engine,
)

from dutperf.protocol.methods import (
    ERROR_ENVIRONMENT,
    ERROR_INVALID_PARAMS,
    ERROR_INVALID_REQUEST,
    ERROR_PARSE,
    ERROR_STATE,
    ERROR_UNKNOWN_METHOD,
    METHODS,
)
from dutperf.protocol.port_messages import NeighboursParams
from dutperf.protocol.result_messages import TrialResult
from tools.calibrate.truth import Counts
from tools.calibrate.truth import by_result as counts

pytestmark = counting(__name__)

LONG = Trial(ms=60_000, fps=2000)
GARBAGE: dict[str, tuple[bytes, int]] = {
    "no JSON": (b"garbage", ERROR_PARSE),
    "an empty line": (b"", ERROR_PARSE),
    "half an object": (b'{"jsonrpc":"2.0","id":1,', ERROR_PARSE),
    "bytes that are no text": (b"\xff\xfe\x00", ERROR_PARSE),
    "a number that is too large": (b"1e999", ERROR_PARSE),
    "brackets without end": (b"[" * 100_000, ERROR_PARSE),
    "a list": (b"[]", ERROR_INVALID_REQUEST),
    "a word": (b'"engine.hello"', ERROR_INVALID_REQUEST),
    "no method": (b'{"jsonrpc":"2.0","id":1}', ERROR_INVALID_REQUEST),
    "no id": (b'{"jsonrpc":"2.0","method":"engine.hello"}', ERROR_INVALID_REQUEST),
    "another version": (
        b'{"jsonrpc":"1.0","id":1,"method":"engine.hello"}',
        ERROR_INVALID_REQUEST,
    ),
    "a method that is a number": (
        b'{"jsonrpc":"2.0","id":1,"method":7}',
        ERROR_INVALID_REQUEST,
    ),
    "an unknown method": (
        b'{"jsonrpc":"2.0","id":1,"method":"engine.selfdestruct"}',
        ERROR_UNKNOWN_METHOD,
    ),
    "params that are a list": (
        b'{"jsonrpc":"2.0","id":1,"method":"trial.run","params":[1]}',
        ERROR_INVALID_PARAMS,
    ),
    "params where none belong": (
        b'{"jsonrpc":"2.0","id":1,"method":"engine.hello","params":{"loud":true}}',
        ERROR_INVALID_PARAMS,
    ),
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RawEngine]:
    with raw_engine(tmp_path_factory.mktemp("protocol")) as it:
        it.open_rings()
        yield it


@pytest.fixture
def own_engine(tmp_path: Path) -> Iterator[RawEngine]:
    """An engine that the test may end."""
    with raw_engine(tmp_path) as it:
        yield it


def run(engine: RawEngine, trial: Trial) -> int:
    return engine.send("trial.run", trial.request().model_dump())


def finished(engine: RawEngine, request: int) -> TrialResult:
    return TrialResult.model_validate(engine.answer_to(request).result)


def passes(engine: RawEngine) -> bool:
    """Whether an ordinary trial has an ordinary result."""
    result = finished(engine, run(engine, Trial(extra={"settle_ns": 0})))
    assert odd_frames(result) == NO_ODD_FRAMES
    return counts(result) == dict.fromkeys(BOTH, Counts(500, 500))


def error_code(engine: RawEngine, line: bytes) -> int:
    response = engine.line(line)
    assert response.error is not None
    assert response.error.message
    return response.error.code


@pytest.mark.parametrize("what", GARBAGE)
def test_a_wrong_line_is_answered_with_its_error_code(
    engine: RawEngine, what: str
) -> None:
    line, code = GARBAGE[what]
    assert error_code(engine, line) == code


def test_an_engine_that_got_garbage_measures_as_before(engine: RawEngine) -> None:
    for line, _ in GARBAGE.values():
        engine.line(line)
    assert passes(engine)


@pytest.mark.parametrize("what", GARBAGE)
def test_a_wrong_line_in_mid_trial_does_not_end_the_trial(
    engine: RawEngine, what: str
) -> None:
    trial = run(engine, Trial(ms=100))
    error = engine.line(GARBAGE[what][0]).error
    assert error is not None
    result = finished(engine, trial)
    assert counts(result) == dict.fromkeys(BOTH, Counts(1000, 1000))


def test_an_error_answers_the_request_that_caused_it(engine: RawEngine) -> None:
    assert engine.line(b'{"jsonrpc":"2.0","id":77,"method":"nothing"}').id == 77
    assert engine.line(b'{"jsonrpc":"2.0","id":78}').id == 78
    assert engine.line(b"?").id is None


def test_a_line_may_arrive_in_pieces(engine: RawEngine) -> None:
    line = b'{"jsonrpc":"2.0","id":5,"method":"engine.hello"}\n'
    for position in range(len(line)):
        engine.socket.sendall(line[position : position + 1])
    assert engine.next_response().id == 5


def test_requests_may_arrive_together(engine: RawEngine) -> None:
    hello = {"jsonrpc": "2.0", "method": "engine.hello"}
    lines = [json.dumps(hello | {"id": number}) for number in (1, 2, 3)]
    engine.socket.sendall("\n".join(lines).encode() + b"\n")
    assert [engine.next_response().id for _ in lines] == [1, 2, 3]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"colour": 1}, "colour"),
        ({"trial_id": 0}, "trial_id"),
        ({"trial_id": "1"}, "trial_id"),
        ({"duration_ns": -1}, "duration_ns"),
        ({"duration_ns": 1.5}, "duration_ns"),
        ({"verify_checksums": 1}, "verify_checksums"),
        ({"directions": []}, "directions"),
        ({"burst_limit": 65}, "burst_limit"),
        ({"seed": 2**63}, "seed"),
    ],
)
def test_a_wrong_trial_is_refused_by_the_name_of_its_key(
    engine: RawEngine, change: dict[str, Any], named: str
) -> None:
    response = engine.call("trial.run", Trial().request().model_dump() | change)
    assert response.error is not None
    assert response.error.code == ERROR_INVALID_PARAMS
    assert named in response.error.message


def test_a_trial_that_no_memory_can_account_for_is_refused(engine: RawEngine) -> None:
    huge = Trial(fps=10**9, ms=1_000_000).request().model_dump()
    huge["record"]["tracking_mb"] = 2**20
    response = engine.call("trial.run", huge)
    assert response.error is not None
    assert response.error.code == ERROR_ENVIRONMENT
    assert "MiB" in response.error.message


def test_an_abort_ends_the_running_trial_at_once(engine: RawEngine) -> None:
    trial = run(engine, LONG)
    engine.await_frames()
    assert engine.call("trial.abort").error is None
    result = finished(engine, trial)
    assert (result.verdict.kind, codes(result)) == ("invalid", {"aborted"})
    assert all(0 < c.sent < 120_000 for c in counts(result).values())
    assert passes(engine)


def test_an_abort_in_the_settle_wait_sends_nothing(engine: RawEngine) -> None:
    trial = run(engine, Trial(extra={"settle_ns": 60 * 10**9}))
    assert engine.call("trial.abort").error is None
    result = finished(engine, trial)
    assert (result.verdict.kind, codes(result)) == ("invalid", {"aborted"})
    assert counts(result) == dict.fromkeys(BOTH, Counts(0, 0))
    assert passes(engine)


def test_an_abort_in_the_residual_wait_ends_it(engine: RawEngine) -> None:
    trial = run(engine, Trial(extra={"residual_wait_ns": 60 * 10**9}))
    engine.await_frames()
    assert engine.call("trial.abort").error is None
    assert codes(finished(engine, trial)) == {"aborted"}
    assert passes(engine)


def test_an_abort_without_a_trial_does_nothing(engine: RawEngine) -> None:
    assert engine.call("trial.abort").result == {}
    assert passes(engine)


def test_an_abort_while_next_hops_are_asked_is_an_abort(engine: RawEngine) -> None:
    nobody = NeighboursParams.model_validate(
        {"ports": [{"port": "left", "own": [], "resolve": ["198.18.0.99"]}]}
    )
    silent = nobody.model_copy(update={"timeout_ns": 60 * 10**9}).model_dump()
    setting = engine.send("neighbours.set", silent)
    assert engine.call("trial.abort").error is None
    assert engine.answer_to(setting).error is None
    trial = run(engine, Trial())
    assert engine.call("trial.abort").error is None
    assert codes(finished(engine, trial)) == {"aborted"}
    engine.open_rings()


def test_a_stop_ends_sending_and_loses_no_frame(engine: RawEngine) -> None:
    for _ in range(3):
        trial = run(engine, Trial(ms=60_000, fps=50_000))
        engine.await_frames()
        assert engine.call("trial.stop").error is None
        result = finished(engine, trial)
        assert result.verdict.kind == "pass" or codes(result) <= STALLS
        assert result.ended_early
        for each in counts(result).values():
            assert 0 < each.sent == each.received < 3_000_000
        assert odd_frames(result) == NO_ODD_FRAMES
    assert passes(engine)


def test_a_stop_in_the_settle_wait_ends_it_and_sends_nothing(engine: RawEngine) -> None:
    trial = run(engine, Trial(extra={"settle_ns": 60 * 10**9}))
    assert engine.call("trial.stop").error is None
    result = finished(engine, trial)
    assert codes(result) <= STALLS
    for each in counts(result).values():
        assert each.sent == each.received == 0
    assert passes(engine)


def test_what_a_trial_that_did_not_run_would_have_announced_is_not_sent(
    engine: RawEngine,
) -> None:
    nobody = crossed_neighbours(timeout_ms=1).model_dump()
    nobody["ports"][0]["resolve"] = ["198.18.0.99"]
    assert engine.call("neighbours.set", nobody).error is None
    packet = "45" + "00" * 19
    announcing = {"announcements": [{"port": "left", "at_ns": 0, "packet": packet}]}
    result = finished(engine, run(engine, Trial(extra=announcing)))
    assert codes(result) == {"neighbour_missing"}
    assert [port.announced for port in result.ports] == [0, 0]
    neighbours = crossed_neighbours().model_dump()
    assert engine.call("neighbours.set", neighbours).error is None
    result = finished(engine, run(engine, Trial()))
    assert odd_frames(result) == NO_ODD_FRAMES


def test_a_stop_without_a_trial_does_nothing_to_the_next(engine: RawEngine) -> None:
    assert engine.call("trial.stop").result == {}
    assert passes(engine)


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"trial.abort", "trial.stop"}))
def test_a_busy_engine_refuses_all_but_an_abort(engine: RawEngine, method: str) -> None:
    trial = run(engine, Trial(ms=100))
    response = engine.call(method)
    assert response.error is not None
    assert response.error.code == ERROR_STATE
    assert "trial.abort" in response.error.data.hint
    assert counts(finished(engine, trial)) == dict.fromkeys(BOTH, Counts(1000, 1000))


@pytest.mark.parametrize("method", ["ports.status", "neighbours.set", "trial.run"])
def test_methods_that_need_ports_say_so(own_engine: RawEngine, method: str) -> None:
    params: dict[str, dict[str, Any]] = {
        "ports.status": {},
        "neighbours.set": {"ports": []},
        "trial.run": Trial().request().model_dump(),
    }
    response = own_engine.call(method, params[method])
    assert response.error is not None
    assert response.error.code == ERROR_STATE
    assert "ports.open" in response.error.data.hint


def test_shutdown_is_answered_before_the_end(own_engine: RawEngine) -> None:
    assert own_engine.call("engine.shutdown").result == {}
    assert own_engine.process.wait(5) == 0


def test_closing_the_socket_in_mid_trial_ends_the_engine(own_engine: RawEngine) -> None:
    own_engine.open_rings()
    run(own_engine, LONG)
    own_engine.await_frames()
    own_engine.socket.close()
    assert own_engine.process.wait(5) == 0


def test_closing_the_socket_while_idle_ends_the_engine(own_engine: RawEngine) -> None:
    assert own_engine.call("engine.hello").error is None
    own_engine.socket.close()
    assert own_engine.process.wait(5) == 0


def test_an_engine_on_a_missing_cpu_refuses_with_a_reason(tmp_path: Path) -> None:
    with raw_engine(tmp_path, arguments={"--worker-cpus": "999"}) as engine:
        response = engine.call("engine.hello")
        assert response.error is not None
        assert response.error.code == ERROR_ENVIRONMENT
        assert response.error.data.hint
        assert engine.process.wait(5) == 1


def test_an_engine_with_more_memory_than_there_is_refuses(tmp_path: Path) -> None:
    with raw_engine(tmp_path, arguments={"--memory-mb": str(2**23)}) as engine:
        response = engine.call("engine.hello")
        assert response.error is not None
        assert response.error.code == ERROR_ENVIRONMENT
        assert "memory_mb" in response.error.data.hint
