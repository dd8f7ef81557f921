"""Whatever stands in siitperf.conf or on its command lines is used or refused."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from fuzzing import seeded
from hypothesis import given
from hypothesis import strategies as st
from siitperf_files import HOSTS44, NAT44, NAT64, ROUTER, ROUTER6, SIIT, text_of

from dutperf.compat.command_line import Command, expected, read_arguments
from dutperf.compat.conf import KEYS, read_conf
from dutperf.compat.requests import neighbours, trial_requests
from dutperf.errors import InputError

COMMANDS: tuple[Command, ...] = ("tp", "lat", "pdv")
VALUES = """
    0 1 2 3 4 6 12 14 256 65535 65536 0x0 0xffff 0x -1 1e3 ² nan :: ::1 2001:2::2
    0.0.0.0 198.18.0.2 255.255.255.255 ff02::1 02:00:00:00:00:01 ff:ff:ff:ff:ff:ff # #1
"""
TEXTS = st.sampled_from(VALUES.split()) | st.text(max_size=6)
WORDS = st.sampled_from(
    ["84", "1", "2", "60", "1000", "4000", "0", "65535", "-1", "9" * 30, "", "²", "1.5"]
)
BASES = st.sampled_from([{}, ROUTER, ROUTER6, SIIT, NAT44, NAT64, HOSTS44])
LINES = st.lists(
    st.builds(lambda key, value: f"{key} {value}", st.sampled_from(sorted(KEYS)), TEXTS)
    | st.text(max_size=20),
    max_size=4,
)


@pytest.fixture
def read_all(tmp_path: Path) -> Callable[[str, list[str], Command], None]:
    path = tmp_path / "siitperf.conf"

    def read(text: str, words: list[str], command: Command) -> None:
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
        conf = read_conf(path)
        stateful = conf.initiator is not None
        wanted = expected(command, stateful=stateful)
        line = [
            words[number] if number < len(words) else str(max(each.least, 1))
            for number, each in enumerate(wanted)
        ]
        arguments = read_arguments(command, line, stateful=stateful, only_ipv4=False)
        trial_requests(conf, arguments, {}, seed=1, first_id=1)
        neighbours(conf, {}, background=True)

    return read


def test_any_file_and_command_line_make_a_trial_or_are_refused(
    read_all: Callable[[str, list[str], Command], None],
) -> None:
    made: list[str] = []

    @seeded
    @given(BASES, LINES, st.lists(WORDS, max_size=12), st.sampled_from(COMMANDS))
    def check(
        base: dict[str, str], lines: list[str], words: list[str], command: Command
    ) -> None:
        changed = {line.split(" ")[0] for line in lines}
        kept = {key: value for key, value in base.items() if key not in changed}
        text = text_of(kept) + "\n".join(lines)
        with contextlib.suppress(InputError):
            read_all(text, words, command)
            made.append(text)

    check()
    assert made, "everything was refused: nothing was tried"
