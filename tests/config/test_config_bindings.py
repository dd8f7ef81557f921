"""Binding tables of lw4o6 as files: each fault has its line, the engine its rows."""

from __future__ import annotations

import codecs
import hashlib
import ipaddress
import json
import struct
from pathlib import Path
from random import Random
from typing import Any

import pytest
from config_samples import make_campaign, make_testbed

from dutperf.config import Testbed, expand, load_testbed
from dutperf.config.bindings import read_bindings
from dutperf.config.encapsulation import BindingFile
from dutperf.errors import InputError
from dutperf.run.engine_session import port_specs
from dutperf.run.trial_request import trial_request

HEADER = "ipv4,psid_length,psid,psid_offset,b4"
FIRST = "192.0.2.1,8,52,6,2001:db8::1"


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def refusal(tmp_path: Path, *lines: str | bytes) -> str:
    text = b"\n".join(x if isinstance(x, bytes) else x.encode() for x in lines)
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_bindings(path)
    assert caught.value.hint
    return caught.value.message.removeprefix(str(path))


def test_rows_are_what_lines_say_in_any_order_of_columns(tmp_path: Path) -> None:
    random = Random(5)  # noqa: S311 - a test
    entries = [
        (
            f"198.51.{i // 200}.{1 + i % 200}",
            6,
            psid,
            4,
            f"2001:db8:{random.randrange(99)}::1",
        )
        for i in range(400)
        for psid in random.sample(range(64), 3)
    ]
    random.shuffle(entries)
    lines = ["# made for this test", "", HEADER]
    lines += [",".join(map(str, entry)) for entry in entries]
    table = read_bindings(written(tmp_path, "\n".join(lines)))
    expected = b"".join(
        ipaddress.IPv6Address(b4).packed
        + ipaddress.IPv4Address(ipv4).packed
        + struct.pack(">HBB", psid, length, offset)
        for ipv4, length, psid, offset, b4 in entries
    )
    assert (table.rows, len(table)) == (expected, 1200)
    assert table.can_be_spoofed

    other = ["PSID , binding-IPv6info,psid-len,binding-ipv4-addr,psid-offset"]
    other += [f"{e[2]}, {e[4]} ,{e[1]},{e[0]},{e[3]}" for e in entries]
    text = codecs.BOM_UTF8 + "\r\n".join(other).encode()
    again = read_bindings(written(tmp_path, text))
    assert again.rows == expected
    assert again.digest == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([], ": has no entries"),
        ([HEADER], ": has no entries"),
        ([FIRST], ":1: '192.0.2.1' is no column, those are ipv4, psid, psid_length,"),
        (["ipv4,psid,b4"], ":1: column psid_length is missing"),
        (["ipv4,psid,ipv4,b4"], ":1: column ipv4 stands twice"),
        ([HEADER, "192.0.2.1,8,52,6"], ":2: has 4 columns, and the first line 5"),
        (
            [HEADER, "2001:db8::1,8,52,6,2001:db8::1"],
            ":2: ipv4 must be the IPv4 address",
        ),
        ([HEADER, "192.0.2.1,8,52,6,192.0.2.7"], ":2: b4 must be the IPv6 address"),
        ([HEADER, "192.0.2.1,8,52,6,2001:db8::/64"], ":2: b4 must be the IPv6 address"),
        ([HEADER, "192.0.2.1,8,52,6,::"], ":2: b4 must be the IPv6 address of a host"),
        ([HEADER, "192.0.2.1,8,52,6,ff02::1"], ":2: b4 must be the IPv6 address of a"),
        (
            [HEADER, "224.0.0.1,8,52,6,::2"],
            ":2: ipv4 must be the IPv4 address of a host",
        ),
        (
            [HEADER, "192.0.2.01,8,52,6,::2"],
            ":2: ipv4 must be the IPv4 address of a host",
        ),
        (
            [HEADER, "192.0.2.1,8,256,6,::2"],
            ":2: psid must be a number from 0 to 255, with",
        ),
        (
            [HEADER, "192.0.2.1,0,1,6,::2"],
            ":2: psid must be a number from 0 to 0, with",
        ),
        ([HEADER, "192.0.2.1,8,-1,6,::2"], ":2: psid must be a number from 0 to 255"),
        ([HEADER, "192.0.2.1,8,0x3,6,::2"], ":2: psid must be a number"),
        (
            [HEADER, "192.0.2.1,17,0,0,::2"],
            ":2: psid_length must be a number from 0 to 16",
        ),
        (
            [HEADER, "192.0.2.1,8,0,16,::2"],
            ":2: psid_offset must be a number from 0 to 15",
        ),
        (
            [HEADER, "192.0.2.1,11,0,6,::2"],
            ":2: psid_offset 6 and psid_length 11 are more",
        ),
        ([HEADER, FIRST, "", FIRST], ":4: has ports of 192.0.2.1 that line 2 has, too"),
        (
            [HEADER, FIRST, "192.0.2.1,4,3,6,::2"],
            ":3: has ports of 192.0.2.1 that line 2 has, too",
        ),
        (
            [HEADER, FIRST, "192.0.2.9,8,52,0,::2"],
            ":3: psid_offset is 0, and was 6 above",
        ),
        ([HEADER, "192.0.2.1,6,0,0,::2"], ": no entry has a port from 1024 on"),
        ([HEADER, b"192.0.2.1,8,52,6,\xff"], ":2: is no text in UTF-8"),
        ([HEADER, "1" * 5000], ":2: has more than 1000 bytes"),
    ],
)
def test_each_fault_is_told_with_its_line(
    tmp_path: Path, lines: list[str | bytes], told: str
) -> None:
    assert refusal(tmp_path, *lines).startswith(told)


