from __future__ import annotations

import pytest
from planning import TESTBED, cell

from dutperf.engine.protocol import StreamRequest, TrialRequest
from dutperf.errors import InputError
from dutperf.procedures.traffic import trial_request


def request(**keys: object) -> TrialRequest:
    return trial_request(TESTBED, cell(**keys), 1000, 5)


def streams(trial: TrialRequest) -> dict[str, StreamRequest]:
    return {direction.name: direction.streams[0] for direction in trial.directions}


def test_forward_goes_from_left_to_right_through_the_left_gateway() -> None:
    forward = streams(request())["forward"]
    assert (forward.id, forward.src_ip, forward.dst_ip, forward.next_hop) == (
        0,
        "198.18.0.2",
        "198.19.0.2",
        "198.18.0.1",
    )


def test_reverse_is_the_mirror_of_forward() -> None:
    reverse = streams(request(ip=[6]))["reverse"]
    assert (reverse.id, reverse.src_ip, reverse.dst_ip, reverse.next_hop) == (
        2,
        "2001:2:0:1::2",
        "2001:2::2",
        "2001:2:0:1::1",
    )


def test_fixed_ports_are_those_of_rfc_2544_c_2_6_4() -> None:
    ports = {"source": "fixed", "destination": "fixed"}
    forward = streams(request(traffic={"ports": ports}))["forward"]
    assert (forward.src_port, forward.dst_port) == (0xC020, 7)
    assert forward.vary == []


@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_one_direction_alone_is_the_only_one_with_frames(direction: str) -> None:
    assert list(streams(request(direction=direction))) == [direction]


def test_times_limits_and_seed_are_the_cells() -> None:
    trial = request(
        trial_duration_s=0.5,
        settle_wait_s=0.25,
        residual_wait_s=0.125,
        lag_limit_ms=1.5,
        burst_limit=8,
    )
    assert (trial.trial_id, trial.seed) == (5, 1)
    assert (trial.duration_ns, trial.settle_ns) == (500_000_000, 250_000_000)
    assert (trial.residual_wait_ns, trial.lag_limit_ns) == (125_000_000, 1_500_000)
    assert trial.burst_limit == 8
    assert [d.rate_fps for d in trial.directions] == [1000, 1000]


def test_a_duration_may_differ_from_the_cells() -> None:
    trial = trial_request(TESTBED, cell(), 1000, 5, duration_s=0.1)
    assert trial.duration_ns == 100_000_000


def test_a_side_without_addresses_is_named_as_the_key_to_add() -> None:
    left = TESTBED.left.model_copy(update={"ipv6": None})
    testbed = TESTBED.model_copy(update={"left": left})
    with pytest.raises(InputError, match="IPv6") as caught:
        trial_request(testbed, cell(ip=[6]), 1000, 5)
    assert "ipv6" in caught.value.hint
