"""``siitperf.conf``: one ``Key value`` pair a line, in any order.

What the keys mean is in docs/siitperf.md. All that is wrong is refused with the line
where it stands; what siitperf takes all the same is taken, and a notice says as what.
"""

from __future__ import annotations

import difflib
import ipaddress
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

from dutperf.errors import InputError
from dutperf.plain_files import read_plain
from dutperf.protocol.base import DirectionName, IpVersion, Mac, Side

# What may stand behind a key of siitperf.conf: each reader refuses with a reason.


Mode = Literal["fixed", "increasing", "decreasing", "random"]
MODES: tuple[Mode, ...] = ("fixed", "increasing", "decreasing", "random")
"""What the file calls 0, 1, 2 and 3."""
T = TypeVar("T")
Reader = Callable[[str], T]

_MAC = re.compile(r"[0-9a-fA-F]{1,2}(:[0-9a-fA-F]{1,2}){5}")
_NUMBER = re.compile(r"[0-9]{1,10}")
_NUMBER_OR_HEX = re.compile(r"[0-9]{1,10}|0[xX][0-9a-fA-F]{1,8}")


class Adapted(NamedTuple):
    """A value that siitperf takes; ``used``: what it counts as, in the file's words."""

    value: Any
    used: str


def number(least: int, most: int, *, hexadecimal: bool = False) -> Reader[int]:
    """A whole number from ``least`` to ``most``."""
    form = _NUMBER_OR_HEX if hexadecimal else _NUMBER

    def read(text: str) -> int:
        value = (
            int(text, 16 if text[:2] in ("0x", "0X") else 10)
            if (form.fullmatch(text))
            else None
        )
        if value is None or not least <= value <= most:
            raise ValueError(f"must be a number from {least} to {most}")
        return value

    return read


def at_most(most: int) -> Reader[int | Adapted]:
    """A number from 0 on, also hexadecimal; a larger one counts as ``most``."""
    read_any = number(0, 2**32 - 1, hexadecimal=True)

    def read(text: str) -> int | Adapted:
        value = read_any(text)
        return value if value <= most else Adapted(most, str(most))

    return read


def one_of(*values: T) -> Reader[T]:
    """One of ``values``, as they are written."""
    by_text = {str(value): value for value in values}

    def read(text: str) -> T:
        if text not in by_text:
            raise ValueError(f"must be {_or(list(by_text))}")
        return by_text[text]

    return read


def address(version: IpVersion) -> Reader[str | None]:
    """An IP address of that version; the unspecified one, :: or 0.0.0.0, is none."""
    kind = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address

    def read(text: str) -> str | None:
        try:
            found = kind(text)
        except ValueError:
            raise ValueError(f"must be an IPv{version} address") from None
        return None if found.is_unspecified else str(found)

    return read


def mac(text: str) -> str | None:
    """A MAC address; the zero one is none."""
    if not _MAC.fullmatch(text):
        raise ValueError("must be a MAC address like 24:6e:96:3c:3f:40")
    digits = (byte.zfill(2) for byte in text.lower().split(":"))
    return ":".join(digits) if text.strip("0:") else None


def switch(text: str) -> bool | Adapted:
    """0 or 1; other numbers count as 1."""
    value = number(0, 2**32 - 1)(text)
    return value == 1 if value <= 1 else Adapted(value=True, used="1")


def mode(text: str) -> Mode:
    """0 fixed, 1 increasing, 2 decreasing, 3 pseudorandom."""
    return MODES[one_of(0, 1, 2, 3)(text)]


def _or(texts: list[str]) -> str:
    *first, last = texts
    return f"{', '.join(first)} or {last}" if first else last


NAME = "siitperf.conf"
VERSIONS: tuple[IpVersion, ...] = (4, 6)
ENDS: dict[DirectionName, tuple[Side, Side]] = {
    "forward": ("left", "right"),
    "reverse": ("right", "left"),
}
LETTERS: dict[Side, str] = {"left": "L", "right": "R"}
_WORDS: dict[DirectionName, str] = {"forward": "Fwd", "reverse": "Rev"}
_SWITCHES: dict[DirectionName, str] = {"forward": "Forward", "reverse": "Reverse"}
_LONGEST = 2**20  # characters: a file of other things is not read into messages


@dataclass(frozen=True)
class Range:
    """How a field goes on from frame to frame: its 16 bits take least..most."""

    mode: Mode
    least: int
    most: int

    @property
    def varies(self) -> bool:
        """Whether it takes more than one value."""
        return self.mode != "fixed"

    @property
    def size(self) -> int:
        """Number of values."""
        return self.most - self.least + 1


