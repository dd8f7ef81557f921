from __future__ import annotations

from pathlib import Path

import pytest
from siitperf_files import (
    HOSTS44,
    NAT44,
    NAT64,
    README64,
    ROUTER,
    ROUTER6,
    SIIT,
    read,
    text_of,
    write,
)

from dutperf.compat.conf import KEYS, NAME, Range, addresses_of, read_conf
from dutperf.errors import InputError

NONE = "0.0.0.0"  # noqa: S104 - an address of the file


def refusal(folder: Path, text: str) -> str:
    path = folder / NAME
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_conf(path)
    assert caught.value.message.startswith(f"{path}")
    return caught.value.message.removeprefix(f"{path}").lstrip(":")


def test_comments_blank_lines_and_any_order_are_read(tmp_path: Path) -> None:
    lines = [f"  {key}\t{value} # why" for key, value in reversed(ROUTER.items())]
    path = tmp_path / NAME
    path.write_text("# an IPv4 router\r\n\n" + "\r\n\n".join(lines))
    conf = read_conf(path)
    assert conf.sides == read(tmp_path, ROUTER).sides
    assert conf.sides["left"].real == {4: "198.18.0.2", 6: "2001:2::2"}
    assert conf.sides["right"].device_mac == "02:00:00:00:01:01"


def test_defaults_are_those_of_the_documentation(tmp_path: Path) -> None:
    keys = {key: v for key, v in SIIT.items() if key not in ("IP-L-Vers", "IP-R-Vers")}
    conf = read(tmp_path, keys)
    left, right = conf.sides["left"], conf.sides["right"]
    assert (left.version, right.version) == (6, 4)
    assert (left.networks, left.hosts.mode, conf.initiator) == (1, "fixed", None)
    assert conf.active == ["forward", "reverse"]
    forward = conf.directions["forward"]
    assert forward.source_ports == Range("fixed", 1024, 65535)
    assert forward.destination_ports == Range("fixed", 1, 49151)


def test_every_key_is_of_use_and_can_be_given(tmp_path: Path) -> None:
    values = {"address4": "192.0.2.1", "address6": "2001:db8::1"}
    for key in KEYS:
        for value in ("1", "2", "4", "6", "02:00:00:00:00:09", *values.values()):
            path = write(tmp_path, SIIT | {key: value})
            try:
                read_conf(path)
            except InputError as error:
                if f"{key} must be" not in error.message:
                    break  # understood, it only does not fit the others
            else:
                break
        else:
            pytest.fail(f"{key} takes nothing")


def test_zero_addresses_are_none(tmp_path: Path) -> None:
    conf = read(
        tmp_path,
        ROUTER
        | {"IPv6-L-Real": "::", "MAC-L-DUT": "00:00:00:00:00:00"}
        | {"IPv4-L-Virt": NONE},
    )
    left = conf.sides["left"]
    assert (left.real, left.virtual, left.device_mac) == ({4: "198.18.0.2"}, {}, None)


def test_the_older_name_of_responder_tuples_is_known(tmp_path: Path) -> None:
    keys = {key: v for key, v in NAT44.items() if key != "Responder-tuples"}
    assert read(tmp_path, keys | {"Responder-ports": "2"}).responder_tuples == (
        "decreasing"
    )
    both = read(tmp_path, NAT44 | {"Responder-ports": "2"})
    assert both.responder_tuples == "decreasing"
    assert "Responder-tuples was in line" in both.notices[0]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("IP-L-Ver 4", "3: there is no key 'IP-L-Ver'; is IP-L-Vers meant?"),
        ("bogus 4", "3: there is no key 'bogus'"),
        ("IP-L-Vers", "3: IP-L-Vers needs a value"),
        ("IP-L-Vers 5", "3: IP-L-Vers must be 4 or 6, not '5'"),
        ("Num-L-Nets 0", "3: Num-L-Nets must be a number from 1 to 256, not '0'"),
        ("Num-L-Nets 257", "must be a number from 1 to 256"),
        ("Num-L-Nets -1", "must be a number from 1 to 256"),
        ("Num-L-Nets 1e1", "must be a number from 1 to 256"),
        ("Fwd-sport-min 0x10", "must be a number from 0 to 65535"),
        ("IP-L-min 0x10000", "must be a number from 0 to 65535"),
        ("IPv4-L-Real 198.18.0.256", "must be an IPv4 address"),
        ("IPv6-L-Real 198.18.0.2", "must be an IPv6 address"),
        ("MAC-L-DUT 02:00:00:00:00", "must be a MAC address"),
        ("Forward yes", "Forward must be a number"),
        ("MAC-L-DUT 02:00:00:00:00:", "must be a MAC address"),
        ("IPv4-L-offset 3", "must be 1 or 2"),
        ("IPv6-L-offset 5", "must be a number from 6 to 14"),
        ("Enumerate-ports 4", "must be 0, 1, 2 or 3"),
        ("Stateful 3", "must be 0, 1 or 2"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number(
    tmp_path: Path, line: str, told: str
) -> None:
    assert told in refusal(tmp_path, f"# first\n\n{line}\n")


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("Forward 0", "11: Forward was in line 10, too: this one is used"),
        ("Reverse 0 of course", "11: Reverse is 0; what follows is ignored"),
        ("Reverse 7", "11: Reverse is 7: 1 is used"),
        ("IP-L-max 70000", "11: IP-L-max is 70000: 65535 is used"),
        ("IP-L-max 0x10000", "11: IP-L-max is 0x10000: 65535 is used"),
    ],
)
def test_what_counts_otherwise_than_it_stands_there_is_a_notice(
    tmp_path: Path, line: str, told: str
) -> None:
    keys = {key: v for key, v in ROUTER.items() if key != "MAC-L-Tester"}
    path = tmp_path / NAME
    path.write_text(text_of(keys) + f"Forward 1\n{line}\n")
    conf = read_conf(path)
    assert conf.notices == (f"{path}:{told}",)
    assert conf.directions["forward"].active == (line != "Forward 0")
    assert conf.directions["reverse"].active == (line != "Reverse 0 of course")
    assert conf.sides["left"].hosts.most == 65535


