from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from siitperf_files import (
    HOSTS4,
    HOSTS6,
    HOSTS44,
    NAT44,
    NAT64,
    RANDOM_PORTS,
    README64,
    ROUTER,
    ROUTER6,
    SIIT,
    main_of,
    read,
)

from dutperf.compat.command_line import Command, read_arguments
from dutperf.compat.requests import Gateways, Requests, neighbours, trial_requests
from dutperf.errors import InputError
from dutperf.protocol.base import DirectionName
from dutperf.protocol.stream_messages import StreamRequest

TRIAL = "84 1000 60 2000 1 1"
PHASE1 = " 4000 4000 1000 500 4500"
GATEWAYS: Gateways = {
    ("left", 4): "198.18.0.1",
    ("left", 6): "2001:2::1",
    ("right", 4): "198.19.0.1",
    ("right", 6): "2001:2:0:8000::1",
}


def made(
    folder: Path,
    keys: dict[str, str],
    line: str = TRIAL,
    command: Command = "tp",
    gateways: Gateways | None = None,
) -> Requests:
    conf = read(folder, keys)
    arguments = read_arguments(
        command,
        line.split(),
        stateful=conf.initiator is not None,
        only_ipv4=False,
    )
    return trial_requests(conf, arguments, gateways or {}, seed=5, first_id=65535)


def streams(requests: Requests, name: DirectionName) -> list[StreamRequest]:
    (found,) = [d for d in main_of(requests).directions if d.name == name]
    return found.streams


def varied(stream: StreamRequest) -> dict[str, tuple[Any, ...]]:
    return {
        f"{v.field} {v.offset}": (v.width, v.min, v.max, v.mode) for v in stream.vary
    }


def test_a_router_gets_fixed_frames_from_real_to_real(tmp_path: Path) -> None:
    requests = made(tmp_path, ROUTER)
    request = main_of(requests)
    assert requests.phase1 is None
    assert (request.duration_ns, request.residual_wait_ns) == (60 * 10**9, 2 * 10**9)
    assert [(d.name, d.rate_fps) for d in request.directions] == [
        ("forward", 1000),
        ("reverse", 1000),
    ]
    (forward,) = streams(requests, "forward")
    assert (forward.src_ip, forward.dst_ip) == ("198.18.0.2", "198.19.0.2")
    assert (forward.src_port, forward.dst_port, forward.vary) == (0xC020, 7, [])
    assert (forward.frame_sizes, forward.received_frame_sizes) == ([64], [64])
    assert forward.src_mac == "02:00:00:00:00:01"
    assert forward.dst_mac == "02:00:00:00:01:01"
    (reverse,) = streams(requests, "reverse")
    assert (reverse.src_mac, reverse.dst_mac) == (
        "02:00:00:00:00:02",
        "02:00:00:00:01:01",
    )


def test_a_translator_gets_ipv4_frames_that_are_20_bytes_shorter(
    tmp_path: Path,
) -> None:
    requests = made(tmp_path, SIIT, "1518 1000 60 2000 1 1")
    (forward,), (reverse,) = (streams(requests, n) for n in ("forward", "reverse"))
    assert (forward.ip_version, forward.frame_sizes) == (6, [1518])
    assert forward.received_frame_sizes == [1498]
    assert forward.dst_ip == "2001:2:0:1000::2"
    assert (reverse.ip_version, reverse.frame_sizes) == (4, [1498])
    assert (reverse.received_frame_sizes, reverse.dst_ip) == ([1518], "198.18.0.2")


def test_one_side_only_and_the_seed(tmp_path: Path) -> None:
    request = main_of(made(tmp_path, ROUTER | {"Reverse": "0"}))
    assert [d.name for d in request.directions] == ["forward"]
    assert (request.seed, request.trial_id) == (5, 65535)


@pytest.mark.parametrize(("m", "names"), [(1, 2), (3, 2), (0, 1), (4, 1)])
def test_background_is_ipv6_from_real_to_real(
    tmp_path: Path, m: int, names: int
) -> None:
    n = 1 if m in (0, 4) else 4
    requests = made(tmp_path, ROUTER, f"84 1000 60 2000 {n} {min(m, n)}")
    found = streams(requests, "reverse")
    assert len(found) == names
    if m == 4:
        assert found[0].name == "foreground"
        return
    background = found[-1]
    assert (background.name, background.ip_version) == ("background", 6)
    assert (background.src_ip, background.dst_ip) == ("2001:2:0:8000::2", "2001:2::2")
    assert background.frame_sizes == background.received_frame_sizes == [84]
    mix = main_of(requests).directions[1].mix
    assert (mix and (mix.foreground, mix.of)) == ((m, 4) if m else None)