@dataclass(frozen=True)
class ConfSide:
    """One side of the tester; addresses and MACs are those that the file has.

    ``offset``: in bytes, of the 16 bits that vary.
    """

    version: IpVersion
    real: dict[IpVersion, str]
    virtual: dict[IpVersion, str]
    tester_mac: Mac | None
    device_mac: Mac | None
    networks: int
    hosts: Range
    offset: dict[IpVersion, int]


@dataclass(frozen=True)
class ConfDirection:
    """What one direction's senders do; the CPUs are null if the file has none."""

    active: bool
    source_ports: Range
    destination_ports: Range
    send_cpu: int | None
    receive_cpu: int | None


@dataclass(frozen=True)
class Conf:
    """A whole file.

    ``given`` has the keys that stand in it, with their lines; ``notices`` what of it
    counts otherwise than it stands there.
    """

    path: Path
    given: dict[str, int]
    sides: dict[Side, ConfSide]
    directions: dict[DirectionName, ConfDirection]
    initiator: Side | None
    enumerate_ports: Mode
    enumerate_addresses: Mode
    responder_tuples: Mode
    notices: tuple[str, ...] = ()

    @property
    def initiating(self) -> DirectionName:
        """The direction that opens connections."""
        return "reverse" if self.initiator == "right" else "forward"

    @property
    def active(self) -> list[DirectionName]:
        """The directions that carry frames."""
        return [name for name, each in self.directions.items() if each.active]

    @property
    def sending(self) -> list[DirectionName]:
        """Those that carry frames, in phase 1 or in the trial."""
        opening = [self.initiating] if self.initiator else []
        return list(dict.fromkeys((*self.active, *opening)))

    @property
    def enumerates(self) -> bool:
        """Whether phase 1 sends each four-tuple once, if there are enough."""
        return {self.enumerate_ports, self.enumerate_addresses} != {"fixed"}

    @property
    def enumerated(self) -> list[Range]:
        """The ranges that phase 1 combines."""
        ports = self.directions[self.initiating]
        found: list[Range] = []
        if self.enumerate_ports != "fixed":
            found += [ports.source_ports, ports.destination_ports]
        if self.enumerate_addresses != "fixed":
            found += [side.hosts for side in self.sides.values()]
        return found

    @property
    def combinations(self) -> int:
        """How many different four-tuples phase 1 has at most."""
        return math.prod(each.size for each in self.enumerated)

    def error(self, key: str, trouble: str) -> InputError:
        """What is wrong with a key, where it stands."""
        return InputError(self.told(key, trouble))

    def told(self, key: str, what: str) -> str:
        """A sentence that begins with a key, and where that stands."""
        line = self.given.get(key)
        where = f"{self.path}:{line}" if line else f"{self.path}"
        return f"{where}: {key} {what}"


