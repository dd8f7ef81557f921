"""Logs of mappings, as devices write them and as they come: files, programs, UDP."""

from __future__ import annotations

import ipaddress
import os
import random
import socket
import struct
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from planning import cell
from pydantic import ValidationError

from dutperf.config.testbed import NatLog
from dutperf.errors import SetupError
from dutperf.procedures.trials import Ask
from dutperf.results.device_log import DeviceLog, LogEntry
from dutperf.run.device_log import reading
from dutperf.run.log_formats import LogRead, Piece, read_log

ASK = Ask(cell(procedure="latency", rate_fps=1000), 1000, log_within_s=5)
NS = 1_700_000_000 * 10**9
CONNTRACK = NatLog(file="/log", format="conntrack")
IPFIX = NatLog(file="/log", format="ipfix")
SYSLOG = NatLog(
    file="/log",
    format="syslog",
    pattern=r"(?P<deleted>free)?nat (?P<inside>\S+):(?P<inside_port>\d+) "
    r"(?P<public>\S+):(?P<public_port>\d+)(?: (?P<remote>\S+):(?P<remote_port>\d+))?",
)
BLOCKS = NatLog(
    file="/log",
    format="syslog",
    pattern=r"(?P<inside>\S+) has (?P<public>\S+) "
    r"(?P<first_port>\d+)-(?P<last_port>\d+)",
)
LINE = (
    "[1700000000.000042]\t    [NEW] udp      17 30 src=10.0.0.2 dst=198.19.0.2 "
    "sport=10000 dport=80 [UNREPLIED] src=198.19.0.2 dst=198.19.0.1 sport=80 dport=2048"
)
MAPPED = LogEntry("10.0.0.2", 10_000, "198.19.0.1", 2048, 2048, "198.19.0.2", 80)


def read(how: NatLog, *data: bytes | str) -> LogRead:
    pieces = [d if isinstance(d, bytes) else d.encode() for d in data]
    return read_log(how, [Piece(piece, len(piece)) for piece in pieces])


def only(found: LogRead) -> LogEntry:
    (entry,) = found.entries
    assert (found.unread, found.untold) == (0, [])
    return entry


def test_lines_of_conntrack_are_read() -> None:
    assert only(read(CONNTRACK, LINE)) == MAPPED._replace(time_ns=NS + 42_000)
    # Older versions leave out the zeros of microseconds.
    short = LINE.replace(".000042]", ".42    ]")
    assert only(read(CONNTRACK, short)).time_ns == NS + 42_000
    assert only(read(CONNTRACK, LINE.partition("\t")[2])) == MAPPED
    assert only(read(CONNTRACK, LINE.replace("NEW", "DESTROY"))).ends
    others = "\n".join([LINE.replace("NEW", "UPDATE"), "conntrack v1.4.7", "", LINE])
    found = read(CONNTRACK, others)
    assert (len(found.entries), found.unread) == (1, 2)


@pytest.mark.parametrize(
    ("time", "ns"),
    [
        ("2023-11-14T22:13:20Z", NS),
        ("2023-11-14T22:13:20.25+00:00", NS + 250_000_000),
        ("2023-11-15T00:13:20.000001+02:00", NS + 1000),
    ],
)
def test_lines_of_syslog_are_read_by_the_users_pattern(time: str, ns: int) -> None:
    line = "nat 10.0.0.2:10000 198.19.0.1:2048 198.19.0.2:80"
    message = f"<134>1 {time} cgn nat 1 - - {line}"
    assert only(read(SYSLOG, message)) == MAPPED._replace(time_ns=ns)
    assert only(read(SYSLOG, line)) == MAPPED
    assert only(read(SYSLOG, f"free{line}")).ends
    bare = only(read(SYSLOG, line.rpartition(" ")[0]))
    assert bare == MAPPED._replace(remote=None, remote_port=None)
    found = read(SYSLOG, "link up\nnat 10.0.0.2:99999 198.19.0.1:1\nnat x:1 y:2")
    assert (found.entries, found.unread) == ([], 3)