def test_background_without_addresses_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="IPv6-L-Real is missing: background"):
        made(tmp_path, ROUTER | {"IPv6-L-Real": "::"}, "84 1000 60 2000 2 1")


def test_ports_vary_as_the_file_says_foreground_and_background(
    tmp_path: Path,
) -> None:
    keys = ROUTER | {
        "Fwd-var-sport": "1",
        "Fwd-sport-min": "5",
        "Fwd-sport-max": "9",
        "Fwd-var-dport": "2",
        "Rev-var-dport": "3",
    }
    requests = made(tmp_path, keys, "84 1000 60 2000 2 1")
    for stream in streams(requests, "forward"):
        assert varied(stream) == {
            "src_port 0": (16, 5, 9, "increasing"),
            "dst_port 0": (16, 1, 49151, "decreasing"),
        }
    for stream in streams(requests, "reverse"):
        assert varied(stream) == {"dst_port 0": (16, 1, 49151, "random")}
        assert stream.src_port == 0xC020


@pytest.mark.parametrize(
    ("keys", "place"), [(ROUTER, "dst_ip 16"), (ROUTER6, "dst_ip 56")]
)
def test_networks_of_the_right_are_where_the_left_sends_to(
    tmp_path: Path, keys: dict[str, str], place: str
) -> None:
    requests = made(tmp_path, keys | {"Num-R-Nets": "256"})
    assert varied(streams(requests, "forward")[0]) == {place: (8, 0, 255, "random")}
    assert streams(requests, "reverse")[0].vary == []


def test_few_networks_begin_with_the_addresss_own(tmp_path: Path) -> None:
    far = ROUTER | {"IPv4-R-Real": "198.19.250.2"}
    for count, least in (("6", 250), ("7", 0)):
        requests = made(tmp_path, far | {"Num-R-Nets": count})
        least_and_most = (8, least, least + int(count) - 1, "random")
        assert varied(streams(requests, "forward")[0])["dst_ip 16"] == least_and_most


def test_hosts_are_source_of_their_side_and_destination_of_the_other(
    tmp_path: Path,
) -> None:
    keys = ROUTER6 | {
        "IP-L-var": "3",
        "IP-L-min": "0",
        "IP-L-max": "0xffff",
        "IPv6-L-offset": "12",
        "IP-R-var": "1",
        "IP-R-min": "2",
        "IP-R-max": "9",
        "IPv6-R-offset": "14",
    }
    requests = made(tmp_path, keys)
    left, right = (16, 0, 65535, "random"), (16, 2, 9, "increasing")
    assert varied(streams(requests, "forward")[0]) == {
        "src_ip 96": left,
        "dst_ip 112": right,
    }
    assert varied(streams(requests, "reverse")[0]) == {
        "src_ip 112": right,
        "dst_ip 96": left,
    }
    conf = read(tmp_path, keys)
    sides = {
        each.port: {(a.first, a.count, a.shift) for a in each.own}
        for each in neighbours(conf, {}).ports
    }
    assert ("2001:2:0:8000::2", 8, 0) in sides["right"]
    assert ("2001:2::2", 65536, 16) in sides["left"]
    # Frames of IPv4 there are none: the device's own address may be in the range.
    assert ("198.18.0.2", 1, 0) in sides["left"]
    assert not any(count > 1 for first, count, _ in sides["left"] if "." in first)


def test_the_devices_own_address_is_never_the_testers(tmp_path: Path) -> None:
    def right(gateway: str) -> list[tuple[str, int]]:
        gateways: Gateways = {("right", 4): gateway}
        found = neighbours(read(tmp_path, HOSTS44), gateways).ports[1]
        return [(a.first, a.count) for a in found.own if "." in a.first][1:]

    all_of_them = 65535
    assert right("192.0.2.1") == [("198.19.0.0", all_of_them)]
    assert right("198.19.0.1") == [("198.19.0.0", 1), ("198.19.0.2", 65533)]
    assert right("198.19.0.0") == [("198.19.0.1", 65534)]
    assert right("198.19.255.254") == [("198.19.0.0", 65534)]


