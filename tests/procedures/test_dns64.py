"""Queries of DNS64 servers: names in a cache, and the table over both shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from planning import Run, campaign, spec, spoilt
from report_page import Page

from dutperf.catalogue import PROCEDURES
from dutperf.errors import InputError
from dutperf.evidence.accounting import check_trials, names_of
from dutperf.model.rate_specs import Dns64Spec
from dutperf.procedures.dns64 import share_chart, share_table
from dutperf.report import write_report
from dutperf.results import TrialRecord
from dutperf.results.rate_results import Finding
from dutperf.simulation.fake_engine import FakeEngine, step
from dutperf.tables import subjects

CACHED = {
    "procedure": "dns64",
    "ip": [6],
    "resolution": "5%",
    "cached_percent": 40,
    "cached_names": 1000,
    "trial_duration_s": 1,
}


def asked(records: Sequence[TrialRecord]) -> list[tuple[str, int | None, bool]]:
    """Role, whose names are cached, and whether it fills."""
    return [
        (
            r.role,
            r.request.dns.cached.names if r.request.dns.cached else None,
            r.request.dns.fills,
        )
        for r in records
        if r.request.dns and r.role in ("cache", "trial")
    ]


def test_names_are_asked_for_before_they_are_cached(tmp_path: Path) -> None:
    results = Run(tmp_path / "run", FakeEngine(step(9000)))(campaign(spec(**CACHED)))
    (cell,) = results.cells
    assert cell.id == "dns64-ip6-110-forward-cached-40percent"
    assert cell.verdict == "pass"
    (role, cached, fills), *others = asked(results.trials)
    assert (role, cached, fills) == ("cache", None, True)
    (filled,) = [r for r in results.trials if r.role == "cache"]
    assert filled.request.dns
    assert set(others) == {("trial", filled.request.dns.names, False)}
    # At a rate that any server stands; all of them.
    assert filled.load_fps == 1000
    assert filled.result.directions[0].streams[0].sent in (1000, 1001)
    # In no figure of the cell.
    assert cell.median is not None
    assert cell.median > 8000


def test_what_was_forgotten_is_asked_for_again(tmp_path: Path) -> None:
    plain = FakeEngine(step(9000))
    Run(tmp_path / "plain", plain)(campaign(spec(**CACHED)))
    third = [n for n, t in enumerate(plain.trials, 1) if t.dns and t.dns.cached][2]
    engine = FakeEngine(step(9000), troubles=spoilt("answers_not_cached", third))
    results = Run(tmp_path / "run", engine)(campaign(spec(**CACHED)))
    (cell,) = results.cells
    assert cell.verdict == "pass"
    told = asked(results.trials)
    roles = [role for role, _, _ in told[:6]]
    assert roles == ["cache", *["trial"] * 3, "cache", "trial"]
    assert told[3][1] != told[5][1]
    again = [r for r in results.trials if r.role == "trial"][3]
    assert again.attempt == 2


def test_cached_names_come_in_hundreds() -> None:
    with pytest.raises(InputError, match="must be a multiple of 100, not 1050"):
        campaign(spec(**CACHED | {"cached_names": 1050}))


def test_more_queries_than_ids_tell_apart_are_refused(tmp_path: Path) -> None:
    keys = CACHED | {"trial_duration_s": 60, "max_rate_fps": 1_100_000}
    with pytest.raises(InputError, match=r"cached_names: 1,000 names .* in at most"):
        Run(tmp_path / "run", FakeEngine(step(9000)))(campaign(spec(**keys)))


def test_both_shares_are_told_in_one_table(tmp_path: Path) -> None:
    keys = CACHED | {"cached_percent": [0, 100], "aaaa_percent": [0, 20], "repeats": 2}
    results = Run(tmp_path / "run", FakeEngine(step(9000)))(campaign(spec(**keys)))
    # Of names that are all cached it does not matter what they have.
    assert [
        cell.id.removeprefix("dns64-ip6-110-forward") for cell in results.cells
    ] == [
        "",
        "-aaaa-20percent",
        "-cached-100percent",
    ]
    made = share_table(list(subjects(results)))
    assert made
    assert [column.name for column in made.columns] == [
        *("clients and authority", "cached", "figure"),
        *("0 % with an AAAA", "20 % with an AAAA"),
    ]
    told = [row.entries[1:3] for row in made.rows]
    figures = ("median", "1st %ile", "99th %ile")
    assert told == [(share, each) for share in ("0", "100") for each in figures]
    assert made.rows[3].entries[4] == ""
    assert "does not matter" in made.notes[0]
    text = write_report(tmp_path / "run").read_text("utf-8")
    page = Page(text)
    assert "20 % with an AAAA" in page.section("shares")
    assert 'id="shares-chart"' in text
    assert "Bars: 1st and 99th percentile" in page.section("shares")
    assert share_table(list(subjects(results))[:1]) is None
    assert share_chart(list(subjects(results))[:1]) is None
    # Each is told apart wherever it is named.
    assert [subject.frames.partition(" bytes")[2] for subject in subjects(results)] == [
        *("", ", 20 % with an AAAA", ", 100 % cached"),
    ]
    assert PROCEDURES["dns64"].unit == "queries/s"


def test_both_shares_are_drawn_with_what_the_repeats_scatter(tmp_path: Path) -> None:
    """A line for each of the shares of which there are fewer."""
    keys = CACHED | {"cached_percent": [0, 50, 100], "aaaa_percent": [0, 20]}
    run = Run(tmp_path / "run", FakeEngine(step(9000)))
    results = run(campaign(spec(**keys | {"repeats": 2})))
    cells = list(subjects(results))
    medians = {
        cell.spec.shares[0]: cell.median
        for cell in cells
        if isinstance(cell.spec, Dns64Spec)
    }
    made = share_chart(cells)
    assert made
    for line, aaaa in zip(made.data, (0, 20), strict=True):
        assert line["name"] == f"{aaaa} % with an AAAA"
        assert line["x"] == [0, 50, 100]
        # All cached, they have one figure.
        shares = [(0, aaaa), (50, aaaa), (100, 0)]
        assert line["y"] == [medians[share] for share in shares]
        assert [len(line["error_y"][end]) for end in ("array", "arrayminus")] == [3, 3]
    first = cells[0].result
    assert first
    assert first.median
    assert first.spread
    ends = {"percentile_1": first.median - 7, "percentile_99": first.median + 3}
    far = first.spread.model_copy(update=ends)
    spread = first.model_copy(update={"spread": far})
    others = [replace(cells[0], result=spread), *cells[1:]]
    made = share_chart(others)
    assert made
    (drawn, _) = made.data
    assert (drawn["error_y"]["array"][0], drawn["error_y"]["arrayminus"][0]) == (3, 7)
    # One share of cached names, two with an AAAA: these are the axis.
    made = share_chart(cells[:2])
    assert made
    (line,) = made.data
    assert (line["name"], line["x"]) == ("0 % cached", [0, 20])
    # What has no figure for all its repeats has no place in the graph.
    doubt = Finding(kind="contradiction", of="dns64", message="", unit="queries/s")
    doubtful = first.model_copy(update={"findings": [doubt]})
    assert share_chart([replace(cells[0], result=doubtful), cells[1]]) is None


def test_names_are_counted_as_one_by_one() -> None:
    def one_by_one(queries: int, cached: int, aaaa: int) -> tuple[int, int, int]:
        own = without = 0
        for query in range(queries):
            place = (query % 100 + query // 100) % 100
            if (place + 1) * cached // 100 > place * cached // 100:
                continue
            own += 1
            without += (query + 1) * aaaa // 100 == query * aaaa // 100
        return own, without, queries - own

    for queries in (0, 1, 99, 5000, 12_345):
        for cached, aaaa in ((0, 20), (20, 20), (40, 0), (60, 100), (100, 50)):
            of = {"percent": cached} if cached else None
            told = names_of({"aaaa_percent": aaaa, "cached": of}, queries)
            assert told == one_by_one(queries, cached, aaaa)


def test_verify_holds_the_authoritys_count_against_the_shares(tmp_path: Path) -> None:
    results = Run(tmp_path / "run", FakeEngine(step(9000)))(campaign(spec(**CACHED)))
    trials = [r.model_dump(mode="json") for r in results.trials]
    assert list(check_trials(trials)) == []
    passed = next(
        t
        for t in trials
        if t["role"] == "trial" and t["result"]["verdict"]["kind"] == "pass"
    )
    passed["result"]["dns"]["asked_a"] |= {"cached": 1}
    passed["result"]["dns"]["asked_a"]["answered"] += 1
    (found,) = check_trials(trials)
    assert found.endswith("it passed, and the authority was asked for cached names")


def test_a_plain_resolver_is_asked_for_an_a(tmp_path: Path) -> None:
    keys = {"procedure": "dns", "resolution": "5%", "trial_duration_s": 1}
    results = Run(tmp_path / "run", FakeEngine(step(9000)))(campaign(spec(**keys)))
    (cell,) = results.cells
    assert (cell.id, cell.unit) == ("dns-ip4-90-forward", "queries/s")
    trials = [r for r in results.trials if r.role == "trial"]
    for record in trials:
        assert record.request.dns
        assert record.request.dns.record == "a"
        (stream,) = record.request.directions[0].streams
        assert (stream.ip_version, stream.dst_port, stream.frame_sizes) == (4, 53, [90])
    assert not list(check_trials([r.model_dump(mode="json") for r in results.trials]))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"ip": ["6-4"]}, "a resolver is asked by 4 or 6"),
        ({"record": "MX"}, "record"),
        ({"aaaa_percent": 5}, "aaaa_percent"),
        ({"server": "2001:2::1"}, "is no IPv4 address, which clients have"),
    ],
)
def test_what_a_resolver_cannot_be_asked_is_refused(
    keys: dict[str, object], said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=said):
        Run(tmp_path / "run", FakeEngine(step(9000)))(
            campaign(spec(procedure="dns", **keys))
        )


@pytest.mark.parametrize(
    ("prefix", "bits"), [("64:ff9b::/96", 96), ("2001:db8:122:344::/64", 64)]
)
def test_a_prefix_has_one_of_the_lengths_of_the_rfc(prefix: str, bits: int) -> None:
    """RFC 6052 2.2."""
    asked = spec(procedure="dns64", ip=[6], prefix=prefix).dns
    assert asked
    assert (f"{asked.prefix}/{asked.prefix_length}", bits) == (prefix, bits)
    with pytest.raises(InputError, match="/32, /40, /48, /56, /64, /96, not a /72"):
        spec(procedure="dns64", ip=[6], prefix="2001:db8::/72")