def test_blocks_of_syslog_are_read() -> None:
    found = only(read(BLOCKS, "1: 10.0.0.2 has 198.19.0.1 1024-1087"))
    assert found == LogEntry("10.0.0.2", None, "198.19.0.1", 1024, 1087)


# IPFIX, written from RFC 7011 and RFC 8158.


def packed_set(number: int, data: bytes) -> bytes:
    return struct.pack("!HH", number, 4 + len(data)) + data


def message(*sets: bytes, sequence: int = 0, domain: int = 1) -> bytes:
    body = b"".join(sets)
    return struct.pack("!HHIII", 10, 16 + len(body), 0, sequence, domain) + body


def template(number: int, *fields: tuple[int, int]) -> bytes:
    told = b"".join(struct.pack("!HH", *each) for each in fields)
    return packed_set(2, struct.pack("!HH", number, len(fields)) + told)


SESSION = ((323, 8), (230, 1), (8, 4), (225, 4), (7, 2), (227, 2), (12, 4), (11, 2))
BLOCK = ((230, 1), (8, 4), (225, 4), (361, 2), (362, 2))


def host(text: str) -> bytes:
    return ipaddress.ip_address(text).packed


def session(event: int = 4, port: int = 10_000) -> bytes:
    """A record: 10.0.0.2:10000 is 198.19.0.1:2048 towards 198.19.0.2:80."""
    ends = host("10.0.0.2") + host("198.19.0.1") + struct.pack("!HH", port, 2048)
    begin = struct.pack("!QB", NS // 10**6, event)
    return begin + ends + host("198.19.0.2") + struct.pack("!H", 80)


def test_nat_events_of_ipfix_are_read() -> None:
    data = message(template(256, *SESSION), packed_set(256, session()))
    assert only(read(IPFIX, data)) == MAPPED._replace(time_ns=NS)
    ended = message(template(256, *SESSION), packed_set(256, session(5)))
    assert only(read(IPFIX, ended)).ends
    block = host("10.0.0.2") + host("198.19.0.1") + struct.pack("!HH", 1024, 1087)
    data = message(template(300, *BLOCK), packed_set(300, b"\x10" + block + b"\0\0"))
    assert only(read(IPFIX, data)) == LogEntry(
        "10.0.0.2", None, "198.19.0.1", 1024, 1087
    )


def test_a_session_of_nat64_has_its_inside_in_ipv6() -> None:
    ends = ((27, 16), (225, 4), (7, 2), (227, 2), (28, 16), (226, 4))
    fields = ((230, 1), *ends, (11, 2), (228, 2))
    record = b"\6" + host("2001:2::2") + host("198.19.0.1")
    record += struct.pack("!HH", 10_000, 2048) + host("64:ff9b::c613:2")
    record += host("198.19.0.2") + struct.pack("!HH", 80, 80)
    data = message(template(256, *fields), packed_set(256, record))
    assert only(read(IPFIX, data)) == MAPPED._replace(inside="2001:2::2")


def test_fields_of_enterprises_and_of_any_length_are_passed_over() -> None:
    told = struct.pack("!HHI", 0x8000 | 8, 65535, 9)
    told += b"".join(struct.pack("!HH", *each) for each in SESSION)
    fields = packed_set(2, struct.pack("!HH", 256, 1 + len(SESSION)) + told)
    for length in (b"\3abc", b"\xff\1\0" + bytes(256)):
        data = message(fields, packed_set(256, length + session()))
        assert only(read(IPFIX, data)) == MAPPED._replace(time_ns=NS)


def test_a_template_may_come_behind_its_records_but_has_to_come() -> None:
    records = message(packed_set(256, session()))
    late = message(template(256, *SESSION), sequence=1)
    assert only(read(IPFIX, records, late)) == MAPPED._replace(time_ns=NS)
    found = read(IPFIX, records)
    assert found.entries == []
    assert "the template of 1 sets did not come" in found.untold[0]
    other = message(template(256, *SESSION), domain=2)
    assert read(IPFIX, records, other).untold


def test_records_that_did_not_come_are_known_by_their_numbers() -> None:
    begin = message(template(256, *SESSION), packed_set(256, session() * 2))
    then = message(packed_set(256, session()), sequence=2)
    assert read(IPFIX, begin, then).untold == []
    gap = message(packed_set(256, session()), sequence=7)
    assert "5 records were sent" in read(IPFIX, begin, gap).untold[0]
    assert "5 records were sent" in read(IPFIX, gap, begin).untold[0]


def test_options_are_no_mappings() -> None:
    told = struct.pack("!HHH", 400, 2, 1) + struct.pack("!HHHH", 149, 4, 41, 8)
    options, values = packed_set(3, told), packed_set(400, bytes(12))
    first = message(template(256, *SESSION), options, values)
    then = message(packed_set(256, session()), sequence=1)
    found = read(IPFIX, first, then)
    assert found.entries == [MAPPED._replace(time_ns=NS)]
    assert (found.unread, found.untold) == (1, [])


def test_a_message_that_is_cut_is_broken() -> None:
    data = message(template(256, *SESSION), packed_set(256, session()))
    found = read(IPFIX, data, data[:-1])
    assert (len(found.entries), found.unread) == (1, 1)


def mutated(draw: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(draw.randrange(1, 6)):
        changed[draw.randrange(len(changed))] = draw.randrange(256)
    return bytes(changed[: draw.randrange(len(changed)) + 1])


@pytest.mark.parametrize("how", [CONNTRACK, SYSLOG, BLOCKS, IPFIX])
def test_whatever_comes_is_read_or_counted(how: NatLog) -> None:
    draw = random.Random(how.format)  # noqa: S311 - cases, not secrets
    samples = {
        "conntrack": LINE.encode(),
        "syslog": b"<1>1 2023-11-14T22:13:20Z - nat 10.0.0.2:1 1.2.3.4:5 6.7.8.9:1",
        "ipfix": message(template(256, *SESSION), packed_set(256, session() * 3)),
    }
    for _ in range(400):
        noise = draw.randbytes(draw.randrange(120))
        for data in (noise, mutated(draw, samples[how.format])):
            found = read(how, data, data)
            assert found.unread + len(found.entries) < 10_000
            for each in found.entries:
                assert 0 <= each.first_port <= 65535
                ipaddress.ip_address(each.public)


# Where they come from.


def logged(
    how: NatLog, does: Callable[[], object], waits: Sequence[Callable[[], object]] = ()
) -> DeviceLog:
    """What is told of a trial in which ``does`` happens, and ``waits`` after it."""
    rest = list(waits)

    def sleep(_seconds: float) -> None:
        if rest:
            rest.pop(0)()

    with reading(how, ASK, sleep) as log:
        does()
        found = log()
    assert found
    return found


def test_what_is_appended_to_a_file_is_in_time_or_late(tmp_path: Path) -> None:
    file = tmp_path / "log"
    file.write_text(f"{LINE}\n")
    how = NatLog(file=str(file), format="conntrack")

    def append(text: str) -> None:
        with file.open("a") as log:
            log.write(text)

    half = len(LINE) // 2
    found = logged(
        how,
        lambda: append(f"{LINE}\n"),
        [
            lambda: append(f"{LINE}\n{LINE[:half]}"),
            lambda: append(f"{LINE[half:]}\n{LINE}\n"),
        ],
    )
    assert [entry.late for entry in found.entries] == [False] * 3 + [True]
    assert found.untold == []


@pytest.mark.parametrize("how", ["cut", "replaced", "deleted"])
def test_a_file_that_is_not_the_same_any_more_tells_nothing(
    tmp_path: Path, how: str
) -> None:
    file = tmp_path / "log"
    file.write_text(f"{LINE}\n")

    def change() -> None:
        if how == "cut":
            file.write_text("")
        else:
            file.rename(tmp_path / "log.1")
        if how == "replaced":
            file.write_text(f"{LINE}\n" * 3)

    log = logged(NatLog(file=str(file), format="conntrack"), change)
    assert log.untold == ["the file was cut or replaced meanwhile"]


def test_a_file_that_is_not_there_is_told_before_the_trial(tmp_path: Path) -> None:
    how = NatLog(file=str(tmp_path / "none"), format="conntrack")
    with pytest.raises(SetupError, match="cannot be read: No such file"):
        logged(how, lambda: pytest.fail("no trial"))
    os.mkfifo(tmp_path / "fifo")
    how = NatLog(file=str(tmp_path / "fifo"), format="conntrack")
    with pytest.raises(SetupError, match="not a plain file"):
        logged(how, lambda: pytest.fail("no trial"))
    how = NatLog(command=[str(tmp_path / "none")], format="conntrack")
    with pytest.raises(SetupError, match="could not be started"):
        logged(how, lambda: pytest.fail("no trial"))


PRINTS = f"""
import sys, time
print({LINE!r}, flush=True)
print("WARNING: We have hit ENOBUFS!", file=sys.stderr, flush=True)
"""


def test_what_a_program_prints_is_the_log() -> None:
    def wait() -> None:
        time.sleep(0.5)

    stays = [sys.executable, "-c", f"{PRINTS}\ntime.sleep(60)"]
    log = logged(NatLog(command=stays, format="conntrack"), wait, [wait])
    assert [entry.late for entry in log.entries] == [False]
    (told,) = log.untold
    assert "no room for all events" in told


def test_a_program_that_has_ended_may_have_missed_the_rest() -> None:
    ends = [sys.executable, "-c", PRINTS]
    log = logged(NatLog(command=ends, format="conntrack"), lambda: time.sleep(1), [])
    words = "the log's program ended early, with exit code 0: WARNING: We"
    assert log.untold[0].startswith(words)


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


def test_datagrams_are_received() -> None:
    port = free_port()
    how = NatLog(listen=f"127.0.0.1:{port}", format="ipfix")
    data = [
        message(template(256, *SESSION), packed_set(256, session())),
        message(packed_set(256, session(port=10_001) * 2), sequence=1),
    ]

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for each in data:
                sender.sendto(each, ("127.0.0.1", port))
        time.sleep(0.3)

    log = logged(how, send, [lambda: None, send])
    assert [entry.late for entry in log.entries] == [False] * 3 + [True] * 3
    with pytest.raises(SetupError, match="cannot listen"):
        logged(NatLog(listen="192.0.2.1:9", format="ipfix"), lambda: None)


def test_what_the_tester_dropped_itself_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dutperf.run.device_log._RECEIVE_BUFFER_BYTES", 2304)
    monkeypatch.setattr(
        "dutperf.run.device_log._Datagrams._receive", lambda _self: None
    )
    port = free_port()

    def send() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for _ in range(100):
                sender.sendto(bytes(1000), ("127.0.0.1", port))

    log = logged(
        NatLog(listen=f"127.0.0.1:{port}", format="syslog", pattern=SYSLOG.pattern),
        send,
    )
    (told,) = log.untold
    dropped = int(told.split()[4])
    assert 90 <= dropped <= 100
    assert "the tester itself dropped" in told


# What is refused.


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"format": "conntrack"}, "one of file, command and listen"),
        ({"file": "/a", "listen": "10.0.0.1:1", "format": "ipfix"}, "one of file"),
        ({"file": "/a", "format": "syslog"}, "pattern"),
        ({"file": "/a", "format": "ipfix", "pattern": "a"}, "pattern"),
        ({"file": "/a", "format": "syslog", "pattern": "("}, "no regular expression"),
        ({"file": "/a", "format": "syslog", "pattern": "(?P<inside>a)"}, "groups"),
        ({"listen": "10.0.0.1", "format": "ipfix"}, "192.0.2.1:514"),
        ({"listen": "10.0.0.1:0", "format": "ipfix"}, "192.0.2.1:514"),
        ({"listen": "host:1", "format": "ipfix"}, "192.0.2.1:514"),
        ({"file": "/a", "format": "ipfix", "ssh": {"host": "a"}}, "command"),
    ],
)
def test_what_is_no_log_is_refused(keys: dict[str, object], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        NatLog.model_validate(keys)
