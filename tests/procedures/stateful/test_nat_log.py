"""What a simulated NAT does not log, or not as it is, is told with its ends."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from gateways import Lie, LoggedEngine, conntrack, logging_to
from planning import Recording, cell

from dutperf.errors import InputError
from dutperf.procedures.max_rate import MaxRate
from dutperf.procedures.stateful.log_audit import Seen, audited
from dutperf.procedures.stateful.nat_behaviour import End
from dutperf.procedures.stateful.nat_log import measure_nat_log
from dutperf.results import CellResult
from dutperf.results.details import LogVerdict
from dutperf.results.device_log import DeviceLog, LogEntry
from dutperf.simulation.fake_engine import SimulatedNat


def measured(
    log: Path,
    lies: Mapping[int, Lie] | None = None,
    *,
    connections: int = 300,
    clock_ns: Callable[[int], int] = lambda _number: 0,
    tests: int = 1,
    nat: SimulatedNat | None = None,
    is_emptied: bool = True,
) -> CellResult:
    log.touch()
    engine = LoggedEngine(nat or SimulatedNat(), log, lies, clock_ns)
    testbed = logging_to(log, is_emptied=is_emptied)
    recording = Recording(engine, testbed=testbed)
    keys = {"connections": connections}
    asked = cell(testbed, procedure="nat-log", tests=tests, stateful=keys)
    return measure_nat_log(recording.runner, asked, MaxRate(10**6, "load"))


def counted(result: CellResult) -> dict[str, int]:
    assert result.log
    return {verdict: n for verdict, n in result.log.verdicts.items() if n}


def test_a_log_that_has_all_is_complete(tmp_path: Path) -> None:
    result = measured(tmp_path / "log", tests=2)
    assert (result.verdict, result.median) == ("pass", 100)
    assert result.log
    assert (result.log.learned, result.log.entries, result.log.other) == (600, 600, 0)


def test_one_entry_of_a_hundred_thousand_is_missed(tmp_path: Path) -> None:
    """By two tests of 2^16; nothing rounds it away."""

    class OnceForgetful(dict[int, Lie]):
        def get(self, _number: int, usual: Lie) -> Lie:  # type: ignore[override]
            self.asked = getattr(self, "asked", 0) + 1
            return (lambda _ends, _seen: []) if self.asked == 100_000 else usual

    lies = OnceForgetful({-1: lambda _ends, _seen: []})
    result = measured(tmp_path / "log", lies, connections=2**16, tests=2)
    assert counted(result) == {"named": 2**17 - 1, "missing": 1}
    assert result.verdict == "fail"
    (reason,) = result.reasons
    assert reason.code == "log_incomplete"
    number = 100_000 - 2**16 - 1
    ends = f"10.0.0.2:{10_000 + number} is 198.19.0.1:"
    assert f"131,072 mappings 1 missing; missing: {ends}" in reason.message


def test_what_the_device_may_have_had_before_is_not_missing(tmp_path: Path) -> None:
    """Without a hook that empties its table nobody knows when a mapping was made."""
    lies: dict[int, Lie] = {7: lambda _ends, _seen: []}
    result = measured(tmp_path / "log", lies, is_emptied=False)
    assert (result.verdict, result.median) == ("invalid", None)
    assert "no hook empties its table" in result.reasons[0].message
    assert measured(tmp_path / "log", is_emptied=False).verdict == "pass"


@pytest.mark.parametrize(
    ("lie", "verdict", "words"),
    [
        (lambda _ends, _seen: [], "missing", "no entry"),
        (lambda e, s: [conntrack(e, s)] * 2, "duplicate", "2 entries"),
        (
            lambda e, s: [conntrack(("10.9.9.9", *e[1:]), s)],
            "wrong",
            "is said to be 10.9.9.9:",
        ),
        (
            lambda e, s: [conntrack(e, ("198.19.0.99", *s[1:]))],
            "wrong",
            "10.0.0.2:10007 is said to be 198.19.0.99:",
        ),
        (
            lambda e, s: [conntrack(e, s), conntrack(("10.9.9.9", *e[1:]), s)],
            "ambiguous",
            "is said to be 10.9.9.9:10007, too",
        ),
    ],
)
def test_one_lie_is_caught_with_its_ends(
    tmp_path: Path, lie: Lie, verdict: str, words: str
) -> None:
    result = measured(tmp_path / "log", {7: lie})
    assert counted(result) == {"named": 299, verdict: 1}
    assert result.verdict == "fail"
    assert result.log
    (example,) = result.log.examples
    assert example.startswith(f"{verdict}: 10.0.0.2:10007 is 198.19.0.1:")
    assert words in example


def test_a_log_that_cannot_be_had_is_no_log_without_entries(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def rotated(_ends: object, _seen: object) -> list[str]:
        log.rename(tmp_path / "log.1")
        log.touch()
        return []

    result = measured(log, {299: rotated})
    assert (result.verdict, result.median) == ("invalid", None)
    assert "cut or replaced" in result.reasons[0].message


def test_what_was_in_the_file_before_is_of_nobody(tmp_path: Path) -> None:
    log = tmp_path / "log"
    lies: dict[int, Lie] = dict.fromkeys(range(300), lambda _ends, _seen: [])
    measured(log)
    assert counted(measured(log, lies)) == {"missing": 300}


def test_the_clock_of_another_zone_is_told_and_not_judged(tmp_path: Path) -> None:
    result = measured(tmp_path / "log", clock_ns=lambda _: -7200 * 10**9)
    assert result.verdict == "pass"
    assert result.log
    assert result.log.clock_ns == pytest.approx(-7200e9, abs=2000)
    assert result.log.clock_high_ns is not None


def test_connections_that_did_not_arrive_are_not_asked_for(tmp_path: Path) -> None:
    result = measured(tmp_path / "log", nat=SimulatedNat(table_size=100))
    assert counted(result) == {"named": 100}
    assert result.log
    assert (result.log.opened, result.log.learned) == (300, 100)


# Tables of a few ends: every verdict, held against what is obvious.


def end(text: str) -> End:
    host, _, port = text.partition(":")
    return End(host, int(port))


def entry(inside: str, public: str, remote: str | None = None) -> LogEntry:
    i, p = end(inside), end(public)
    r = end(remote) if remote else None
    return LogEntry(*i, p.address, p.port, p.port, *(r or (None, None)))


def block(
    inside: str, first: int, last: int, *, ends: bool = False, late: bool = False
) -> LogEntry:
    return LogEntry(inside, None, "p", first, last, ends=ends, late=late)


def verdict(entries: Sequence[LogEntry], *others: Seen) -> LogVerdict:
    own = Seen(end("a:1"), end("p:10"), end("r:80"))
    found = audited(dict.fromkeys([own, *others]), entries).found
    return next(iter(found.values()))[0]


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ([entry("a:1", "p:10")], "named"),
        ([entry("a:1", "p:10", "r:80")], "named"),
        ([entry("a:1", "p:10", "r:81")], "missing"),
        ([entry("a:1", "p:10", "r:80"), entry("a:1", "p:10")], "named"),
        ([entry("a:1", "p:10")] * 2, "duplicate"),
        ([entry("a:1", "p:10")._replace(ends=True)], "missing"),
        ([entry("a:1", "p:10")._replace(late=True)], "late"),
        ([entry("b:1", "p:10")], "wrong"),
        ([entry("b:1", "p:10", "r:81")], "missing"),
        ([entry("a:1", "p:11")], "wrong"),
        ([entry("b:1", "p:10"), entry("a:1", "p:10")], "ambiguous"),
        ([block("a", 8, 15)], "named"),
        ([block("a", 8, 15, late=True)], "late"),
        ([block("a", 8, 9), block("a", 11, 15)], "missing"),
        ([block("b", 8, 15)], "wrong"),
        ([block("a", 8, 15), block("b", 8, 15)], "ambiguous"),
        ([block("b", 8, 15), block("b", 8, 15, ends=True), block("a", 8, 15)], "named"),
        ([block("a", 8, 15), block("a", 8, 15)], "duplicate"),
    ],
)
def test_what_entries_make_of_a_mapping(
    entries: Sequence[LogEntry], expected: LogVerdict
) -> None:
    assert verdict(entries) == expected


def test_one_entry_is_enough_for_a_mapping_whoever_it_is_towards() -> None:
    ends = [end("r:80"), end("r:81"), end("s:80")]
    seen = {Seen(end("a:1"), end("p:10"), r): n for n, r in enumerate(ends)}
    found = audited(seen, [entry("a:1", "p:10")]).found
    assert list(found.values()) == [("named", "")]
    assert len(audited(seen, []).found) == 3


def test_ports_that_two_share_need_the_remote_end() -> None:
    other = Seen(end("b:1"), end("p:10"), end("r:81"))
    without = [entry("a:1", "p:10"), entry("b:1", "p:10")]
    assert verdict(without, other) == "ambiguous"
    with_it = [entry("a:1", "p:10", "r:80"), entry("b:1", "p:10", "r:81")]
    assert verdict(with_it, other) == "named"


def obvious(each: Seen, seen: set[Seen], entries: Sequence[LogEntry]) -> LogVerdict:
    """By looking at all entries, and of blocks at every moment."""
    fits = [
        e
        for e in entries
        if e.inside_port is not None
        and not e.ends
        and (e.remote is None or (e.remote, e.remote_port) == each.remote)
    ]
    here = [e for e in fits if (e.public, e.first_port) == each.public]
    own = [e for e in here if (e.inside, e.inside_port) == each.inside]
    by_remote = Counter(e.remote for e in own)
    if len(here) > len(own):
        return "ambiguous" if own else "wrong"
    if own:
        return "duplicate" if max(by_remote.values()) > 1 else "named"
    mine = {m.public for m in seen if m.inside == each.inside}
    for e in fits:
        other = (e.public, e.first_port) not in mine
        if (e.inside, e.inside_port) == each.inside and other:
            return "wrong"
    held: Counter[tuple[str, int, int]] = Counter()
    moments: list[tuple[int, int]] = []
    for e in entries:
        if e.inside_port is None:
            key = (e.inside, e.first_port, e.last_port)
            held[key] += -1 if e.ends and held[key] else not e.ends
        covering = [k for k in held.elements() if k[1] <= each.public.port <= k[2]]
        own_now = sum(k[0] == each.inside.address for k in covering)
        moments.append((own_now, len(covering) - own_now))
    if not any(a for a, _ in moments):
        return "wrong" if any(b for _, b in moments) else "missing"
    if any(a and b for a, b in moments):
        return "ambiguous"
    return "duplicate" if any(a > 1 for a, _ in moments) else "named"


def test_random_logs_are_judged_as_what_is_obvious() -> None:
    draw = random.Random(11)  # noqa: S311 - cases, not secrets
    met: Counter[LogVerdict] = Counter()
    for _ in range(600):
        publics = [f"p:{port}" for port in (10, 11, 12)]
        insides = ["a:1", "a:2", "b:1"]
        remotes = ["r:80", "r:81"]
        seen = {
            Seen(end(inside), end(draw.choice(publics)), end(draw.choice(remotes)))
            for inside in draw.sample(insides, 2)
        }
        entries: list[LogEntry] = []
        with_remotes = draw.random() < 0.5
        for _ in range(draw.randrange(6)):
            if draw.random() < 0.4:
                first = draw.choice([9, 10, 11])
                ends = draw.random() < 0.3
                host = draw.choice("ab")
                entries.append(block(host, first, first + 1, ends=ends))
                continue
            of = draw.choice(sorted(seen))
            inside = of.inside if draw.random() < 0.7 else end(draw.choice(insides))
            public = of.public if draw.random() < 0.7 else end(draw.choice(publics))
            remote = draw.choice(remotes) if with_remotes else None
            entries.append(entry(":".join(map(str, inside)), str(public), remote))
        found = audited(dict.fromkeys(seen), entries).found
        wanted = {
            key: obvious(
                key if key.remote else next(s for s in seen if s[:2] == key[:2]),
                seen,
                entries,
            )
            for key in found
        }
        assert {key: told[0] for key, told in found.items()} == wanted, entries
        met.update(wanted.values())
    assert len(met) == 5, met  # nothing is late


@pytest.mark.parametrize("packed", ["", "AAAA", "no base64!", "eJyrBgAAugB7"])
def test_what_is_no_log_is_refused(packed: str) -> None:
    with pytest.raises(InputError, match="cannot be unpacked"):
        _ = DeviceLog(packed=packed, unread=0).entries
