"""What is found of a gateway's connections, once more (RFC 9693 4.5 to 4.9).

An elementary test is phase 1, and, validated, one frame back for each connection. Which
tests belong to a step of a capacity search follows from the RFC's order of numbers:
the first, twice as many while it holds, then the middle between held and not held.
"""

from __future__ import annotations

import base64
import ipaddress
import json
import math
import re
import statistics
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from dutperf.evidence import accounting
from oracle import formulas, records
from oracle.searches import (
    Asked,
    Limit,
    Repeat,
    concluded,
    ended,
    is_closed,
    overall,
)

Json = dict[str, Any]
_ATTEMPTS = 3


def derived_connections(
    procedure: str,
    settings: Json,
    trials: Sequence[Json],
    limit: Limit,
    *,
    translates: bool,
) -> Json:
    """The figures of a cell about connections."""
    numbers = sorted({trial["repeat"] for trial in trials})
    by_repeat = [[t for t in trials if t["repeat"] == n] for n in numbers]
    parts: Json = {"capacity": [], "teardown": [], "expiry": []}
    repeats: list[Repeat] = []
    for own in by_repeat:
        is_used = procedure in ("tcp-request-rate", "tcp-teardown-rate")
        validated = settings.get("alpha") is not None or is_used
        tests = list(_tests(own, validated=validated, translates=translates))
        match procedure:
            case "tcp-request-rate" | "tcp-teardown-rate":
                used = [test.as_used() for test in tests if test.last is not test.first]
                used += _unopened(tests, used, limit)
                nobody = Repeat(None, "invalid", trials=len(own))  # could be opened
                found = _rate(used, own, settings, limit) if used else nobody
                repeats.append(found)
            case "idle-timeout":
                repeats.append(_idle(own))
            case "nat-behaviour":
                repeat, parts["behaviour"] = _behaviour(own)
                repeats.append(repeat)
            case "port-limit":
                repeat, parts["behaviour"] = _port_limit(own, settings)
                repeats.append(repeat)
            case "nat-log":
                repeat, parts["log"] = _log(own, settings)
                repeats.append(repeat)
            case "connection-rate":
                repeats.append(_rate(tests, own, settings, limit))
            case "table-capacity" | "tcp-capacity" | "tcp-half-open":
                search = _CapacitySearch(tests, settings, limit)
                repeats.append(search.repeat(own))
                parts["capacity"].append(search.record())
            case _:
                repeat, part = _teardown(own, settings)
                repeats.append(repeat)
                if part:
                    parts["expiry" if "counts" in part else "teardown"].append(part)
    return overall(repeats) | parts


class _Test(NamedTuple):
    """Both phases of a test, and what it says of its rate."""

    connections: int
    rate_per_s: int
    kind: str
    first: Json
    last: Json
    records: int

    def as_used(self) -> _Test:
        """As one that looks for how fast the last of its trials may be."""
        return self._replace(rate_per_s=self.last["load_fps"], first=self.last)

    def asked(self) -> Asked:
        return Asked(self.rate_per_s, self.last["repeat"], self.kind, self.last)


def _behaviour(own: Sequence[Json]) -> tuple[Repeat, list[Json]]:
    """The share of what RFC 4787 asks for that is met, of what can be told."""
    if [t["result"]["verdict"]["kind"] for t in own[-4:-2]] != ["pass", "pass"]:
        return Repeat(None, "invalid", trials=len(own)), []
    inside_of = _insides(own[-4]["request"]["directions"][0]["streams"][0])
    seen = [
        (next(inside_of), tuple(told[:2]), tuple(told[2:]))
        for told in own[-4]["result"]["table"]["told"]
    ]
    publics: dict[Any, dict[Any, set[Any]]] = {}
    for inside, public, remote in seen:
        publics.setdefault(inside, {}).setdefault(public, set()).add(remote)
    owners: dict[Any, set[Any]] = {}
    for inside, public, _ in seen:
        owners.setdefault(public, set()).add(inside)
    kinds = set()
    for inside, own_publics in publics.items():
        of = {(p, r) for i, p, r in seen if i == inside}
        by_address = {r[0]: {p for p, other in of if other[0] == r[0]} for _, r in of}
        alone = max(map(len, by_address.values())) == 1
        kinds.add(0 if len(own_publics) == 1 else 1 if alone else 2)
    pool = {public[0] for public in owners}
    hosts = {(i[0], p[0]) for i, p, _ in seen}
    pairs = {(i[1], p[1]) for i, p, _ in seen}
    let_in = []
    for trial in own[-2:]:
        (stream,) = trial["result"]["directions"][0]["streams"]
        let_in.append(stream["received"] / stream["sent"])
    whole = let_in in ([0, 0], [1, 0], [1, 1])
    told: list[bool | None] = [
        kinds == {0} if kinds != {0} or len({r[0] for _, _, r in seen}) > 1 else None,
        len(hosts) == len({host for host, _ in hosts}) if len(pool) > 1 else None,
        all(len(insides) == 1 for insides in owners.values()),
        all((a < 1024) == (b < 1024) for a, b in pairs),
        all((a - b) % 2 == 0 for a, b in pairs),
        let_in != [0, 0] if whole else None,
        len(kinds) == 1 if whole or len(kinds) > 1 else None,
    ]
    known = [one for one in told if one is not None]
    words = {True: "met", False: "not met", None: "cannot tell"}
    verdicts = [{"verdict": words[one]} for one in told]
    # That ports are kept, and blocks, nobody asks for.
    nobody_asks: list[Json] = [{"verdict": None, "level": None}] * 2
    value = 100 * sum(known) / len(known)
    return Repeat(value, "pass", trials=len(own)), [*verdicts, *nobody_asks]


