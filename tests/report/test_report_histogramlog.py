"""Exported delays, read back by the package that other tools build on."""

from __future__ import annotations

from pathlib import Path

import pytest
from delay_sample import histogram, two_modes
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import given
from hypothesis import strategies as st
from report_sample import sample_environment, sample_results, store
from timed_sample import timed_results

from dutperf.errors import InputError
from dutperf.protocol.result_messages import Histogram
from dutperf.report import export_histograms
from dutperf.report.timing import HIGHEST_NS, hdr_histogram
from dutperf.stats import histogram_percentile

SHARES = (
    (1, 1_000),
    (1, 2),
    (9, 10),
    (99, 100),
    (999, 1_000),
    (99_999, 100_000),
    (1, 1),
)


def read(path: Path) -> dict[str, HdrHistogram]:
    reader = HistogramLogReader(str(path), HdrHistogram(1, HIGHEST_NS, 3))
    found = {}
    with reader.input_file:
        while one := reader.get_next_interval_histogram():
            found[one.get_tag()] = one
    return found


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    directory = tmp_path_factory.mktemp("export")
    store(directory / "r", timed_results(), sample_environment())
    return export_histograms(directory / "r", directory / "logs")


def test_every_trial_is_a_log_of_all_its_streams(exported: list[Path]) -> None:
    results = timed_results()
    assert [p.name for p in exported] == [
        "trial-0001.hlog",
        "trial-0002.hlog",
        "trial-0003.hlog",
    ]
    for path, trial in zip(exported, results.trials, strict=True):
        streams = {
            f"{direction.name}-{stream.name}": stream.delay_ns
            for direction in trial.result.directions
            for stream in direction.streams
        }
        found = read(path)
        assert found.keys() == streams.keys()
        for tag, delays in streams.items():
            agree(delays, found[tag])


def agree(delays: Histogram, made: HdrHistogram) -> None:
    assert made.get_total_count() == delays.count
    for numerator, denominator in SHARES:
        wanted = histogram_percentile(delays.buckets, numerator, denominator)
        # RFC 2330 rounds the rank up, HdrHistogram to the nearest: ask for the rank.
        rank = -(-numerator * delays.count // denominator)
        got = made.get_value_at_percentile(100 * rank / delays.count)
        assert abs(got - wanted) <= wanted / 1_000
    assert abs(made.get_min_value() - (delays.min or 0)) <= (delays.min or 0) / 1_000
    assert abs(made.get_max_value() - (delays.max or 0)) <= (delays.max or 0) / 1_000


@given(st.lists(st.integers(0, HIGHEST_NS), min_size=1, max_size=50))
def test_no_frame_moves_to_another_value(values: list[int]) -> None:
    fine = histogram((value, 1) for value in values)
    made = HdrHistogram.decode(hdr_histogram(fine).encode())
    assert made.get_total_count() == len(values)
    for value in values:
        wanted = sum(other in equivalent(made, value) for other in values)
        assert made.get_count_at_value(value) == wanted


def equivalent(made: HdrHistogram, value: int) -> range:
    lowest, highest = (
        made.get_lowest_equivalent_value(value),
        made.get_highest_equivalent_value(value),
    )
    return range(lowest, highest + 1)


def test_coarse_delays_are_told_as_the_report_tells_them() -> None:
    fine = two_modes(100_000, 1)
    coarse = histogram(((high, n) for _, high, n in fine.buckets), bits=5)
    agree(coarse, hdr_histogram(coarse))


def test_a_log_says_what_it_is_and_how_many_frames_have_no_delay(
    exported: list[Path],
) -> None:
    text = exported[0].read_text()
    assert "#[dutperf trial 1, throughput-ip4-64-both, 48000 fps per direction" in text
    assert "#[forward-foreground: 10180 of 2592000 frames were lost" in text
    assert "#[Histogram log format version 1.3]" in text
    (line,) = [row for row in text.splitlines() if row.startswith("Tag=forward-fore")]
    assert line.split(",")[1:3] == ["0.000", "60.000"]
    assert line.split(",")[4].startswith("HIST")  # V2, compressed, base64


def test_a_made_up_name_cannot_end_a_comment(tmp_path: Path) -> None:
    results = timed_results()
    nasty = results.trials[0].model_copy(update={"cell": "x\nTag=y,0,1,2,HISTnot"})
    store(tmp_path / "r", results.model_copy(update={"trials": [nasty]}))
    (path,) = export_histograms(tmp_path / "r", tmp_path / "logs")
    assert len(read(path)) == 4


def test_results_without_delays_are_refused(tmp_path: Path) -> None:
    results = sample_results()
    store(tmp_path / "r", results.model_copy(update={"trials": []}))
    with pytest.raises(InputError, match="no trial with delays"):
        export_histograms(tmp_path / "r", tmp_path / "logs")
    assert not (tmp_path / "logs").exists()