def test_next_hops_are_asked_if_a_testbed_tells_them(tmp_path: Path) -> None:
    keys = {key: v for key, v in ROUTER.items() if "DUT" not in key}
    requests = made(tmp_path, keys, "84 1000 60 2000 2 1", gateways=GATEWAYS)
    hops = [stream.next_hop for stream in streams(requests, "forward")]
    assert hops == ["198.18.0.1", "2001:2::1"]
    asked = neighbours(read(tmp_path, keys), GATEWAYS)
    assert [each.resolve for each in asked.ports] == [
        ["198.18.0.1", "2001:2::1"],
        ["198.19.0.1", "2001:2:0:8000::1"],
    ]
    with pytest.raises(InputError, match="MAC-L-DUT is missing, and no testbed"):
        made(tmp_path, keys)


def test_latency_has_tags_and_a_frame_timeout_makes_frames_late(
    tmp_path: Path,
) -> None:
    tags = main_of(made(tmp_path, ROUTER, f"{TRIAL} 10 500", "lat")).record.tags
    assert tags
    assert (tags.first_ns, tags.count) == (10 * 10**9, 500)
    late = main_of(made(tmp_path, ROUTER, f"{TRIAL} 100", "pdv"))
    assert (late.frame_timeout_ns, late.record.fine_delays) == (100_000_000, True)
    never = main_of(made(tmp_path, ROUTER, f"{TRIAL} 0", "pdv"))
    assert never.frame_timeout_ns is None


def test_phase_1_sends_each_combination_of_ports_once(tmp_path: Path) -> None:
    requests = made(tmp_path, NAT44, TRIAL + PHASE1)
    opened = requests.phase1
    assert opened
    (direction,) = opened.directions
    assert (direction.name, direction.rate_fps) == ("forward", 1000)
    assert opened.frames(direction) == 4000
    (stream,) = direction.streams
    assert (stream.src_ip, stream.dst_ip) == ("10.0.0.2", "198.19.0.2")
    assert varied(stream) == {
        "src_port 0": (16, 10000, 10099, "enumerate"),
        "dst_port 0": (16, 80, 119, "enumerate"),
    }
    assert (stream.enumeration_order, opened.residual_wait_ns) == (
        "random",
        500 * 10**6,
    )
    assert opened.learn
    assert (opened.learn.entries, opened.learn.keep) == (4000, False)
    assert (opened.trial_id, main_of(requests).trial_id) == (65535, 1)


def test_phase_2_sends_opened_connections_and_answers_learned_ones(
    tmp_path: Path,
) -> None:
    requests = made(tmp_path, NAT44, TRIAL + PHASE1)
    main = main_of(requests)
    assert (main.not_before_ns, main.settle_ns) == (4500 * 10**6, 0)
    assert main.learn
    assert main.learn.keep
    (forward,), (reverse,) = (streams(requests, n) for n in ("forward", "reverse"))
    assert forward.tuples
    assert (forward.tuples.count, forward.tuples.order) == (4000, "random")
    assert reverse.tuples
    assert (reverse.tuples.source, reverse.tuples.order) == ("learned", "random")
    assert (reverse.tuples.count, reverse.vary) == (4000, [])


@pytest.mark.parametrize(
    ("mode", "order"),
    [("0", "first"), ("1", "increasing"), ("2", "decreasing"), ("3", "random")],
)
def test_responder_tuples_is_an_order(tmp_path: Path, mode: str, order: str) -> None:
    requests = made(tmp_path, NAT44 | {"Responder-tuples": mode}, TRIAL + PHASE1)
    tuples = streams(requests, "reverse")[0].tuples
    assert tuples
    assert tuples.order == order


def test_connections_by_addresses_keep_what_is_fixed(tmp_path: Path) -> None:
    requests = made(tmp_path, HOSTS44, TRIAL + PHASE1)
    assert requests.phase1
    (stream,) = requests.phase1.directions[0].streams
    assert varied(stream) == {
        "src_ip 16": (16, 2, 65534, "enumerate"),
        "dst_ip 16": (16, 0, 65534, "enumerate"),
    }
    assert (stream.src_port, stream.dst_port) == (0xC020, 7)


def test_ports_and_addresses_are_enumerated_together(tmp_path: Path) -> None:
    both = HOSTS44 | NAT44 | {"Enumerate-ports": "3"}
    requests = made(tmp_path, both, TRIAL + PHASE1)
    assert requests.phase1
    (stream,) = requests.phase1.directions[0].streams
    assert {v.mode for v in stream.vary} == {"enumerate"}
    assert len(stream.vary) == 4


def test_without_enumeration_phase_1_draws_and_numbers_its_frames(
    tmp_path: Path,
) -> None:
    requests = made(tmp_path, NAT44 | {"Enumerate-ports": "0"}, TRIAL + PHASE1)
    assert requests.phase1
    (stream,) = requests.phase1.directions[0].streams
    assert {v.mode for v in stream.vary} == {"random"}
    assert streams(requests, "forward")[0].tuples is None