def test_neighbouring_sets_and_a_b4_that_has_several_are_right(tmp_path: Path) -> None:
    lines = [HEADER, FIRST, "192.0.2.1,8,53,6,2001:db8::1", "192.0.2.1,7,27,6,::2"]
    assert len(read_bindings(written(tmp_path, "\n".join(lines)))) == 3


def test_one_of_two_b4s_that_has_no_port_to_send_from_is_nobody_to_be_spoofed(
    tmp_path: Path,
) -> None:
    for offset, can_be in ((0, False), (4, True)):
        lines = [f"192.0.2.1,6,{psid},{offset},::{psid + 2}" for psid in (0, 1)]
        table = read_bindings(written(tmp_path, "\n".join([HEADER, *lines])))
        assert table.can_be_spoofed == can_be


def test_what_is_no_file_or_too_large_is_told(tmp_path: Path) -> None:
    for path, told in (
        (tmp_path / "none.csv", "cannot be read"),
        (tmp_path, "no file"),
    ):
        with pytest.raises(InputError, match=told):
            read_bindings(path)
    huge = tmp_path / "huge.csv"
    with huge.open("wb") as file:
        file.truncate(10**9)
    with pytest.raises(InputError, match="has not so many"):
        read_bindings(huge)


def bound(tmp_path: Path, address: str = "192.0.2.1") -> Testbed:
    """Before an lwAFTR of a table with two B4s, that is named in the testbed's file."""
    written(tmp_path, f"{HEADER}\n{FIRST}\n192.0.2.1,8,53,6,2001:db8:1::1")
    testbed: dict[str, Any] = make_testbed().model_dump(exclude_none=True)
    testbed["left"] |= {
        "ipv4": {"address": address},
        "encapsulation": {
            "kind": "ipv4-in-ipv6",
            "remote": "2001:db8:ffff::1",
            "binding_table": {"file": "table.csv"},
        },
    }
    path = tmp_path / "testbed.yaml"
    path.write_text(json.dumps(testbed))
    return load_testbed(path)


def test_the_engine_has_the_rows_and_each_direction_their_ends(tmp_path: Path) -> None:
    testbed = bound(tmp_path)
    specs = port_specs(testbed, "af_packet")
    table = read_bindings(tmp_path / "table.csv")
    assert [spec.bindings for spec in specs] == [table.encoded, None]
    keys = {"ip": 4, "traffic": {"spoofed_percent": 5}, "direction": "forward"}
    (cell,) = expand(make_campaign({"procedure": "throughput", **keys}), testbed)
    (way,) = trial_request(testbed, cell, 1000, 1).directions
    assert [s.src_binding for s in way.streams] == ["own", "another"]
    assert not any(s.dst_binding or s.copies or s.received_end for s in way.streams)
    assert {v.field for v in way.streams[0].vary} == {"dst_port"}

    keys = {"ip": 4, "direction": "reverse"}
    (cell,) = expand(make_campaign({"procedure": "throughput", **keys}), testbed)
    (way,) = trial_request(testbed, cell, 1000, 1).directions
    (stream,) = way.streams
    assert (stream.src_binding, stream.dst_binding) == (None, True)
    assert {v.field for v in stream.vary} == {"src_port"}


def test_results_tell_the_table_and_another_one_is_refused(tmp_path: Path) -> None:
    testbed = bound(tmp_path)
    own = testbed.left.encapsulation
    assert own
    rule = own.binding_table
    assert isinstance(rule, BindingFile)
    path = tmp_path / "table.csv"
    assert rule.file == str(path)
    assert rule.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    path.write_text(f"{HEADER}\n{FIRST}")
    with pytest.raises(InputError, match="is another table than before"):
        rule.table()
    path.unlink()
    again = Testbed.model_validate(testbed.model_dump(exclude_none=True))
    assert again.left.tunnel, "what results have is looked at without the file"


@pytest.mark.parametrize(
    ("address", "keys", "told"),
    [
        ("192.0.2.9", {}, "no entry has 192.0.2.9"),
        ("192.0.2.1", {"traffic": {"networks": {"left": 10}}}, "does not go with"),
        ("192.0.2.1", {"procedure": "tcp-connection-rate"}, "does not go with"),
    ],
)
def test_what_does_not_go_with_a_table_is_told_before_the_first_frame(
    tmp_path: Path, address: str, keys: dict[str, Any], told: str
) -> None:
    campaign = make_campaign({"procedure": "throughput", "ip": 4} | keys)
    with pytest.raises(InputError, match=told):
        expand(campaign, bound(tmp_path, address))
