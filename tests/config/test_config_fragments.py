"""Links of different MTUs: sizes of the larger one, frames that the device cuts."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from config_samples import make_campaign
from planning import TRANSLATOR

from dutperf.config import Testbed, expand
from dutperf.config.sizes import pieces_of
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.procedures.max_rate import mean_wire_size
from dutperf.protocol.base import Side, VlanTag, line_rate_fps
from dutperf.results import PortRecord
from dutperf.run.trial_request import trial_request

FRAGMENTED: dict[str, Any] = {"traffic": {"fragmented": True}}


def with_mtus(left: int, right: int) -> Testbed:
    data = TRANSLATOR.model_dump()
    data["left"]["port"]["mtu"] = left
    data["right"]["port"]["mtu"] = right
    return Testbed.model_validate(data)


def cells(testbed: Testbed, **keys: Any) -> list[Cell]:  # noqa: ANN401 - YAML
    spec = {"procedure": "throughput", "ip": [4], "direction": "forward"}
    return expand(make_campaign(spec | FRAGMENTED | keys), testbed)


def one(testbed: Testbed, **keys: Any) -> Cell:  # noqa: ANN401 - YAML
    [cell] = cells(testbed, **keys)
    return cell


def slow_pieces(frame_size: int, mtu: int, option_bytes: int) -> list[int]:
    """Bytes of payload of each piece: eight more as long as they fit, the rest last."""
    left, room = frame_size - 18 - 20 - option_bytes, mtu - 20 - option_bytes
    pieces = []
    while left > room:
        piece = 0
        while piece + 8 <= room:
            piece += 8
        pieces.append(piece)
        left -= piece
    return [*pieces, left]


@pytest.mark.parametrize("mtu", [68, 576, 1280, 1500, 4352])
@pytest.mark.parametrize("option_bytes", [0, 4, 40])
def test_the_number_of_pieces_is_that_of_rfc_791(mtu: int, option_bytes: int) -> None:
    for size in range(mtu, 9217, 7):
        slow = slow_pieces(size, mtu, option_bytes)
        assert pieces_of(size, mtu, option_bytes=option_bytes) == len(slow)


@pytest.mark.parametrize("mtu", [1280, 1281, 1400, 1500, 4352])
def test_the_number_of_ipv6_pieces_is_that_of_rfc_8200(mtu: int) -> None:
    """Each has the IPv6 header and 8 bytes of its own; a whole packet has not."""
    for size in range(1000, 9217, 7):
        slow = slow_pieces(size - 20, mtu - 28, 0)  # as if all were IPv4's 20 bytes
        assert pieces_of(size, mtu, 6) == (1 if size - 18 <= mtu else len(slow))


def test_sizes_are_those_of_the_larger_link() -> None:
    place = with_mtus(9198, 1500)
    assert one(place, frame_size=9216).frame_sizes == [9216]
    all_sizes = [cell.frame_sizes[0] for cell in cells(place, frame_size="all")]
    assert all_sizes[-5:] == [1518, 2048, 4096, 8192, 9216]
    swapped = with_mtus(1500, 9198)
    every = cells(swapped, frame_size="all", direction="reverse")
    assert [cell.frame_sizes[0] for cell in every][-1] == 9216


def test_who_sends_must_carry_them() -> None:
    with pytest.raises(InputError, match="9216 does not fit the left port"):
        cells(with_mtus(1500, 9198), frame_size=9216)
    for direction in ("both", "reverse"):
        with pytest.raises(InputError, match="9216 does not fit the right port"):
            cells(with_mtus(9198, 1500), frame_size=9216, direction=direction)
    both = cells(with_mtus(9198, 1500), frame_size="all", direction="both")
    assert both[-1].frame_sizes == [1518]


def test_without_the_key_both_links_must_carry_them() -> None:
    with pytest.raises(InputError, match="4096 does not fit the right port"):
        cells(with_mtus(9198, 1500), frame_size=4096, traffic={})


FRAGMENTED_KEY = "traffic.fragmented: true (--fragmented)"
FORWARD = "direction: [forward] (--direction forward)"


@pytest.mark.parametrize(
    ("keys", "helps"),
    [
        ({"traffic": {}}, FRAGMENTED_KEY),
        ({"traffic": {}, "direction": "both"}, f"{FRAGMENTED_KEY} and {FORWARD}"),
        ({"traffic": {}, "direction": "reverse"}, f"{FRAGMENTED_KEY} and {FORWARD}"),
        ({"direction": "both"}, FORWARD),
        ({"traffic": {"imix": "ai"}}, FRAGMENTED_KEY),
        ({"traffic": {}, "ip": "4-6"}, FRAGMENTED_KEY),
        (
            {"traffic": {}, "ip": "4-6", "direction": "both"},
            f"{FRAGMENTED_KEY} and {FORWARD}",
        ),
        ({"traffic": {}, "ip": "6-4"}, None),  # from its IPv4 side they do not fit
        ({"traffic": {}, "ip": [6]}, None),
        ({"traffic": {"df": True}}, None),
        ({"traffic": {"mix": "50/50"}}, None),
        ({"traffic": {}, "frame_size": 9217}, None),  # that the left link lacks, too
    ],
)
def test_who_cannot_send_so_long_frames_is_told_what_else_would_help(
    keys: dict[str, Any], helps: str | None
) -> None:
    sizes = {} if "imix" in keys.get("traffic", {}) else {"frame_size": 4096}
    with pytest.raises(InputError, match="does not fit") as refused:
        cells(with_mtus(9198, 1500), **sizes | keys)
    hint = refused.value.hint
    assert "or use smaller frames" in hint
    if helps is None:
        assert "or give" not in hint
    else:
        assert hint.endswith(
            f"; or give {helps}, for a device that fragments them (RFC 2544 9.4)"
        )


def test_stateful_frames_are_not_told_to_be_fragmented() -> None:
    stateful = {"connections": 1000, "phase1_rate": 1000}
    keys = {"stateful": stateful, "traffic": {}, "direction": "both"}
    with pytest.raises(InputError, match="does not fit the right port") as refused:
        cells(with_mtus(9198, 1500), frame_size=4096, **keys)
    assert "or give" not in refused.value.hint


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"ip": [6]}, "sent as IPv4.*routers do not fragment IPv6 packets"),
        ({"ip": "6-4"}, "sent as IPv4.*translators not those that become IPv4"),
        ({"ip": "4-6", "direction": "reverse"}, "sent as IPv4"),
        ({"traffic": {"mix": "50/50"}}, "routers do not fragment IPv6 packets"),
        ({"ip": "4-6", "traffic": {"mix": "50/50"}}, "does not go with mix 50/50"),
        (
            {"traffic": {"fragmented": False, "lowest_ipv6_mtu": 1400}},
            "lowest_ipv6_mtu: is for frames that a translator cuts",
        ),
        ({"traffic": {"df": True}}, "does not go with df"),
        (
            {
                "procedure": "connection-rate",
                "direction": None,
                "stateful": {"connections": 1000},
            },
            "is not for stateful tests",
        ),
    ],
)
def test_what_no_router_cuts_is_refused(keys: dict[str, Any], message: str) -> None:
    spec = {"procedure": "throughput", "ip": [4], "direction": "forward"}
    traffic = {"fragmented": True, **keys.get("traffic", {})}
    given = spec | keys | {"traffic": traffic}
    given = {key: value for key, value in given.items() if value is not None}
    with pytest.raises(InputError, match=message) as refused:
        expand(make_campaign(given), with_mtus(9198, 1500))
    assert "fragmented" in f"{refused.value.message} {refused.value.hint}"
    assert refused.value.hint


def test_frames_may_arrive_in_pieces_and_have_a_name() -> None:
    place = with_mtus(9198, 1500)
    cell = one(place, frame_size=4096)
    assert cell.id == "throughput-ip4-4096-forward-fragmented"
    [way] = trial_request(place, cell, 1000, 1).directions
    assert [stream.most_pieces for stream in way.streams] == [3]
    beside = one(
        place, frame_size=4096, traffic={"fragmented": True, "broadcast_percent": 1}
    )
    [way] = trial_request(place, beside, 1000, 1).directions
    assert [stream.most_pieces for stream in way.streams] == [3, 1]
    small = one(place, frame_size=1518)  # a tunnel in the device may be narrower
    [way] = trial_request(place, small, 1000, 1).directions
    assert [stream.most_pieces for stream in way.streams] == [2]
    plain = one(place, frame_size=1518, traffic={})
    [way] = trial_request(place, plain, 1000, 1).directions
    assert [stream.most_pieces for stream in way.streams] == [1]


def port(name: Side, mtu: int, *tags: VlanTag) -> PortRecord:
    return PortRecord(
        name=name,
        driver="pci",
        dpdk_name="",
        device=name,
        mac="02:00:00:00:00:01",
        link_speed_mbps=10_000,
        mtu=mtu,
        vlan=list(tags),
    )


def test_the_media_carry_headers_and_gaps_of_each_piece() -> None:
    """4078 bytes of IP: 1500, 1500 and 1118 with their headers; 20 bytes between."""
    cell = one(with_mtus(9198, 1500), frame_size=4096)
    assert mean_wire_size(cell, port("left", 9198)) == 4096
    in_pieces = mean_wire_size(cell, port("right", 1500))
    assert in_pieces == 1518 + 1518 + 1136 + 2 * 20
    assert line_rate_fps(10_000, in_pieces) == 10**10 // (8 * (1518 + 1518 + 1136 + 60))


def test_each_piece_has_the_tags_of_its_side() -> None:
    cell = one(with_mtus(9198, 1500), frame_size=4096)
    tagged = mean_wire_size(cell, port("right", 1500, VlanTag(id=5)))
    assert tagged == mean_wire_size(cell, port("right", 1500)) + 3 * 4


def test_an_imix_has_its_mean_of_pieces() -> None:
    place = with_mtus(9198, 1500)
    traffic = {"fragmented": True, "imix": "aez"}
    cell = one(place, traffic=traffic)
    sizes = [64, 1024, 9216]
    assert cell.frame_sizes == sizes
    pieces = [pieces_of(size, 1500) for size in sizes]
    assert pieces == [1, 1, 7]
    expected = Fraction(sum(sizes) + 6 * (20 + 18 + 20), 3)
    assert mean_wire_size(cell, port("right", 1500)) == expected


# --- a translator: IPv4 goes in, IPv6 comes out (RFC 7915 4)


TRANSLATED: dict[str, Any] = {"ip": "4-6", "frame_size": 1518}


@pytest.mark.parametrize("direction", ["forward", "both"])
def test_of_a_translator_what_is_sent_as_ipv4_comes_in_pieces(direction: str) -> None:
    place = with_mtus(1500, 1500)
    cell = one(place, **TRANSLATED, direction=direction)
    assert cell.id == f"throughput-ip4-6-1518-{direction}-fragmented"
    ways = trial_request(place, cell, 1000, 1).directions
    streams = [(way.streams[0].ip_version, way.streams[0].most_pieces) for way in ways]
    assert streams == [(4, 2), (6, 1)][: len(ways)]
    [stream] = ways[0].streams
    assert (stream.frame_sizes, stream.received_frame_sizes) == ([1498], [1518])


def test_the_other_way_round_too() -> None:
    place = with_mtus(1500, 1500)
    cell = one(place, **TRANSLATED | {"ip": "6-4"}, direction="reverse")
    [way] = trial_request(place, cell, 1000, 1).directions
    assert [stream.most_pieces for stream in way.streams] == [2]
    assert mean_wire_size(cell, port("right", 1500)) == 1498
    assert mean_wire_size(cell, port("left", 1500)) > 1518


def test_frames_may_be_longer_as_ipv6_than_any_link() -> None:
    """IPv4 packets of 1,500 bytes are 1,520 as IPv6, and two pieces."""
    cell = one(with_mtus(1500, 1500), ip="4-6", frame_size=1538)
    assert cell.frame_sizes == [1538]


@pytest.mark.parametrize(
    ("size", "lowest", "sizes"),
    [
        (1298, 1280, [1298]),
        (1299, 1280, [1298, 18 + 48 + 9]),  # 1232 bytes, and 9 of 1241
        (1518, 1280, [1298, 18 + 48 + 228]),
        (1518, 1499, [18 + 48 + 1448, 18 + 48 + 12]),
        (1518, 1500, [1518]),
        (9216, 9198, [1514] * 6 + [18 + 48 + 470]),  # the link carries no more
    ],
)
def test_the_media_carry_headers_of_each_ipv6_piece(
    size: int, lowest: int, sizes: list[int]
) -> None:
    traffic: dict[str, Any] = {"fragmented": True, "lowest_ipv6_mtu": lowest}
    cell = one(with_mtus(9198, 1500), ip="4-6", frame_size=size, traffic=traffic)
    assert mean_wire_size(cell, port("left", 9198)) == size - 20
    in_pieces = mean_wire_size(cell, port("right", 1500))
    assert in_pieces == sum(sizes) + 20 * (len(sizes) - 1)
    assert mean_wire_size(cell, port("right", 1500, VlanTag(id=5))) == (
        in_pieces + 4 * len(sizes)
    )


def test_options_are_in_no_piece_of_ipv6() -> None:
    traffic: dict[str, Any] = {"fragmented": True, "ipv4_options": ["nop"]}
    cell = one(with_mtus(1500, 1500), ip="4-6", frame_size=1303, traffic=traffic)
    in_pieces = mean_wire_size(cell, port("right", 1500))
    assert in_pieces == 1298 + 18 + 48 + 9 + 20


def test_another_lowest_mtu_is_another_test_case() -> None:
    traffic: dict[str, Any] = {"fragmented": True, "lowest_ipv6_mtu": 1400}
    cell = one(with_mtus(1500, 1500), **TRANSLATED, traffic=traffic)
    assert cell.id == "throughput-ip4-6-1518-forward-fragmented-1400"
