from __future__ import annotations

import pytest

from dutperf.compat.command_line import (
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


@pytest.mark.parametrize(
    ("given", "n", "m"),
    [("1 0", 1, 0), ("2 0", 1, 0), ("2 2", 1, 1), ("4 2", 2, 1), ("10 9", 10, 9)],
)
def test_n_and_m_may_have_a_common_divisor(given: str, n: int, m: int) -> None:
    found = read("tp", f"84 1000 60 2000 {given}")
    assert (found.n, found.m, found.notices) == (n, m, ())


def test_more_arguments_than_needed_are_ignored_with_a_notice() -> None:
    found = read("tp", f"{TRIAL}{PHASE1}")
    assert (found.phase1, found.rate_fps) == (None, 1000)
    (notice,) = found.notices
    assert notice.startswith("arguments ignored")
    assert notice.endswith(": 4000 2000 1000 500 5000")


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


@pytest.mark.parametrize(("mix", "most"), [("2 1", 3000), ("2 2", 6000), ("2 0", 6000)])
def test_more_tags_than_frames_are_cut_with_a_notice(mix: str, most: int) -> None:
    line = f"84 1000 10 2000 {mix} 4"
    found = read("lat", f"{line} {most}")
    assert (found.tags, found.notices) == (most, ())
    found = read("lat", f"{line} {most + 1}")
    assert found.tags == most
    assert f"timestamps {most + 1}: {most} are used" in found.notices[0]