def read_conf(path: Path) -> Conf:
    """Read and check the file.

    Raises:
        InputError: it cannot be read, or something in it is wrong; names file and line.
    """
    try:
        text = read_plain(path, _LONGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InputError(
            f"{path}: cannot be read: {reason}",
            f"the file {NAME} is looked for in the current directory",
        ) from None
    conf = _conf(path, _Keys(path, text))
    _check(conf)
    return replace(conf, notices=(*conf.notices, *_unanswered(conf)))


class _Keys:
    """The pairs of a file by their keys; ``take`` reads one, or gives its default."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._texts: dict[str, str] = {}
        self.lines: dict[str, int] = {}
        self.notices: list[str] = []
        for line, words in _words(text):
            self._add(line, words)

    def _add(self, line: int, words: list[str]) -> None:
        word = words[0].removesuffix(":")
        key = _FORMER.get(word, word)
        if key not in KEYS:
            near = difflib.get_close_matches(key, [*KEYS, *_FORMER], 1)
            hint = f"; is {near[0]} meant?" if near else ""
            raise self._error(line, f"there is no key {word[:40]!r}{hint}")
        if len(words) == 1:
            raise self._error(line, f"{key} needs a value")
        if len(words) > 2:
            self._notice(line, f"{key} is {words[1][:60]}; what follows is ignored")
        if key in self.lines:
            self._notice(
                line, f"{key} was in line {self.lines[key]}, too: this one is used"
            )
        self.lines[key] = line
        self._texts[key] = words[1]

    def take(self, key: str) -> Any:  # noqa: ANN401 - as KEYS says
        """The value of ``key``."""
        read, default = KEYS[key]
        if key not in self._texts:
            return default
        text = self._texts[key]
        line = self.lines[key]
        try:
            found = read(text)
        except ValueError as error:
            raise self._error(line, f"{key} {error}, not {text[:60]!r}") from None
        if isinstance(found, Adapted):
            self._notice(line, f"{key} is {text}: {found.used} is used")
            return found.value
        return found

    def _notice(self, line: int, what: str) -> None:
        self.notices.append(f"{self._path}:{line}: {what}")

    def _error(self, line: int, trouble: str) -> InputError:
        return InputError(f"{self._path}:{line}: {trouble}")


def _words(text: str) -> Iterator[tuple[int, list[str]]]:
    for line, content in enumerate(text.split("\n"), 1):
        words = content.partition("#")[0].split()
        if words:
            yield line, words


def _key_table() -> dict[str, tuple[Reader[Any], Any]]:
    """Each key, what reads its value, and its default."""
    port = number(0, 65535)
    part = number(0, 65535, hexadecimal=True)
    cpu = number(0, 4095)
    found: dict[str, tuple[Reader[Any], Any]] = {}
    for side, letter in LETTERS.items():
        found[f"IP-{letter}-Vers"] = (one_of(4, 6), 6 if side == "left" else 4)
        for kind in ("Real", "Virt"):
            found[f"IPv6-{letter}-{kind}"] = (address(6), None)
            found[f"IPv4-{letter}-{kind}"] = (address(4), None)
        for kind in ("Tester", "DUT"):
            found[f"MAC-{letter}-{kind}"] = (mac, None)
        found[f"Num-{letter}-Nets"] = (number(1, 256), 1)
        found[f"IP-{letter}-var"] = (mode, "fixed")
        found[f"IP-{letter}-min"] = (part, None)
        found[f"IP-{letter}-max"] = (at_most(65535), None)
        found[f"IPv4-{letter}-offset"] = (one_of(1, 2), 2)
        found[f"IPv6-{letter}-offset"] = (number(6, 14), 12)
        for duty in ("Send", "Recv"):
            found[f"CPU-{letter}-{duty}"] = (cpu, None)
    for name, word in _WORDS.items():
        found[_SWITCHES[name]] = (switch, True)
        for letter, least, most in (("s", 1024, 65535), ("d", 1, 49151)):
            found[f"{word}-var-{letter}port"] = (mode, "fixed")
            found[f"{word}-{letter}port-min"] = (port, least)
            found[f"{word}-{letter}port-max"] = (port, most)
    found["Promisc"] = (switch, False)
    found["MEM-Channels"] = (number(1, 64), 1)
    found["Stateful"] = (one_of(0, 1, 2), 0)
    for key in ("Enumerate-ports", "Enumerate-ips", "Responder-tuples"):
        found[key] = (mode, "fixed")
    return found


KEYS = _key_table()
_FORMER = {"Responder-ports": "Responder-tuples"}


def _conf(path: Path, keys: _Keys) -> Conf:
    return Conf(
        path=path,
        given=keys.lines,
        sides={side: _side(keys, letter) for side, letter in LETTERS.items()},
        directions={name: _direction(keys, name) for name in ENDS},
        initiator=(None, "left", "right")[keys.take("Stateful")],
        enumerate_ports=keys.take("Enumerate-ports"),
        enumerate_addresses=keys.take("Enumerate-ips"),
        responder_tuples=keys.take("Responder-tuples"),
        notices=tuple(keys.notices),
    )


def _side(keys: _Keys, letter: str) -> ConfSide:
    least, most = keys.take(f"IP-{letter}-min"), keys.take(f"IP-{letter}-max")
    return ConfSide(
        version=keys.take(f"IP-{letter}-Vers"),
        real=_addresses(keys, letter, "Real"),
        virtual=_addresses(keys, letter, "Virt"),
        tester_mac=keys.take(f"MAC-{letter}-Tester"),
        device_mac=keys.take(f"MAC-{letter}-DUT"),
        networks=keys.take(f"Num-{letter}-Nets"),
        hosts=Range(
            keys.take(f"IP-{letter}-var"),
            0 if least is None else least,
            65535 if most is None else most,
        ),
        offset={v: keys.take(f"IPv{v}-{letter}-offset") for v in VERSIONS},
    )


def _addresses(keys: _Keys, letter: str, kind: str) -> dict[IpVersion, str]:
    """Those that the file has."""
    found = {v: keys.take(f"IPv{v}-{letter}-{kind}") for v in VERSIONS}
    return {version: each for version, each in found.items() if each}


def _direction(keys: _Keys, name: DirectionName) -> ConfDirection:
    sender, receiver = (LETTERS[side] for side in ENDS[name])
    source, destination = (_ports(keys, _WORDS[name], letter) for letter in "sd")
    return ConfDirection(
        active=keys.take(_SWITCHES[name]),
        source_ports=source,
        destination_ports=destination,
        send_cpu=keys.take(f"CPU-{sender}-Send"),
        receive_cpu=keys.take(f"CPU-{receiver}-Recv"),
    )


def _ports(keys: _Keys, word: str, letter: str) -> Range:
    return Range(
        keys.take(f"{word}-var-{letter}port"),
        keys.take(f"{word}-{letter}port-min"),
        keys.take(f"{word}-{letter}port-max"),
    )


def _check(conf: Conf) -> None:
    """What does not fit together."""
    for name in conf.sending:
        each, word = conf.directions[name], _WORDS[name]
        enumerated = name == conf.initiating and conf.enumerate_ports != "fixed"
        for letter, ports in (("s", each.source_ports), ("d", each.destination_ports)):
            if ports.varies or enumerated:
                _check_rising(conf, ports, f"{word}-{letter}port")
    for side, letter in LETTERS.items():
        if conf.sides[side].hosts.varies:
            _check_rising(conf, conf.sides[side].hosts, f"IP-{letter}")
        _check_places(conf, side, letter)
    if not conf.sending:
        raise conf.error("Forward", "and Reverse are both 0: nothing is sent")
    _check_addresses(conf)
    _check_enumeration(conf)


def _check_rising(conf: Conf, field: Range, key: str) -> None:
    if field.least > field.most:
        raise conf.error(f"{key}-max", f"{field.most} is below {key}-min {field.least}")


def _check_places(conf: Conf, side: Side, letter: str) -> None:
    """Networks are bits 16 to 23 of an IPv4 address, 56 to 63 of an IPv6 one."""
    own = conf.sides[side]
    if own.networks == 1 or not own.hosts.varies:
        return
    sender: Side = "right" if side == "left" else "left"
    version = conf.sides[sender].version
    if version == 4 or own.offset[6] in (6, 7):
        raise conf.error(
            f"Num-{letter}-Nets",
            f"{own.networks} and IP-{letter}-var need the same bits of the address; "
            "take one of them",
        )


def _check_addresses(conf: Conf) -> None:
    """Those that the foreground needs: a responder's frames have learned ones."""
    for name in [conf.initiating] if conf.initiator else conf.active:
        for key, found in addresses_of(conf, name):
            if not found:
                raise conf.error(
                    key, f"is missing: the {name} frames need it, see IP-L-Vers"
                )


def _unanswered(conf: Conf) -> Iterator[str]:
    """Who does not know the responder's address cannot answer for it."""
    if conf.initiator is None:
        return
    responder = ENDS[conf.initiating][1]
    version = conf.sides[responder].version
    if version not in conf.sides[responder].real:
        key = f"IPv{version}-{LETTERS[responder]}-Real"
        asking = "ARP" if version == 4 else "neighbour discovery"
        yield conf.told(
            key,
            f"is missing: the tester does not answer {asking} on the {responder}, so "
            "the device needs a static entry",
        )


def addresses_of(conf: Conf, name: DirectionName) -> list[tuple[str, str]]:
    """Source and destination of a direction's foreground, with their keys.

    Paper 002, Table 1: the source is the sender's real address of its own version, the
    destination the other side's real one if that has the same version, else its
    virtual one. Empty where the file has none.
    """
    sender, receiver = ENDS[name]
    version = conf.sides[sender].version
    same = version == conf.sides[receiver].version
    kind = "Real" if same else "Virt"
    target = conf.sides[receiver]
    return [
        (
            f"IPv{version}-{LETTERS[sender]}-Real",
            conf.sides[sender].real.get(version, ""),
        ),
        (
            f"IPv{version}-{LETTERS[receiver]}-{kind}",
            (target.real if same else target.virtual).get(version, ""),
        ),
    ]


def _check_enumeration(conf: Conf) -> None:
    ports, addresses = conf.enumerate_ports, conf.enumerate_addresses
    if conf.initiator is None:
        for key, found in (("Enumerate-ports", ports), ("Enumerate-ips", addresses)):
            if found != "fixed":
                raise conf.error(key, "needs Stateful 1 or 2")
        return
    if ports != "fixed":
        for side, letter in LETTERS.items():
            if conf.sides[side].networks > 1:
                raise conf.error(
                    "Enumerate-ports", f"needs one network, so Num-{letter}-Nets 1"
                )
    if "fixed" not in (ports, addresses) and ports != addresses:
        raise conf.error("Enumerate-ips", "must be what Enumerate-ports is, or 0")
    for side, letter in LETTERS.items():
        if addresses != "fixed" and not conf.sides[side].hosts.varies:
            raise conf.error(
                "Enumerate-ips", f"needs addresses that vary, so IP-{letter}-var not 0"
            )
