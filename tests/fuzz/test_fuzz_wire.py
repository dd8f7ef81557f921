"""What a member of the cluster sends is understood, or ends its connection."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fuzzing import as_bytes, damaged_bytes, damaged_data, seeded
from hypothesis import given
from hypothesis import strategies as st
from remote_hosts import campaign_of
from stored_samples import results_file, trial_record

from dutperf.config import PlannedTestbed, load_campaign, load_testbed
from dutperf.config.expansion import expand
from dutperf.errors import InputError
from dutperf.remote.messages import (
    Begun,
    Claim,
    Ended,
    Envelope,
    Finished,
    OnResult,
    Ticket,
    Told,
    WorkerFailure,
    claim_of,
    envelopes_of,
    text_of,
    ticket_of,
)
from dutperf.remote.security import Call, Hello, Line, Members, Reply
from dutperf.run import Job

MESSAGES = [
    Begun(),
    Finished(record=trial_record()),
    Told(text="slow"),
    OnResult(result=results_file().cells[0]),
    Ended(failure=WorkerFailure(message="no room")),
]
ENVELOPES = text_of(
    [Envelope(key="a", number=n, message=m) for n, m in enumerate(MESSAGES)]
)
FRAMES = [
    Hello(name="a", testbeds=["left"]),
    Members(workers=["10.0.0.1:4000"]),
    Call(number=1, to="10.0.0.1:4000", what="fetch", answers={1: "{}"}),
    Reply(number=1, text=ENVELOPES),
]


def _framed(content: bytes) -> bytes:
    return len(content).to_bytes(4) + content


SENT = [_framed(frame.model_dump_json().encode()) for frame in FRAMES]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What each parser is for."""
    folder = tmp_path_factory.mktemp("many")
    asked = load_campaign(campaign_of(folder, "left"))
    testbed = load_testbed(folder / "left.yaml")
    cells = expand(asked, testbed)
    planned = PlannedTestbed(testbed=testbed)
    job = Job(campaign="many", planned=planned, cell=cells[0])
    ticket = Ticket(run="r", key="a", testbed="left", before=0, count=1, jobs=[job])
    claim = Claim(
        host="a",
        is_root=False,
        is_simulated=True,
        time_s=1.5,
        testbeds=[testbed],
        labs=["linux-router"],
    )
    return {
        "claim": claim.model_dump_json(),
        "ticket": ticket.model_dump_json(),
        "envelopes": ENVELOPES,
    }


PARSERS: dict[str, Callable[[str, str], object]] = {
    "claim": claim_of,
    "ticket": ticket_of,
    "envelopes": envelopes_of,
}


@pytest.mark.parametrize("name", PARSERS)
def test_the_samples_are_understood(texts: dict[str, str], name: str) -> None:
    assert PARSERS[name](texts[name], "it")


@pytest.mark.parametrize("name", PARSERS)
def test_damaged_messages_are_at_most_refused(texts: dict[str, str], name: str) -> None:
    sample: Any = json.loads(texts[name])

    @seeded
    @given(damaged_data([sample]).map(as_bytes) | damaged_bytes([as_bytes(sample)]))
    def check(content: bytes) -> None:
        with contextlib.suppress(InputError):
            PARSERS[name](content.decode("utf-8", "replace"), "it")

    check()


class Unsent:
    """Of a writer what ``Line`` asks it."""

    def __init__(self, own: socket.socket) -> None:
        self._own = own

    def get_extra_info(self, name: str) -> socket.socket:
        assert name == "socket"
        return self._own


def heard(own: socket.socket, content: bytes) -> list[object]:
    """The frames that a peer sends which then goes."""

    async def listen() -> list[object]:
        reader = asyncio.StreamReader()
        reader.feed_data(content)
        reader.feed_eof()
        line = Line(reader, Unsent(own))  # type: ignore[arg-type]
        frames: list[object] = []
        with contextlib.suppress(OSError):
            while True:
                frames.append(await line.receive())
        return frames

    return asyncio.run(listen())


@pytest.fixture
def own() -> Iterator[socket.socket]:
    with socket.socket() as made:
        yield made


def test_frames_are_heard_one_after_the_other(own: socket.socket) -> None:
    assert heard(own, b"".join(SENT)) == FRAMES


@pytest.mark.parametrize(
    "content",
    [
        b"\xff\xff\xff\xff",
        _framed(b"")[:3],
        _framed(b'{"kind": "pickle"}'),
        _framed(b"[" * 100_000),
        _framed(b'{"kind": "reply", "number": 1e999}'),
    ],
)
def test_what_is_no_frame_ends_the_connection(
    own: socket.socket, content: bytes
) -> None:
    assert heard(own, SENT[0] + content + SENT[1]) == FRAMES[:1]


def test_damaged_frames_are_at_most_refused(own: socket.socket) -> None:
    bodies = [frame.model_dump_json().encode() for frame in FRAMES]

    @seeded
    @given(
        damaged_bytes([b"".join(SENT)])
        | damaged_bytes(bodies).map(_framed)
        | damaged_data([json.loads(text) for text in bodies]).map(as_bytes).map(_framed)
        | st.binary(max_size=40)
    )
    def check(content: bytes) -> None:
        heard(own, content)

    check()