def _port_limit(own: Sequence[Json], settings: Json) -> tuple[Repeat, list[Json]]:
    """How many ports the first hosts may have, all alike, and no host has more."""
    if accounting.verdict(own[-1]) == "invalid":
        return Repeat(None, "invalid", trials=len(own)), []
    gone: set[int] = set()
    for trial in own[-2:]:
        for begin, number in accounting.streams(trial)[0]["survival"]["lost_ranges"]:
            gone.update(range(begin, begin + number))
    works: dict[int, list[bool]] = {}
    stream = own[-2]["request"]["directions"][0]["streams"][0]
    for number, (host, _) in enumerate(_insides(stream)):
        works.setdefault(host, []).append(number not in gone)
    all_ports = len({port for _, port in _insides(stream)})
    if not any(map(any, works.values())):
        return Repeat(None, "invalid", trials=len(own)), []
    ports = [
        sum(any(each[port::all_ports]) for port in range(all_ports))
        for each in works.values()
    ]
    told = [(sum(each), n) for each, n in zip(works.values(), ports, strict=True)]
    first, *others = works.values()
    alike = next((i for i, one in enumerate(told) if one != told[0]), len(told))
    falls = sorted(first, reverse=True)
    in_turn = first in (falls, falls[::-1])
    in_turn |= first == first[:all_ports] * (len(first) // all_ports)
    has_limit = alike > 1 and told[0] not in told[alike:] and in_turn
    has_limit &= ports[0] == max(ports) < all_ports
    sessions = len(set(told)) == 1 and bool(others) and not all(first)
    sessions &= first in (falls, falls[::-1]) and sum(first) % all_ports > 0
    words = {True: "met", False: "cannot tell"}
    behaviour: list[Json] = [{"verdict": words[has_limit]}]
    behaviour.append({"verdict": words[sessions], "level": "SHOULD"})
    behaviour.append({"verdict": None, "level": None})
    if has_limit:
        bound = None if settings["is_emptied"] else "lower"
        return Repeat(ports[0], "pass", bound, trials=len(own)), behaviour
    cause = "set" if max(ports) == all_ports else None
    return Repeat(max(ports), "pass", "lower", cause, len(own)), behaviour


def _log(own: Sequence[Json], settings: Json) -> tuple[Repeat, Json | None]:
    """What is named by one line of a log of sessions, and by it alone."""
    valid = [t for t in own if accounting.verdict(t) != "invalid"]
    tests = int(settings["tests"])
    if len(valid) < tests:
        return Repeat(None, "invalid", trials=len(own)), None
    verdicts = dict.fromkeys(
        ("named", "missing", "wrong", "ambiguous", "duplicate", "late"), 0
    )
    told: Json = dict.fromkeys(("entries", "other", "unread"), 0)
    clocks: list[int] = []
    untold = not settings["is_emptied"]
    for trial in valid:
        log, stream = trial["log"], trial["request"]["directions"][0]["streams"][0]
        lines = json.loads(zlib.decompress(base64.b64decode(log["packed"])))
        untold = untold or bool(log["untold"])
        told["entries"] += len(lines)
        told["unread"] += log["unread"]
        # Of a line: inside, its port, public, first and last port, remote, its port.
        counted = Counter(tuple(line[:7]) for line in lines)
        times = {tuple(line[:7]): line[7] for line in lines}
        whose: dict[Any, set[Any]] = {}
        for line in counted:
            whose.setdefault((*line[2:4], *line[5:7]), set()).add(line[:2])
        known = set()
        begin_ns, rate = trial["result"]["begin_unix_ns"], trial["load_fps"]
        for number, (seen, (host, port)) in enumerate(
            zip(trial["result"]["table"]["told"], _insides(stream), strict=False)
        ):
            if seen is None:
                continue
            inside = (str(ipaddress.ip_address(stream["src_ip"]) + host), port)
            line = (*inside, *seen[:2], seen[1], *seen[2:])
            known.add(line)
            others = whose.get(tuple(seen), set()) - {inside}
            times_named = counted[line]
            if others:
                verdicts["ambiguous" if times_named else "wrong"] += 1
            else:
                of = ("missing", "named", "duplicate")
                verdicts[of[min(2, times_named)]] += 1
            if times.get(line):
                clocks.append(times[line] - begin_ns - round(number * 10**9 / rate))
        told["other"] += sum(n for line, n in counted.items() if line not in known)
    learned = sum(verdicts.values())
    clocks.sort()
    told |= {
        "tests": tests,
        "opened": sum(accounting.streams(t)[0]["sent"] for t in valid),
        "learned": learned,
        "verdicts": verdicts,
        "clock_ns": round(statistics.median(clocks)) if clocks else None,
        "clock_low_ns": clocks[math.ceil(len(clocks) / 100) - 1] if clocks else None,
        "clock_high_ns": clocks[math.ceil(len(clocks) * 0.99) - 1] if clocks else None,
    }
    if not learned or (untold and verdicts["missing"]):
        return Repeat(None, "invalid", trials=len(own)), told
    kind = "pass" if verdicts["named"] == learned else "fail"
    return Repeat(100 * verdicts["named"] / learned, kind, trials=len(own)), told


def _insides(stream: Json) -> Iterator[tuple[int, int]]:
    """Who opens, in the order of the numbers: hosts' ports, for each remote end."""
    size = {
        v["field"]: v["max"] - v["min"] + 1
        for v in stream["vary"]
        if v["mode"] == "enumerate"
    }
    for _ in range(size.get("dst_ip", 1)):
        for host in range(size.get("src_ip", 1)):
            for _ in range(size["dst_port"]):
                for port in range(size["src_port"]):
                    yield host, stream["src_port"] + port


def _unopened(
    tests: Sequence[_Test], used: Sequence[_Test], limit: Limit
) -> list[_Test]:
    """Those that ended a search as nobody could be opened: of whatever rate of use.

    It was above the highest that passed, where no other test was: else the maximum.
    """
    passed = max((t.rate_per_s for t in used if t.kind == "pass"), default=0)
    above = [test for test in used if test.rate_per_s > passed]
    alone = [test for test in tests if test.last is test.first]
    if above or not alone or passed >= limit.fps:
        return []
    return [alone[-1]._replace(rate_per_s=passed + 1, kind="invalid")]


def _tests(
    trials: Sequence[Json], *, validated: bool, translates: bool
) -> Iterator[_Test]:
    for place, first in enumerate(trials):
        if not records.opens(first):
            continue
        after = trials[place + 1] if trials[place + 1 :] else None
        back = after if after and not records.opens(after) else None
        if validated and back is None and accounting.verdict(first) == "pass" and after:
            continue  # the run ended here: the test was made anew
        last = back or first
        kind = accounting.verdict(last)
        if back and kind == "fail" and _forgotten_in_shadow(first, back):
            kind = "invalid"
        used = place + (2 if back else 1)
        if translates and records.is_not_translated(first):
            kind = "invalid"
        count = records.connections(first)
        yield _Test(count, first["load_fps"], kind, first, last, used)


def _forgotten_in_shadow(first: Json, back: Json) -> bool:
    """Whether all that is gone was opened in the shadow of a stall of the sender."""
    survival = accounting.streams(back)[0].get("survival")
    if (
        accounting.codes(back) != {"frames_lost"}
        or not survival
        or survival["more_ranges"]
    ):
        return False
    direction = accounting.directions(first)[0]
    bursts = [s for s in direction.get("shadows", []) if s["may_lose"]]
    lost = [(begin, begin + n - 1) for begin, n in survival["lost_ranges"] if n]
    missing = sum(last - begin + 1 for begin, last in lost)
    most = sum(missing if b["frames"] is None else b["frames"] for b in bursts)
    rate = direction["intended_rate_fps"]
    spans = []
    for burst in bursts:
        end = burst["end_ns"]
        past = math.inf if end is None else end * rate // 10**9 + 1
        spans.append((max(0, burst["begin_ns"] * rate // 10**9 - 1), past))
    inside = all(
        any(a <= begin and last <= b for a, b in spans) for begin, last in lost
    )
    return 0 < missing <= most and inside


# --- connection rate (4.5, 4.6)


def _rate(
    tests: Sequence[_Test], own: Sequence[Json], settings: Json, limit: Limit
) -> Repeat:
    """Like a throughput; where nothing passed, more tests may ask who survives."""
    searched, trials = list(tests), len(own)
    if not any(test.kind == "pass" for test in _before_probe(tests)):
        searched = _before_probe(tests)
        probes = len(tests) > len(searched)
        trials = searched[-1].records if probes and searched else trials
    asked = [test.asked() for test in searched]
    found = concluded(asked, settings["resolution"], limit)
    return _proven(found, searched, settings["resolution"])._replace(trials=trials)


def _proven(found: Repeat, tests: Sequence[_Test], resolution: str) -> Repeat:
    """No more than was opened until the last frame of the test that passed came."""
    passed = [t for t in tests if t.kind == "pass" and t.rate_per_s == found.value]
    if not passed:
        return found
    rate, first = passed[-1].rate_per_s, passed[-1].first
    latest_ns = max(s["delay_ns"]["max"] or 0 for s in accounting.streams(first))
    sent = sum(s["sent"] for s in accounting.streams(first))
    intended = accounting.directions(first)[0]["intended_rate_fps"]
    opened = sent / (sent / intended + latest_ns / 1e9)
    allowed = max(formulas.width_at(resolution, rate), Fraction(rate, 100))
    if rate - opened <= allowed:
        return found
    return found._replace(value=int(opened), bound="lower", bound_cause="short_tests")


def _before_probe(tests: Sequence[_Test]) -> list[_Test]:
    """Up to the first at a rate at which, or below which, one has failed already."""
    for place, test in enumerate(tests):
        if any(
            t.kind == "fail" and t.rate_per_s <= test.rate_per_s for t in tests[:place]
        ):
            return list(tests[:place])
    return list(tests)


# --- idle timeouts


def _idle(own: Sequence[Json]) -> Repeat:
    """By the last pair of trials: who worked, before the first of those that do not."""
    opened = [place for place, trial in enumerate(own) if records.opens(trial)]
    first, *used = own[opened[-1] :]
    last = used[-1] if used else first
    if not used or accounting.verdict(last) == "invalid":
        return Repeat(None, "invalid", trials=len(own))
    (stream,) = accounting.streams(last)
    number = records.connections(first)
    works = number - stream["lost"]
    gone = [(works, stream["lost"])] if stream["lost"] else []
    if [tuple(each) for each in stream["survival"]["lost_ranges"]] != gone:
        return Repeat(None, "invalid", trials=len(own))
    if not works:
        return Repeat(0, "fail", trials=len(own))
    due = [
        trial["result"]["begin_unix_ns"]
        + (works - 1) * 10**9 // accounting.directions(trial)[0]["intended_rate_fps"]
        for trial in (first, last)
    ]
    found = Repeat(due[1] - due[0], "pass", trials=len(own))
    return found if gone else found._replace(bound="lower", bound_cause="kept")


# --- table capacity (4.9)


class _CapacitySearch:
    """The tests of one repeat, sorted into the numbers of connections they are of."""

    def __init__(self, tests: Sequence[_Test], settings: Json, limit: Limit) -> None:
        self._left = list(tests)
        self._settings = settings
        self._limit = limit
        self._records = 0
        self._gone = self._given_up = False
        self._steps: list[Json] = []
        self.held: int | None = None
        self.rate_per_s: int | None = None
        self.beyond: int | None = None
        self.ending = self._search()

    def repeat(self, own: Sequence[Json]) -> Repeat:
        """As it is stored."""
        used = self._records if self._left else len(own)
        if self.ending == "nothing_held":
            return Repeat(0, "fail", trials=used)
        proven = "lower" if self.held is not None else None
        match self.ending:
            case "found":
                return Repeat(self.held, "pass", trials=used)
            case "most_held":
                return Repeat(self.held, "pass", "lower", "set", used)
            case _:
                return Repeat(self.held, "invalid", proven, None, used)

    def record(self) -> Json:
        """Its numbers and steps."""
        return {
            "connections": self.held,
            "beyond": self.beyond,
            "rate_per_s": self.rate_per_s,
            "error": self._settings["error"],
            "ending": self.ending,
            "steps": self._steps,
        }

    def _search(self) -> str:
        settings = self._settings
        first, most = settings["first"], settings["connections"]
        if (end := self._try("first", first, least=1)) is not None:
            self.beyond = None if end == "unstable" else first
            return end
        if self.held is None:
            self.beyond = first
            return "nothing_held"
        while self.beyond is None:
            if self.held == most:
                return "most_held"
            number = min(2 * self.held, most)
            if (end := self._next("doubling", number, settings["beta"])) is not None:
                self.beyond = number if end == "collapsed" else None
                return end
        while self.beyond - self.held > settings["error"]:
            number = (self.held + self.beyond) // 2
            if (end := self._next("bisection", number, settings["gamma"])) is not None:
                self.beyond = number if end == "collapsed" else self.beyond
                return end
        return "found"

    def _next(self, phase: str, number: int, share: float) -> str | None:
        """A number that must reach a share of the rate of the one that was held."""
        least = math.ceil(Fraction(str(share)) * (self.rate_per_s or 1))
        end = self._try(phase, number, least)
        if end is None and self.held != number:
            self.beyond = number
        return end

    def _try(self, phase: str, number: int, least: int) -> str | None:
        """One step; an ending, if it ends the search before its time."""
        tests = self._take(number)
        rate, held = self._judged(tests, least)
        if held is None:
            self._given_up = True
            return "unstable"
        self._steps.append(
            {
                "phase": phase,
                "connections": number,
                "rate_per_s": rate,
                "least_per_s": least,
                "held": held,
                "tests": len(tests),
            }
        )
        if held == "held":
            self.held, self.rate_per_s = number, rate
        if held == "collapsed" and not self._came_back(tests[-1].last):
            return "collapsed"
        return "unstable" if held == "unstable" else None

    def _take(self, number: int) -> list[_Test]:
        """The next tests of that number, up to one that the device did not stand."""
        taken: list[_Test] = []
        while self._left and self._left[0].connections == number:
            if taken and _collapsed(taken[-1].last):
                break
            if len(_before_probe([*taken, self._left[0]])) == len(taken):
                break  # who survives is asked beside the search
            taken.append(self._left.pop(0))
            self._records = taken[-1].records
        return taken

    def _judged(
        self, tests: Sequence[_Test], least: int
    ) -> tuple[int | None, str | None]:
        """Its rate, and whether so many are held; None: it was given up."""
        asked = [test.asked() for test in tests]
        failed = [test for test in tests if test.kind == "fail"]
        if tests and _collapsed(tests[-1].last):
            return None, "collapsed"
        if any(test.rate_per_s <= least for test in failed):
            return None, "full" if _is_full(failed) else "too_slow"
        if least > 1 and _is_full(failed, fewest=30):
            return None, "full"
        end = ended(asked)
        no_use = bool(tests) and _tells_for_good(tests[-1].last)
        if not tests or no_use or not is_closed(end, self._settings["resolution"]):
            return None, None
        if end.lower is not None and end.lower >= least:
            return end.lower, "held"
        if end.why in ("unstable", "tester"):
            return end.lower, "unstable"
        return end.lower, "full" if _is_full(failed) else "too_slow"

    def _came_back(self, last: Json) -> bool:
        """Whether hooks brought it back, and it holds what it held before."""
        moments = [run["moment"] for run in last.get("hooks", [])]
        if "restart" not in moments:
            return False
        after = last["hooks"][moments.index("restart") :]
        if not all(run["exit_code"] == 0 for run in after):
            return False
        kinds: list[str] = []
        while self._left and self.held is not None and len(kinds) < _ATTEMPTS:
            if self._left[0].connections != self.held:
                break
            test = self._left.pop(0)
            self._records = test.records
            kinds.append(test.kind)
            if test.kind != "invalid":
                break
        return self.held is None or kinds[-1:] == ["pass"]


def _is_full(failed: Sequence[_Test], fewest: int = 1) -> bool:
    """Whether as many were missing at the lowest rate and the next, half as high again.

    And as many held: too slow a device holds more of them at the lower one. At each
    rate the ``fewest`` or more.
    """
    missing = {
        test.rate_per_s: loss
        for test in failed
        if accounting.codes(test.last) <= accounting.LOSSES
        and (loss := records.loss_percent(test.last) / 100)
    }
    above = [rate for rate in missing if rate >= 1.5 * min(missing)]
    if not above or min(missing.values()) * failed[0].connections < fewest:
        return False
    low, high = missing[min(missing)], missing[min(above)]
    more_held = (1 - low) / (1 - high) if high < 1 else math.inf
    return low < 1 and more_held <= 1.1 and abs(low - high) <= 0.01 * max(low, high)


def _collapsed(last: Json) -> bool:
    """Whether no frame came back, or the device said that it does not work."""
    for run in last.get("hooks", []):
        if run["moment"] == "restart":
            break
        if run["moment"] == "is_alive" and run["exit_code"] != 0:
            return True
    every = accounting.streams(last)
    sent, back = (any(s[key] for s in every) for key in ("sent", "received"))
    if last["result"].get("tcp") and records.is_not_translated(last):
        return False
    return accounting.verdict(last) == "fail" and sent and not back


def _tells_for_good(last: Json) -> bool:
    """Whether no other test would tell anything either."""
    hopeless = last["attempt"] == _ATTEMPTS and not records.helped_by_rate(last)
    routed = bool(last["result"].get("tcp")) and records.is_not_translated(last)
    return records.foreign_addresses(last) or hopeless or routed


# --- tear-down (4.8)


def _teardown(own: Sequence[Json], settings: Json) -> tuple[Repeat, Json | None]:
    last = own[-1]
    number = settings["connections"]
    if accounting.verdict(last) != "pass" or records.foreign_addresses(last):
        return Repeat(None, "invalid", trials=len(own)), None
    deleted = list(records.hook_runs(last, "teardown"))
    counts = [
        (run.get("after_s") or 0, count)
        for run in records.hook_runs(last, "table_count")
        if (count := _number(run)) is not None
    ]
    part = _deletion(deleted, counts, number) if deleted else _expiry(counts, number)
    agrees = _agrees(counts, number, deleted=bool(deleted))
    value = part["rate_per_s"] if agrees else None
    verdict = "invalid" if value is None else "pass"
    return Repeat(value, verdict, trials=len(own)), part


def _deletion(
    deleted: Sequence[Json], counts: Sequence[tuple[float, int]], number: int
) -> Json:
    """What it takes with the table full, less what the command itself takes."""
    full_s, *empty_s = (run["duration_s"] for run in deleted)
    command_s = formulas.median(empty_s)
    noise_s, net_s = max(empty_s) - min(empty_s), full_s - command_s
    clear = net_s > 0 and net_s >= 20 * noise_s
    return {
        "connections": number,
        "counted_before": counts[0][1] if counts else None,
        "counted_after": counts[-1][1] if counts else None,
        "delete_s": full_s,
        "empty_s": empty_s,
        "command_s": command_s,
        "rate_per_s": number / net_s if clear else None,
        "rfc_rate_per_s": number / full_s if full_s > 0 else None,
    }


def _expiry(counts: Sequence[tuple[float, int]], number: int) -> Json:
    """From 90 % to 10 % of the connections, between two counts in proportion."""
    begins_s, ends_s = (_when(counts, share * number) for share in (0.9, 0.1))
    between = any(0.1 * number < count < 0.9 * number for _, count in counts)
    rate = None
    if between and begins_s is not None and ends_s is not None and ends_s > begins_s:
        rate = (0.9 - 0.1) * number / (ends_s - begins_s)
    return {
        "connections": number,
        "counts": [{"after_s": after, "connections": count} for after, count in counts],
        "begins_s": begins_s,
        "ends_s": ends_s,
        "rate_per_s": rate,
    }


def _when(counts: Sequence[tuple[float, int]], number: float) -> float | None:
    for (early, more), (late, fewer) in pairwise(counts):
        if more >= number > fewer:
            return early + (more - number) / (more - fewer) * (late - early)
    return None


def _agrees(counts: Sequence[tuple[float, int]], number: int, *, deleted: bool) -> bool:
    """Whether the device's own counts are within 1 % of what they should be."""
    if not counts:
        return True
    before, after = counts[0][1], counts[-1][1] if deleted else 0
    return abs(before - number) <= 0.01 * number and after <= 0.01 * number


def _number(run: Json) -> int | None:
    found = re.search(r"[0-9]+", run["output"])
    return int(found[0]) if found else None
