"""Numbers as people write them, in campaigns and as options."""

from __future__ import annotations

import pytest

from dutperf.cli.procedure_options import procedure_spec
from dutperf.config import spec_from
from dutperf.errors import InputError
from dutperf.model.fields import written_number


@pytest.mark.parametrize(
    ("text", "number"),
    [("0", 0), ("64", 64), ("100k", 100_000), ("1.5M", 1_500_000), ("2e6", 2_000_000)],
)
def test_a_number_may_be_written_in_short(text: str, number: int) -> None:
    assert written_number(text) == number


@pytest.mark.parametrize("text", ["", "k", "1e", "-1", "1k2", "1,5", "1K", "0x10", "²"])
def test_what_is_none_stays_a_text(text: str) -> None:
    assert written_number(text) is None


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("max_rate_fps", "100k", 100_000),
        ("max_rate_fps", "1e6", 1_000_000),
        ("loss_tolerance_percent", "0.5%", 0.5),
        ("frame_size", [64, "1.024k"], [64, 1024]),
    ],
)
def test_a_campaign_takes_them_where_a_number_is_asked_for(
    key: str, written: object, value: object
) -> None:
    spec = spec_from({"procedure": "throughput", key: written}, "here")
    assert getattr(spec, key) == value


@pytest.mark.parametrize("written", ["64", "1.5", "100 k", "5%"])
def test_digits_in_quotes_and_parts_of_a_frame_stay_refused(written: str) -> None:
    with pytest.raises(InputError, match="must be a whole number"):
        spec_from({"procedure": "throughput", "max_rate_fps": written}, "here")


def test_an_option_takes_several_between_commas() -> None:
    spec = procedure_spec("throughput", {"frame_size": ["64,128", "1518"]})
    assert spec.frame_size == [64, 128, 1518]


@pytest.mark.parametrize(
    ("text", "width"), [("5%", "5%"), ("5fps", "5"), ("500", "500")]
)
def test_a_width_has_a_unit_where_it_may_be_either(text: str, width: str) -> None:
    spec = procedure_spec("throughput", {"resolution": text})
    assert spec.model_dump()["resolution"] == width
    with pytest.raises(InputError, match="may be a share or frames per second"):
        procedure_spec("throughput", {"resolution": "5"})
