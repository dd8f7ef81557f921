"""Frames of all kinds: what a preview shows is what was asked for, to the last bit.

The engine writes the frames of hypothesis's trials to pcap files; scapy and tshark
read them.
"""

from __future__ import annotations

import functools
import shutil
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from livetools import counting, open_rings, running_engine
from readers import Seen, scapy_reads, tshark_reads
from trafficmatrix import (
    FIELDS,
    FRAMES,
    MODES,
    ORDERS,
    VERSIONS,
    Expected,
    expected_frames,
    made_trials,
)

from dutperf.engine.client import Engine
from dutperf.protocol.methods import PreviewParams
from dutperf.protocol.trial_messages import TrialRequest

pytestmark = counting(__name__)


@functools.cache
def all_trials() -> list[TrialRequest]:
    """Not made where tests are only collected."""
    return made_trials(200)


def some_trials() -> list[TrialRequest]:
    """Enough to compare other engines with."""
    return all_trials()[:20]


def preview(engine: Engine, trial: TrialRequest, path: Path) -> int:
    params = PreviewParams(trial=trial, count=FRAMES, path=str(path))
    return engine.preview(params).frames


def previews(
    engine: Engine, directory: Path, trials: list[TrialRequest]
) -> list[bytes]:
    """The pcap files of ``trials``, as they are."""
    files = []
    for number, trial in enumerate(trials):
        path = directory / f"{number}.pcap"
        preview(engine, trial, path)
        files.append(path.read_bytes())
    return files


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """The pcap file of each trial, by one engine of one worker."""
    directory = tmp_path_factory.mktemp("matrix")
    with running_engine(directory) as engine:
        open_rings(engine)
        return previews(engine, directory, all_trials())


@dataclass(frozen=True)
class Pair:
    """A frame as it should be and as a reader found it."""

    trial: TrialRequest
    expected: Expected
    seen: Seen


_PCAP_HEADER_BYTES = 24


@pytest.fixture(scope="module", params=[scapy_reads, tshark_reads])
def frames(
    request: pytest.FixtureRequest,
    files: list[bytes],
    tmp_path_factory: pytest.TempPathFactory,
) -> list[Pair]:
    """All frames of all trials, by one reader."""
    if request.param is tshark_reads and shutil.which("tshark") is None:
        pytest.skip("needs Debian's tshark")
    path = tmp_path_factory.mktemp("all") / "all.pcap"
    records = [file[_PCAP_HEADER_BYTES:] for file in files]
    path.write_bytes(files[0][:_PCAP_HEADER_BYTES] + b"".join(records))
    expected = [(t, e) for t in all_trials() for e in expected_frames(t, FRAMES)]
    seen = request.param(path)
    pairs = zip(expected, seen, strict=True)
    return [Pair(trial, frame, found) for (trial, frame), found in pairs]


def test_the_matrix_has_everything_in_it() -> None:
    both = [s for t in all_trials() for d in t.directions for s in d.streams]
    vary = [v for s in both for v in s.vary]
    assert {s.ip_version for s in both} == set(VERSIONS)
    assert {(v.field, v.mode) for v in vary} == {(f, m) for f in FIELDS for m in MODES}
    assert {
        s.enumeration_order for s in both if any(v.mode == "enumerate" for v in s.vary)
    } == set(ORDERS)
    assert {size % 2 for s in both for size in s.frame_sizes} == {0, 1}
    assert {len(d.streams) for t in all_trials() for d in t.directions} == {1, 2}
    assert max(len(s.vary) for s in both) >= 5
    assert sum(len(expected_frames(t, FRAMES)) for t in all_trials()) >= 8000


def test_every_checksum_is_good_and_every_length_right(frames: list[Pair]) -> None:
    for pair in frames:
        seen, size = pair.seen, pair.expected.size
        assert seen.all_good, pair
        assert seen.frame_bytes == size - 4
        headers = 14 + (20 if seen.ip_version == 4 else 40)
        assert seen.ip_payload_bytes == seen.udp_bytes == size - 4 - headers


def test_no_udp_checksum_is_zero(frames: list[Pair]) -> None:
    assert all(pair.seen.udp_checksum != 0 for pair in frames)


def test_every_header_is_what_was_asked_for(frames: list[Pair]) -> None:
    for pair in frames:
        seen, stream = pair.seen, pair.expected.stream
        assert seen.ip_version == stream.ip_version
        assert (seen.ttl, seen.dscp, seen.df) == (stream.ttl, stream.dscp, stream.df)


def test_nothing_but_the_varying_bits_varies(frames: list[Pair]) -> None:
    for pair in frames:
        assert pair.seen.fields == pair.expected.varied(pair.seen)


def test_every_value_is_in_its_range(frames: list[Pair]) -> None:
    for pair in frames:
        for v in pair.expected.stream.vary:
            assert v.min <= pair.expected.carried(v, pair.seen) <= v.max


def test_increasing_and_decreasing_fields_count(frames: list[Pair]) -> None:
    for pair in frames:
        for v in pair.expected.stream.vary:
            step = pair.expected.number % v.size
            value = pair.expected.carried(v, pair.seen)
            if v.mode == "increasing":
                assert value == v.min + step
            elif v.mode == "decreasing":
                assert value == v.max - step


def test_enumerations_follow_their_order_and_never_repeat(frames: list[Pair]) -> None:
    places: dict[tuple[int, int], list[int]] = defaultdict(list)
    for pair in frames:
        stream, number = pair.expected.stream, pair.expected.number
        if all(v.mode != "enumerate" for v in stream.vary):
            continue
        place = pair.expected.in_enumeration(pair.seen)
        if stream.enumeration_order == "increasing":
            assert place == number
        elif stream.enumeration_order == "decreasing":
            assert place == stream.combinations - 1 - number
        places[id(pair.trial), stream.id].append(place)
    assert len(places) >= 50
    assert all(len(set(found)) == len(found) for found in places.values())


def test_tags_tell_trial_stream_number_and_time(frames: list[Pair]) -> None:
    for pair in frames:
        tag, frame = pair.seen.tag, pair.expected
        background = frame.stream.name == "background"
        assert (tag.magic, tag.trial, tag.stream, tag.flags, tag.sequence) == (
            0xD07F,
            pair.trial.trial_id,
            frame.stream.id,
            int(background),
            frame.number,
        )
        assert tag.stamp_ns == frame.due_ns


@pytest.fixture(params=[1, 2, 4], ids=lambda n: f"{n}-workers")
def another_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    with running_engine(tmp_path, workers=request.param) as engine:
        open_rings(engine)
        yield engine


def test_the_same_seed_gives_the_same_frames_on_any_number_of_workers(
    another_engine: Engine, files: list[bytes], tmp_path: Path
) -> None:
    again = previews(another_engine, tmp_path, some_trials())
    assert again == files[: len(some_trials())]


def test_another_seed_gives_other_frames(files: list[bytes], tmp_path: Path) -> None:
    chance = [
        index
        for index, trial in enumerate(all_trials())
        if any(
            v.mode == "random" and v.size > 2**10
            for d in trial.directions
            for v in d.streams[0].vary
        )
    ]
    assert len(chance) >= 10
    others = [
        all_trials()[i].model_copy(update={"seed": all_trials()[i].seed ^ 1})
        for i in chance
    ]
    with running_engine(tmp_path) as engine:
        open_rings(engine)
        changed = previews(engine, tmp_path, others)
    assert all(new != files[i] for i, new in zip(chance, changed, strict=True))