def test_fixed_ports_in_phase_2_stay_fixed(tmp_path: Path) -> None:
    keys = NAT44 | {"Fwd-var-sport": "0", "Fwd-var-dport": "0"}
    (forward,) = streams(made(tmp_path, keys, TRIAL + PHASE1), "forward")
    assert (forward.tuples, forward.vary, forward.src_port) == (None, [], 0xC020)


def test_a_right_initiator_and_an_ipv6_responder_work(tmp_path: Path) -> None:
    requests = made(tmp_path, NAT64, TRIAL + PHASE1)
    assert requests.phase1
    assert requests.phase1.learn
    assert requests.phase1.learn.ip_version == 4
    turned = {
        **NAT64,
        "Stateful": "2",
        "Rev-sport-min": "10000",
        "Rev-sport-max": "10099",
        "Rev-dport-min": "80",
        "Rev-dport-max": "119",
    }
    requests = made(tmp_path, turned, TRIAL + PHASE1)
    assert requests.phase1
    assert requests.phase1.learn
    assert [d.name for d in requests.phase1.directions] == ["reverse"]
    assert requests.phase1.learn.ip_version == 6


@pytest.mark.parametrize("mode", ["1", "2"])
def test_up_and_down_phase_1_goes_round_where_combinations_are_few(
    tmp_path: Path, mode: str
) -> None:
    keys = NAT44 | {"Enumerate-ports": mode}
    requests = made(tmp_path, keys, TRIAL + " 9000 9000 1000 500 9500")
    assert requests.phase1
    assert requests.phase1.learn
    assert requests.phase1.learn.entries == 9000
    (again,) = streams(requests, "forward")
    assert again.tuples
    assert again.tuples.count == 4000 == again.combinations


def test_what_cannot_be_enumerated_or_filled_is_refused(tmp_path: Path) -> None:
    few = TRIAL + " 4001 4000 1000 500 4501"
    with pytest.raises(InputError, match="4000 combinations are fewer than the 4001"):
        made(tmp_path, NAT44, few)
    with pytest.raises(InputError, match="cannot fill"):
        made(tmp_path, NAT44, "84 1000 60 2000 2 1" + PHASE1)
    one = TRIAL + " 4000 1 1000 500 4500"
    with pytest.raises(InputError, match="Responder-tuples must be 0 with one entry"):
        made(tmp_path, NAT44, one)
    assert made(tmp_path, NAT44 | {"Responder-tuples": "0"}, one).phase1


def test_stateful_phase_1_may_be_alone(tmp_path: Path) -> None:
    keys = NAT44 | {"Forward": "0", "Reverse": "0"}
    requests = made(tmp_path, keys, TRIAL + PHASE1)
    assert requests.phase1
    assert requests.main is None


def test_a_responder_needs_no_addresses_of_the_file(tmp_path: Path) -> None:
    requests = made(tmp_path, README64, TRIAL + PHASE1)
    assert requests.phase1
    (opening,) = requests.phase1.directions[0].streams
    assert (opening.src_ip, opening.dst_ip) == ("2001:2::2", "64:ff9b::c613:2")
    (answers,) = streams(requests, "reverse")
    assert (answers.src_ip, answers.dst_ip) == ("0.0.0.0", "0.0.0.0")  # noqa: S104
    assert answers.is_learned
    keys = {key: v for key, v in README64.items() if key != "MAC-R-DUT"}
    with pytest.raises(InputError, match="without IPv4-R-Real nobody can be asked"):
        made(tmp_path, keys, TRIAL + PHASE1, gateways=GATEWAYS)


@pytest.mark.parametrize(
    ("keys", "field", "offset"),
    [
        (HOSTS4 | {"IPv4-L-offset": "1"}, "src_ip", 8),
        *((HOSTS6 | {"IPv6-L-offset": str(n)}, "src_ip", 8 * n) for n in range(6, 15)),
    ],
)
def test_the_bits_that_vary_may_begin_at_any_byte_that_siitperf_takes(
    tmp_path: Path, keys: dict[str, str], field: str, offset: int
) -> None:
    (forward, *_) = streams(made(tmp_path, keys), "forward")
    assert f"{field} {offset}" in varied(forward)


def test_random_ports_are_the_usual_ones(tmp_path: Path) -> None:
    (forward,) = streams(made(tmp_path, ROUTER | RANDOM_PORTS), "forward")
    assert varied(forward) == {
        "src_port 0": (16, 1024, 65535, "random"),
        "dst_port 0": (16, 1, 49151, "random"),
    }
