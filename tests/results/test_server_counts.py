"""What a DNS server counted itself, held against what the tester says of a trial."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from planning import Run, campaign, spec, with_hooks

from dutperf.procedures.dns64 import METHOD
from dutperf.results import ResultsFile
from dutperf.results.server_counts import (
    ServerCounts,
    beside_server_counts,
    read_counts,
    server_counts,
)
from dutperf.results.trial_record import HookMoment, HookRun
from dutperf.simulation.fake_engine import FakeEngine, step
from dutperf.tables import Value, subjects


def unbound(queries: int, looked_up: int) -> str:
    return (
        f"thread0.num.queries=1\ntotal.num.queries={queries}\n"
        f"total.num.queries_ip_ratelimited=7\ntotal.num.cachemiss={looked_up}\n"
    )


def bind(own: Mapping[str, int], *resolvers: Mapping[str, int]) -> str:
    views = {f"v{number}": each for number, each in enumerate(resolvers)}
    return json.dumps(
        {
            "nsstats": own,
            "views": {
                name: {"resolver": {"stats": each}}
                for name, each in (views | {"_bind": {"Queryv4": 99}}).items()
            },
        }
    )


BIND = bind(
    {"Requestv4": 2, "Requestv6": 3, "QryRecursion": 4}, {"Queryv4": 5}, {"Queryv6": 6}
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (unbound(5, 3), ServerCounts(5, 3, None)),
        (BIND, ServerCounts(5, 4, 11)),
        ('{"views": {}}', ServerCounts(0, 0, 0)),
        ("total.num.queries=5\n", None),
        ("", None),
        ("[]", None),
        ("7", None),
        ('{"views": {"a": 1}}', None),
        ('{"views": {}, "nsstats": {"Requestv4": "many"}}', None),
    ],
)
def test_each_server_tells_in_its_own_words(
    text: str, found: ServerCounts | None
) -> None:
    assert read_counts(text) == found


def told(*outputs: tuple[HookMoment, str]) -> list[HookRun]:
    return [
        HookRun(
            moment=moment,
            command=["counters"],
            host=None,
            attempts=1,
            exit_code=0,
            ended="",
            output=output,
            duration_s=0,
        )
        for moment, output in outputs
    ]


def around(before: str, after: str) -> list[HookRun]:
    return told(("before_trial", before), ("after_trial", after))


def test_a_trials_are_those_between_both_readings() -> None:
    assert server_counts(around(unbound(5, 3), unbound(9, 3))) == (4, 0, None)
    assert server_counts(around('{"views": {}}', BIND)) == (5, 4, 11)
    # Nobody knows what was before, or it began anew.
    assert server_counts(told(("after_trial", unbound(9, 3)))) is None
    assert server_counts(around(unbound(9, 3), unbound(5, 3))) is None
    assert server_counts(around("error: connection refused", unbound(5, 3))) is None


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> ResultsFile:
    keys = {"procedure": "dns64", "ip": [6], "cached_percent": 40, "resolution": "5%"}
    keys |= {"cached_names": 1000, "trial_duration_s": 1}
    run = Run(tmp_path_factory.mktemp("run") / "run", FakeEngine(step(900)))
    return run(campaign(spec(**keys)))


def judged(
    measured: ResultsFile, queries: int = 0, looked_up: int = 0, asked: int = 0
) -> ResultsFile:
    """With a server that counts as the tester does, but for so many."""
    records = []
    for record in measured.trials:
        (stream,), dns = record.result.directions[0].streams, record.result.dns
        assert dns
        # What the device loses its server never sees.
        got = stream.received + queries
        own = {"Requestv6": got, "QryRecursion": got - dns.valid_cached + looked_up}
        names = dns.asked_aaaa.names + dns.asked_a.names
        after = bind(own, {"Queryv4": names + asked})
        hooks = around('{"views": {}}', after)
        records.append(record.model_copy(update={"hooks": hooks}))
    (cell,) = measured.cells
    cell = beside_server_counts(cell, records)
    return measured.model_copy(update={"cells": [cell], "trials": records})


def test_a_server_that_counts_as_the_tester_does_is_shown(
    measured: ResultsFile,
) -> None:
    # A question that was lost on the way is asked again, and came once.
    results = judged(measured, asked=1)
    (subject,) = subjects(results)
    assert subject.result
    assert subject.result.findings == measured.cells[0].findings
    (table,) = METHOD.tables(subject)
    assert table.columns[-1].name == "the server counted"
    for row in table.rows:
        answered, cached = row.entries[3:5]
        assert isinstance(answered, Value)
        assert isinstance(cached, Value)
        told = f"{answered.digits}, {cached.digits} from its cache"
        assert row.entries[-1] == told


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"queries": -1}, "it counted 487 queries, and 488 were sent"),
        ({"queries": 1}, "it counted 489 queries, and 488 were sent"),
        ({"looked_up": 1}, "it looked 294 names up, and 293 were not to be in its"),
        ({"looked_up": -1}, "it looked 292 names up, and 293 were not to be in its"),
        ({"asked": -1}, "it asked 585 times, and 586 questions came"),
    ],
)
def test_one_query_that_it_counts_otherwise_is_told(
    measured: ResultsFile, wrong: dict[str, int], said: str
) -> None:
    (cell,) = judged(measured, **wrong).cells
    (finding,) = [f for f in cell.findings if f.kind == "contradiction"]
    assert said in finding.message
    assert cell.doubts() == ["contradiction"]


def test_a_run_whose_server_counts_nothing_has_no_figure(tmp_path: Path) -> None:
    counters = {"command": ["echo", unbound(5, 3)]}
    testbed = with_hooks(before_trial=[counters], after_trial=[counters])
    run = Run(tmp_path / "run", FakeEngine(step(900)), testbed=testbed)
    keys = {"procedure": "dns64", "ip": [6], "resolution": "5%", "trial_duration_s": 1}
    (cell,) = run(campaign(spec(**keys))).cells
    assert cell.doubts() == ["contradiction"]
    assert "it counted 0 queries, and " in cell.findings[-1].message
