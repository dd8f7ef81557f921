"""``frame_size: all``: the lists of the RFCs, and what the MTU leaves of them."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import bench_data, make_campaign

from dutperf.config import Testbed, expand, size_notices, spec_from
from dutperf.config.sizes import standard_sizes
from dutperf.errors import InputError
from dutperf.protocol.base import IpVersion

ALL: dict[str, Any] = {"procedure": "throughput", "frame_size": "all"}
UP_TO_1518 = [128, 256, 512, 1024, 1280, 1518]
JUMBO = [2048, 4096, 8192, 9216]


def with_mtu(mtu: int) -> Testbed:
    data = bench_data()
    data["left"]["port"]["mtu"] = mtu
    data["right"]["port"]["mtu"] = 9702
    return Testbed.model_validate(data)


def sizes(place: Testbed, **keys: object) -> list[int]:
    cells = expand(make_campaign(ALL | keys), place)
    return [size for cell in cells for size in cell.frame_sizes]


def test_one_ip_version_has_the_sizes_of_its_rfc() -> None:
    assert sizes(with_mtu(1500), ip=[4]) == [64, *UP_TO_1518]
    assert sizes(with_mtu(1500), ip=[6]) == [84, *UP_TO_1518]
    assert sizes(with_mtu(9198), ip=[4]) == [64, *UP_TO_1518, *JUMBO]


@pytest.mark.parametrize(
    ("mtu", "versions", "fit", "left_out"),
    [
        (9198, {6}, [84, *UP_TO_1518, *JUMBO], []),
        (9197, {6}, [84, *UP_TO_1518, *JUMBO[:-1]], [9216]),
        (1499, {4}, [64, *UP_TO_1518[:-1]], [1518, *JUMBO]),
        (1500, {4, 6}, [84, 128, 256, 512, 768, 1024, 1280, 1518], [1522, *JUMBO]),
        (1504, {4, 6}, [84, 128, 256, 512, 768, 1024, 1280, 1518, 1522], JUMBO),
    ],
)
def test_the_mtu_limits_them(
    mtu: int, versions: set[IpVersion], fit: list[int], left_out: list[int]
) -> None:
    found = standard_sizes(mtu, versions)
    assert (found.fit, found.left_out) == (fit, left_out)


def test_where_both_versions_occur_the_sizes_are_those_of_rfc_8219() -> None:
    mixed = {"ip": [4], "traffic": {"mix": "50/50"}}
    assert sizes(with_mtu(1500), **mixed) == [84, 128, 256, 512, 768, 1024, 1280, 1518]


def test_sizes_are_not_left_out_silently() -> None:
    campaign = make_campaign(ALL | {"ip": [4, 6]}, {"procedure": "throughput"})
    assert size_notices(with_mtu(9198), campaign) == []
    four, six = size_notices(with_mtu(1400), campaign)
    assert four == (
        "frame_size all, IPv4: without 1518, 2048, 4096, 8192, 9216 bytes of RFC 5180 "
        "5.1.1: the MTU 1400 carries frames of at most 1418 bytes; 9198 would carry all"
    )
    assert six.startswith("frame_size all, IPv6: without 1518")


def test_a_version_that_nobody_asked_for_is_left_out_where_the_size_is_too_small() -> (
    None
):
    place = with_mtu(1500)
    asked = {"procedure": "throughput", "frame_size": [64, 128]}
    cells = expand(make_campaign(asked), place)
    assert [(cell.ip, cell.frame_sizes) for cell in cells] == [
        (4, [64]),
        (4, [128]),
        (6, [128]),
    ]
    (told,) = size_notices(place, make_campaign(asked))
    assert told.startswith("frame_size 64: without IPv6")
    with pytest.raises(InputError, match="64 is too small for IPv6"):
        expand(make_campaign(asked | {"ip": [4, 6]}), place)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["all", 64], "all, or a range, stands alone"),
        ([64, "all"], "all, or a range, stands alone"),
        ("most", "frame_size: must be a number of bytes, a range like 64-512, or all"),
        (["64"], "frame_size[0]: must be a number of bytes, a range like 64-512, or"),
        (["64-128", 64], "all, or a range, stands alone"),
        ("64-", "frame_size: must be a number of bytes, a range like"),
        ([63], "frame_size[0]: must be at least 64, not 63"),
    ],
)
def test_what_is_no_size_is_refused(given: object, message: str) -> None:
    with pytest.raises(InputError) as refusal:
        spec_from(ALL | {"frame_size": given}, "here")
    assert message in refusal.value.message


def test_one_size_needs_no_list() -> None:
    assert sizes(with_mtu(1500), ip=[4], frame_size=256) == [256]


def test_a_range_has_the_standard_sizes_in_it_that_the_mtu_carries() -> None:
    bed = with_mtu(1500)
    assert sizes(bed, ip=4, frame_size="64-512") == [64, 128, 256, 512]
    assert sizes(bed, ip=4, frame_size="1000-9000") == [1024, 1280, 1518]
    assert sizes(bed, ip=6, frame_size="64-128") == [84, 128]
    for nothing in ("2000-3000", "512-64"):
        with pytest.raises(InputError, match="no size of the RFCs is from"):
            sizes(bed, ip=4, frame_size=nothing)
    (told,) = size_notices(
        with_mtu(1500), make_campaign(ALL | {"ip": 4, "frame_size": "64-2048"})
    )
    assert told.startswith("frame_size 64-2048, IPv4: without 2048 bytes of RFC 5180")


def test_words_of_a_name_are_joined() -> None:
    assert make_campaign(ALL, name="my first try").name == "my-first-try"
