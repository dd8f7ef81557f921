"""The client against a scripted engine on a socket pair."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dutperf.engine.client import Ending, Engine
from dutperf.errors import EngineError
from dutperf.protocol.methods import PreviewParams
from dutperf.protocol.port_messages import NeighboursParams, PortSpec
from dutperf.protocol.stream_messages import DirectionRequest, StreamRequest
from dutperf.protocol.trial_messages import TrialProgress, TrialRequest
from dutperf.simulation.fake_engine import FakeEngine, perfect

TRIAL = TrialRequest(
    trial_id=7,
    duration_ns=1_000_000,
    settle_ns=0,
    residual_wait_ns=0,
    directions=[
        DirectionRequest(
            name="forward",
            rate_fps=1000,
            streams=[
                StreamRequest(
                    id=0,
                    ip_version=4,
                    frame_sizes=[64],
                    received_frame_sizes=[64],
                    src_ip="198.18.0.2",
                    dst_ip="198.19.0.2",
                    next_hop="198.18.0.1",
                )
            ],
        )
    ],
)
HELLO = FakeEngine(perfect()).hello().model_dump()
PROGRESS = {
    "trial_id": 7,
    "phase": "running",
    "elapsed_ns": 5,
    "sent": 1,
    "received": 1,
}

Request = dict[str, Any]
Reply = dict[str, Any] | bytes
Answer = Callable[[Request], list[Reply]]


def result(value: dict[str, Any]) -> Answer:
    return lambda request: [{"jsonrpc": "2.0", "id": request["id"], "result": value}]


def error(code: int, message: str, hint: str) -> Answer:
    told = {"code": code, "message": message, "data": {"hint": hint}}
    return lambda request: [{"jsonrpc": "2.0", "id": request["id"], "error": told}]


def notification(method: str, params: dict[str, Any]) -> Reply:
    return {"jsonrpc": "2.0", "method": method, "params": params}


class ScriptedEngine:
    """Answers the requests in turn with the answers it was given, then hangs up."""

    def __init__(self) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.requests: list[Request] = []
        self._thread = threading.Thread(target=self._serve)
        self._answers: list[Answer] = []
        self._hang_up = True

    def start(self, *answers: Answer, hang_up: bool = True) -> None:
        self._answers = list(answers)
        self._hang_up = hang_up
        self._thread.start()

    def _serve(self) -> None:
        lines = self.theirs.makefile("rb")
        for answer in self._answers:
            line = lines.readline()
            if not line:
                break
            self.requests.append(json.loads(line))
            for reply in answer(self.requests[-1]):
                text = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
                self.theirs.sendall(text + b"\n")
        lines.close()
        if self._hang_up:
            self.theirs.close()

    def end(self) -> None:
        self.ours.close()
        if self._thread.ident:
            self._thread.join(timeout=10)
        self.theirs.close()


@pytest.fixture
def scripted() -> Iterator[ScriptedEngine]:
    server = ScriptedEngine()
    yield server
    server.end()


@pytest.fixture
def engine(scripted: ScriptedEngine, tmp_path: Path) -> Engine:
    log = tmp_path / "engine.log"
    log.write_text(
        "EAL: started\nengine: CHECK failed\nlibxdp: Error: no bpffs\nEAL: done\n\n"
    )
    return Engine(
        scripted.ours,
        log_path=log,
        how_it_ended=lambda: Ending("signal 9"),
        end_timeout_s=0.2,
    )


def test_hello_returns_what_the_engine_says(
    scripted: ScriptedEngine, engine: Engine
) -> None:
    scripted.start(result(HELLO))
    assert engine.hello().model_dump() == HELLO
    assert scripted.requests == [
        {"jsonrpc": "2.0", "id": 1, "method": "engine.hello", "params": {}}
    ]


def test_another_protocol_version_is_refused_with_a_hint(
    scripted: ScriptedEngine, engine: Engine
) -> None:
    scripted.start(result(HELLO | {"protocol_version": 99}))
    with pytest.raises(EngineError, match="version 99") as caught:
        engine.hello()
    assert "make setup" in caught.value.hint


def test_an_error_keeps_code_message_and_hint(
    scripted: ScriptedEngine, engine: Engine
) -> None:
    scripted.start(error(1, "no such device", "plug it in"))
    with pytest.raises(EngineError) as caught:
        engine.open_ports(
            [
                PortSpec(name="left", driver="null"),
                PortSpec(name="right", driver="null"),
            ]
        )
    refused = caught.value
    assert (refused.rpc_code, refused.message, refused.hint) == (
        1,
        "no such device",
        "plug it in",
    )


def test_a_trial_reports_progress_and_then_its_result(
    scripted: ScriptedEngine, engine: Engine
) -> None:
    expected = FakeEngine(perfect()).measure(TRIAL)

    def answer(request: Request) -> list[Reply]:
        reports: list[Reply] = [notification("trial.progress", PROGRESS)] * 2
        return [*reports, *result(expected.model_dump())(request)]

    scripted.start(answer)
    seen: list[TrialProgress] = []
    assert engine.measure(TRIAL, seen.append) == expected
    assert seen == [TrialProgress.model_validate(PROGRESS)] * 2
    assert scripted.requests[0]["params"] == TRIAL.model_dump()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda _r: [b"Segmentation fault"], "not JSON-RPC 2.0"),
        (lambda _r: [b"[1, 2]"], "not an object"),
        (lambda _r: [b'{"jsonrpc": "1.0", "id": 1, "result": {}}'], "jsonrpc"),
        (lambda _r: [b'{"jsonrpc": "2.0", "id": 1}'], "exactly one of"),
        (lambda _r: [b'{"jsonrpc":"2.0","id":42,"result":{}}'], "request 42"),
        (lambda _r: [notification("engine.gossip", {})], "engine.gossip"),
        (lambda _r: [notification("trial.progress", {"x": 1})], "trial.progress"),
        (result({"surprise": 1}), "answer to engine.hello is not understood"),
    ],
)
def test_what_is_not_the_protocol_is_an_engine_error(
    scripted: ScriptedEngine, engine: Engine, answer: Answer, told: str
) -> None:
    scripted.start(answer)
    with pytest.raises(EngineError, match=told):
        engine.hello()


def test_an_error_without_id_belongs_to_the_running_call(
    scripted: ScriptedEngine, engine: Engine
) -> None:
    told = {"code": -32700, "message": "parse error"}
    scripted.start(lambda _r: [{"jsonrpc": "2.0", "id": None, "error": told}])
    with pytest.raises(EngineError, match="parse error"):
        engine.hello()


def test_death_in_a_trial_names_signal_trial_log_and_last_telling_line(
    scripted: ScriptedEngine, engine: Engine, tmp_path: Path
) -> None:
    scripted.start(lambda _r: [notification("trial.progress", PROGRESS)])
    with pytest.raises(EngineError) as caught:
        engine.measure(TRIAL)
    assert caught.value.message == (
        "the engine ended (signal 9) during trial 7; "
        f"see {tmp_path / 'engine.log'}: engine: CHECK failed"
    )


def test_a_call_to_a_dead_engine_is_an_engine_error(
    scripted: ScriptedEngine, engine: Engine
) -> None:
    scripted.theirs.close()
    with pytest.raises(EngineError, match=r"ended \(signal 9\) during ports.status"):
        engine.port_status()


def test_a_silent_engine_does_not_hang_the_caller(
    scripted: ScriptedEngine, engine: Engine
) -> None:
    scripted.start(lambda _r: [], hang_up=False)
    with pytest.raises(EngineError, match=r"did not answer within 0.2 s"):
        engine.shutdown()


def test_after_an_interrupted_trial_abort_throws_its_result_away(
    scripted: ScriptedEngine, engine: Engine
) -> None:
    late = FakeEngine(perfect()).measure(TRIAL).model_dump()

    def abort(request: Request) -> list[Reply]:
        trial = scripted.requests[0]
        return [*result({})(request), *result(late)(trial)]

    scripted.start(
        lambda _r: [notification("trial.progress", PROGRESS)], abort, result(HELLO)
    )

    def interrupt(_progress: TrialProgress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.measure(TRIAL, interrupt)
    engine.abort()
    assert engine.hello().model_dump() == HELLO
    methods = [request["method"] for request in scripted.requests]
    assert methods == ["trial.run", "trial.abort", "engine.hello"]


@pytest.mark.parametrize("late", [False, True])
def test_a_stop_from_another_thread_has_the_trial_answer(
    scripted: ScriptedEngine, engine: Engine, *, late: bool
) -> None:
    """Its own answer comes before the trial's, or when that has been given already."""
    told = FakeEngine(perfect()).measure(TRIAL).model_dump()

    def stop(request: Request) -> list[Reply]:
        answers = [*result({})(request), *result(told)(scripted.requests[0])]
        return answers[::-1] if late else answers

    scripted.start(
        lambda _r: [notification("trial.progress", PROGRESS)], stop, result(HELLO)
    )

    def stop_elsewhere(_progress: TrialProgress) -> None:
        presser = threading.Thread(target=engine.stop)
        presser.start()
        presser.join()

    assert engine.measure(TRIAL, stop_elsewhere).model_dump() == told
    assert engine.hello().model_dump() == HELLO
    methods = [request["method"] for request in scripted.requests]
    assert methods == ["trial.run", "trial.stop", "engine.hello"]


def test_a_line_that_comes_in_pieces_is_one_message(
    scripted: ScriptedEngine, engine: Engine
) -> None:
    padded = json.dumps({"jsonrpc": "2.0", "id": 1, "result": HELLO}).encode()
    scripted.start(lambda _r: [padded.replace(b"{", b"{" + b" " * 200_000, 1)])
    assert engine.hello().model_dump() == HELLO


def test_neighbours_and_preview_speak_their_methods(
    scripted: ScriptedEngine, engine: Engine
) -> None:
    scripted.start(result({"neighbours": []}), result({"frames": 3}))
    engine.set_neighbours(NeighboursParams(ports=[]))
    preview = PreviewParams(trial=TRIAL, count=3, path="frames.pcap")
    assert engine.preview(preview).frames == 3
    methods = [request["method"] for request in scripted.requests]
    assert methods == ["neighbours.set", "frames.preview"]
