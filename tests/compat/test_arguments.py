from __future__ import annotations

import pytest

from dutperf.compat.arguments import (
    Arguments,
    Command,
    Phase1,
    expected,
    read_arguments,
)
from dutperf.errors import InputError

TRIAL = "84 1000 60 2000 2 1"
PHASE1 = " 4000 2000 1000 500 5000"


def read(
    command: Command, line: str, *, stateful: bool = False, only_ipv4: bool = False
) -> Arguments:
    return read_arguments(command, line.split(), stateful=stateful, only_ipv4=only_ipv4)


def refusal(
    command: Command, line: str, *, stateful: bool = False, only_ipv4: bool = False
) -> str:
    with pytest.raises(InputError) as caught:
        read(command, line, stateful=stateful, only_ipv4=only_ipv4)
    return caught.value.message


def test_each_number_has_its_place() -> None:
    plain = Arguments("tp", 84, 1000, 60, 2000, 2, 1)
    assert read("tp", TRIAL) == plain
    found = read("lat", f"{TRIAL}{PHASE1} 10 500", stateful=True)
    assert found.phase1 == Phase1(4000, 2000, 1000, 500, 5000)
    assert (found.first_tag_s, found.tags, found.frame_timeout_ms) == (10, 500, None)
    found = read("pdv", f"{TRIAL} 100")
    assert (found.phase1, found.tags, found.frame_timeout_ms) == (None, None, 100)


def test_rates_have_no_ceiling_of_10_gigabits() -> None:
    assert read("tp", "84 148809523 60 2000 1 1").rate_fps == 148_809_523


def test_all_frames_may_be_background() -> None:
    assert read("tp", "84 1000 60 2000 1 0").m == 0


@pytest.mark.parametrize("stateful", [False, True])
@pytest.mark.parametrize("command", ["tp", "lat", "pdv"])
def test_a_wrong_number_of_arguments_is_told_with_the_list(
    command: Command, *, stateful: bool
) -> None:
    wanted = expected(command, stateful=stateful)
    line = " ".join(["1"] * (len(wanted) - 1))
    message = refusal(command, line, stateful=stateful)
    assert f"takes {len(wanted)} arguments, and {len(wanted) - 1} are given" in message
    assert message.endswith(" ".join(f"<{each.name}>" for each in wanted))


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("83 1000 60 2000 1 1", "ipv6_size must be a number from 84 to 1538"),
        ("1519 1000 60 2000 1 1", "at most 1518"),
        ("84 0 60 2000 1 1", "rate must be"),
        ("84 1000 0 2000 1 1", "duration must be a number from 1 to 3600"),
        ("84 1000 3601 2000 1 1", "duration must be"),
        ("84 1000 60 60001 1 1", "global_timeout must be"),
        ("84 1000 60 2000 2 2", "no common divisor"),
        ("84 1000 60 2000 2 3", "m must not be above n"),
        ("84 1000 6.5 2000 1 1", "duration must be a number"),
        ("84 1000 -60 2000 1 1", "duration must be a number"),
        ("84 1000 \u0661 2000 1 1", "duration must be a number"),
    ],
)
def test_what_leaves_its_range_is_refused(line: str, told: str) -> None:
    assert told in refusal("tp", line)


def test_ipv4_frames_may_have_1518_bytes() -> None:
    line = "1538 1000 60 2000 1 1"
    assert read("tp", line, only_ipv4=True).ipv6_size == 1538
    assert "at most 1518" in refusal("tp", line)


@pytest.mark.parametrize(
    ("phase1", "told"),
    [
        ("0 1 1000 500 5000", "N must be"),
        ("4000 0 1000 500 5000", "M must be"),
        ("4294967296 1 1000 500 5000", "N must be"),
        ("4000 1 1000 2001 9000", "T must be"),
        ("4000 4000 1000 500 4499", "D must be at least 1000*N/R + T, that is 4500 ms"),
        ("4000 4001 1000 500 5000", "M must not be above N"),
    ],
)
def test_phase_1_has_to_fit(phase1: str, told: str) -> None:
    assert told in refusal("tp", f"84 1000 60 2000 1 1 {phase1}", stateful=True)


def test_background_alone_opens_no_connections() -> None:
    line = "84 1000 60 2000 1 0 4000 4000 1000 500 4500"
    assert "m must be at least 1" in refusal("tp", line, stateful=True)


def test_phase_1_may_end_when_phase_2_begins() -> None:
    line = "84 1000 60 2000 1 1 4000 4000 1000 500 4500"
    assert read("tp", line, stateful=True).phase1


def test_tags_begin_within_the_trial() -> None:
    assert "delay must be below duration" in refusal("lat", f"{TRIAL} 60 500")
    assert "timestamps must be" in refusal("lat", f"{TRIAL} 10 50001")
    assert "timestamps must be" in refusal("lat", f"{TRIAL} 10 0")
    assert "frame_timeout must be" in refusal("pdv", f"{TRIAL} 60001")


def test_there_are_as_many_frames_as_tags() -> None:
    line = "84 1000 10 2000 2 1 4"
    assert read("lat", f"{line} 3000").tags == 3000
    assert "timestamps must be at most 3000" in refusal("lat", f"{line} 3001")
    alone = "84 1000 10 2000 1 0 4"
    assert read("lat", f"{alone} 6000").tags == 6000
    assert "timestamps must be at most 6000" in refusal("lat", f"{alone} 6001")
