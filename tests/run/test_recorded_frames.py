"""First frames of stored trials: which requests they are of, with which addresses."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from every_procedure import CASES
from report_sample import sample_environment

from dutperf.protocol.methods import PreviewParams, PreviewResult
from dutperf.run.preview import recorded_frames
from dutperf.simulation.fake_engine import FakeEngine, perfect


class WritingEngine(FakeEngine):
    """Writes a file for each preview, as the real one does."""

    def preview(self, params: PreviewParams) -> PreviewResult:
        Path(params.path).write_bytes(b"pcap")
        return super().preview(params)


@pytest.mark.parametrize(
    "name", ["throughput", "latency", "connection-rate, validated"]
)
def test_each_cell_has_its_first_frames(name: str) -> None:
    _, recording = CASES[name].run()
    engine = WritingEngine(perfect())

    @contextlib.contextmanager
    def start(_log: Path) -> Iterator[FakeEngine]:
        yield engine

    found = recorded_frames(recording.records, [sample_environment()], start)
    (cell,) = {record.cell for record in recording.records}
    assert found == {f"frames/{cell}.pcap": b"pcap"}
    (asked,) = engine.previews
    stream = asked.trial.directions[0].streams[0]
    assert stream.src_mac == "02:00:00:00:00:01"
    first = recording.records[0].request.directions[0].streams[0]
    assert (stream.src_ip, stream.vary) == (first.src_ip, first.vary)