@pytest.mark.parametrize(
    "changes",
    [
        {"Promisc:": "1"},
        {"MAC-L-DUT": "2:0:0:0:1:1"},
        {"Fwd-sport-min": "9", "Fwd-sport-max": "8"},
        {"Rev-var-dport": "3", "Rev-dport-min": "9", "Rev-dport-max": "8"}
        | {"Reverse": "0"},
        {"IP-L-min": "9", "IP-L-max": "8"},
    ],
)
def test_what_changes_no_frame_is_accepted_without_a_notice(
    tmp_path: Path, changes: dict[str, str]
) -> None:
    conf = read(tmp_path, ROUTER | {"MAC-L-DUT": "02:00:00:00:01:01"} | changes)
    assert conf.notices == ()
    assert conf.sides["left"].device_mac == "02:00:00:00:01:01"


def test_of_a_responder_only_that_it_cannot_answer_is_told(tmp_path: Path) -> None:
    conf = read(tmp_path, README64)
    (notice,) = conf.notices
    assert "IPv4-R-Real is missing: the tester does not answer ARP" in notice
    keys = NAT64 | {"Stateful": "2", "IP-L-Vers": "4", "IP-R-Vers": "6"}
    keys |= {"IPv6-L-Virt": "64:ff9b::c612:2", "IPv4-L-Real": NONE}
    assert "on the left" in read(tmp_path, keys).notices[0]
    assert read(tmp_path, NAT44).notices == ()


@pytest.mark.parametrize(
    ("base", "changes", "told"),
    [
        (ROUTER, {"Forward": "0", "Reverse": "0"}, "nothing is sent"),
        (
            ROUTER | {"Fwd-var-sport": "1"},
            {"Fwd-sport-min": "9", "Fwd-sport-max": "8"},
            "below Fwd-sport-min 9",
        ),
        (
            NAT44 | {"Fwd-var-sport": "0", "Forward": "0"},
            {"Fwd-sport-min": "9", "Fwd-sport-max": "8"},
            "below Fwd-sport-min 9",
        ),
        (
            ROUTER | {"IP-L-var": "1"},
            {"IP-L-min": "9", "IP-L-max": "8"},
            "below IP-L-min 9",
        ),
        (
            ROUTER6 | {"IP-R-var": "3", "IPv6-R-offset": "7"},
            {"Num-R-Nets": "9"},
            "need the same bits",
        ),
        (ROUTER, {"IPv4-R-Real": NONE}, "IPv4-R-Real is missing"),
        (SIIT, {"IPv6-R-Virt": "::"}, "IPv6-R-Virt is missing"),
        (ROUTER, {"Enumerate-ports": "3"}, "needs Stateful 1 or 2"),
        (ROUTER, {"Enumerate-ips": "3"}, "needs Stateful 1 or 2"),
        (NAT44, {"Num-R-Nets": "2"}, "Enumerate-ports needs one network"),
        (HOSTS44, {"Enumerate-ports": "1"}, "must be what Enumerate-ports is"),
        (HOSTS44, {"IP-R-var": "0"}, "so IP-R-var not 0"),
        (NAT64, {"Forward": "0", "IPv6-R-Virt": "::"}, "IPv6-R-Virt is missing"),
        (ROUTER, {"IP-R-var": "3", "Num-R-Nets": "9"}, "need the same bits"),
    ],
)
def test_what_does_not_fit_together_is_refused(
    tmp_path: Path, base: dict[str, str], changes: dict[str, str], told: str
) -> None:
    assert told in refusal(tmp_path, text_of(base | changes))


@pytest.mark.parametrize(
    ("left", "right", "forward", "reverse"),
    [  # paper 002, Table 1
        ("6", "4", ("IPv6-L-Real", "IPv6-R-Virt"), ("IPv4-R-Real", "IPv4-L-Virt")),
        ("4", "6", ("IPv4-L-Real", "IPv4-R-Virt"), ("IPv6-R-Real", "IPv6-L-Virt")),
        ("4", "4", ("IPv4-L-Real", "IPv4-R-Real"), ("IPv4-R-Real", "IPv4-L-Real")),
        ("6", "6", ("IPv6-L-Real", "IPv6-R-Real"), ("IPv6-R-Real", "IPv6-L-Real")),
    ],
)
def test_addresses_are_those_of_table_1(
    tmp_path: Path,
    left: str,
    right: str,
    forward: tuple[str, str],
    reverse: tuple[str, str],
) -> None:
    addresses = {
        f"IPv{version}-{side}-{kind}": f"192.0.2.{number}"
        if version == 4
        else f"2001:db8::{number}"
        for version in (4, 6)
        for number, (side, kind) in enumerate(
            [("L", "Real"), ("L", "Virt"), ("R", "Real"), ("R", "Virt")], 1
        )
    }
    conf = read(tmp_path, addresses | {"IP-L-Vers": left, "IP-R-Vers": right})
    assert addresses_of(conf, "forward") == [(k, addresses[k]) for k in forward]
    assert addresses_of(conf, "reverse") == [(k, addresses[k]) for k in reverse]


def test_a_file_that_is_not_there_or_no_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_conf(tmp_path / NAME)
    (tmp_path / NAME).write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="it is not text"):
        read_conf(tmp_path / NAME)
