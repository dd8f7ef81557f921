"""A stream whose rate changes at once: the piece that runs is stopped, and exact."""

from __future__ import annotations

import threading
import time

from livetools import STALLS, codes, needs_engine
from planning import spec_with

from dutperf.config import Campaign, PlannedTestbed, Testbed
from dutperf.procedures.events import Event, TrialStarted
from dutperf.run.engine_session import prepare_engine
from dutperf.run.local_executor import Surroundings
from dutperf.run.streaming import OpenStream, PieceTimes, opened_stream, stream_cell

pytestmark = needs_engine

RING = Testbed.model_validate(
    {
        "name": "ring",
        "cores": [0],
        "left": {
            "port": {"ring": True},
            "ipv4": {"address": "198.18.0.2", "gateway": "198.19.0.2"},
        },
        "right": {
            "port": {"ring": True},
            "ipv4": {"address": "198.19.0.2", "gateway": "198.18.0.2"},
        },
    }
)
PIECE_S = 30.0
RATES = (10_000, 11_000, 50_000, 1)


class Presser:
    """Another thread, which stops each piece some time after it has begun."""

    def __init__(self) -> None:
        self.stream: OpenStream | None = None

    def on_event(self, event: Event) -> None:
        if self.stream and isinstance(event, TrialStarted):
            threading.Timer(0.3, self.stream.stop_piece).start()


def test_a_piece_that_is_stopped_loses_no_frame_and_the_next_one_follows() -> None:
    presser = Presser()
    campaign = Campaign(
        name="stream",
        testbed=[RING],
        procedures=[spec_with({"procedure": "throughput", "ip": [4]})],
    )
    cell = stream_cell(
        campaign,
        RING,
        max_rate_fps=100_000,
        pace=PieceTimes(PIECE_S),
        on_event=presser.on_event,
    )
    with opened_stream(
        cell,
        PlannedTestbed(testbed=RING),
        Surroundings(open_engine=prepare_engine, write_report=lambda path: path),
        rate_fps=10_000,
        on_event=presser.on_event,
    ) as stream:
        presser.stream = stream
        begun_s = time.monotonic()
        pieces = [stream.send(rate_fps, PIECE_S) for rate_fps in RATES]
        took_s = time.monotonic() - begun_s
    assert took_s < PIECE_S
    for piece in pieces:
        assert piece.result.ended_early
        assert codes(piece.result) <= STALLS
        for way in piece.result.directions:
            (own,) = way.streams
            assert own.sent == own.received < own.intended
            assert own.lost == 0
        for port in piece.result.ports:
            assert port.stale == 0
    assert [piece.load_fps for piece in pieces] == list(RATES)
