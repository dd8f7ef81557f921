"""What passed by outside of the guest, beside what its engine counted.

A frame that a NIC was given and the engine does not have is the tester's loss: its
counters of drops have to know it, or it would be called the device's.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_FILE = struct.Struct("<IHHiIII")
_FRAME = struct.Struct("<IIII")
_MAGIC = 0xA1B2C3D4
_TAG = struct.Struct(">HH")
_TAG_MAGIC, _TAG_BYTES = 0xD07F, 18
_DROPS = ("rx_missed", "rx_errors", "rx_nombuf")


@dataclass(frozen=True)
class Passed:
    """Test frames at one of the guest's NICs, by trial.

    Attributes:
        sent: by the guest.
        given: to its NIC.
    """

    sent: Mapping[int, int]
    given: Mapping[int, int]


def passed(capture: bytes, mac: str) -> Passed:
    """Of what QEMU dumped at the NIC with that address."""
    own = bytes.fromhex(mac.replace(":", ""))
    sent, given = Counter[int](), Counter[int]()
    for frame in _frames(capture):
        magic, trial = _TAG.unpack(frame[-_TAG_BYTES:][: _TAG.size])
        if magic == _TAG_MAGIC:
            (sent if frame[6:12] == own else given)[trial] += 1
    return Passed(sent, given)


def _frames(capture: bytes) -> Iterator[bytes]:
    magic, *_ = _FILE.unpack_from(capture)
    if magic != _MAGIC:
        raise ValueError("this is no file of tcpdump")
    place = _FILE.size
    while place + _FRAME.size <= len(capture):
        _, _, held, _ = _FRAME.unpack_from(capture, place)
        place += _FRAME.size
        if _TAG_BYTES <= held <= len(capture) - place:
            yield capture[place : place + held]
        place += held


def differences(
    trials: Sequence[Mapping[str, Any]], left: Passed, right: Passed
) -> list[str]:
    """Where the engine's counts of ``trials`` (of a journal) are not those outside."""
    return [
        f"trial {trial['trial_id']} {direction['name']}: {what}"
        for trial in trials
        for direction in trial["directions"]
        for what in _of_direction(trial, direction, left, right)
    ]


def _of_direction(
    trial: Mapping[str, Any], direction: Mapping[str, Any], left: Passed, right: Passed
) -> Iterator[str]:
    forward = direction["name"] == "forward"
    sender, receiver = (left, right) if forward else (right, left)
    number = trial["trial_id"]
    sent, received, lost = (
        sum(stream[key] for stream in direction["streams"])
        for key in ("sent", "received", "lost")
    )
    if sender.sent.get(number, 0) != sent:
        yield f"sent {sent} by the engine, {sender.sent.get(number, 0)} by the NIC"
    missing = receiver.given.get(number, 0) - received
    dropped = _dropped(trial, "right" if forward else "left")
    if missing > dropped or missing < 0:
        yield (
            f"the NIC was given {receiver.given.get(number, 0)}, the engine has "
            f"{received} and knows of {dropped} drops"
        )
    if sent - received != lost:
        yield f"{lost} lost, of {sent} sent and {received} received"


def _dropped(trial: Mapping[str, Any], side: str) -> int:
    [port] = (port for port in trial["ports"] if port["name"] == side)
    counted = sum(port["after"][key] - port["before"][key] for key in _DROPS)
    return int(counted + port["interface_drops"])
