"""What every report carries: plotly.js as its makers have it, and few bytes."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest
from report_sample import all_sizes, sample_environment, sample_results, store

from dutperf.report import write_report
from dutperf.report.page import packed, plotly_script
from dutperf.results import ResultsFile

PLOTLY_4_1_1 = "99784e3abfb07b142a15e521a439e6d9addceadb3f79553fd24c72774f0649ba"
MOST_BYTES = 2_000_000


def test_plotly_is_the_one_that_the_licence_beside_it_is_of() -> None:
    found = plotly_script().encode("utf-8")
    assert hashlib.sha256(found).hexdigest() == PLOTLY_4_1_1


def test_what_is_packed_cannot_end_its_element_and_is_whole() -> None:
    text = "</script><script>alert(1)</script> \u202e \N{DROMEDARY CAMEL}"
    found = packed(text)
    assert "<" not in found
    assert gzip.decompress(base64.b64decode(found)).decode("utf-8") == text
    assert found == packed(text)


@pytest.mark.parametrize("made", [sample_results, all_sizes])
def test_a_report_is_small(tmp_path: Path, made: Callable[[], ResultsFile]) -> None:
    store(tmp_path / "r", made(), sample_environment())
    assert write_report(tmp_path / "r").stat().st_size < MOST_BYTES
