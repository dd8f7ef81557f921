"""Queries to DNS64 servers: the tester is client and authority (RFC 8219 9)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from livetools import (
    DEVICE,
    GATEWAYS,
    MS,
    Trial,
    counting,
    dutperf,
    inside,
    lab_engine,
    lab_neighbours,
    open_rings,
    running_engine,
)

from dutperf import lab
from dutperf.protocol.base import IpVersion
from dutperf.protocol.result_messages import DnsResult, TrialResult
from dutperf.protocol.stream_messages import FieldVariation
from dutperf.protocol.trial_messages import (
    CachedNames,
    Dns,
    TrialProgress,
    TrialRequest,
)
from dutperf.results import CellResult, load_journal, load_results
from dutperf.results.server_counts import ServerCounts, server_counts
from dutperf.run.hook_runs import run_hooks

pytestmark = counting(DEVICE)

SIZE: dict[IpVersion, int] = {4: 90, 6: 110}
PREFIX = "64:ff9b::"


def queries(ip: IpVersion = 6, trial_id: int = 1, *, aaaa: int = 100) -> TrialRequest:
    """500 of them."""
    trial = Trial(
        ip=ip,
        size=SIZE[ip],
        directions=["forward"],
        extra={"residual_wait_ns": 300 * MS, "frame_timeout_ns": 250 * MS},
    )
    request = trial.request(trial_id)
    stream = request.directions[0].streams[0]
    port = FieldVariation(
        field="src_port", offset=0, width=16, min=1024, max=65535, mode="random"
    )
    asked = stream.model_copy(update={"vary": [port], "dst_port": 53})
    direction = request.directions[0].model_copy(update={"streams": [asked]})
    dns = Dns(names=7, aaaa_percent=aaaa, prefix=PREFIX)
    return request.model_copy(update={"directions": [direction], "dns": dns})


def of(result: TrialResult) -> DnsResult:
    assert result.dns is not None
    return result.dns


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("ip", [4, 6])
def test_what_the_tester_asks_itself_it_answers(
    tmp_path: Path, ip: IpVersion, workers: int
) -> None:
    """The self-test of RFC 8219 9.2.1: each name has an AAAA."""
    with running_engine(tmp_path, workers=workers) as engine:
        open_rings(engine)
        for trial_id in (1, 2):
            result = engine.measure(queries(ip, trial_id))
            (stream,) = result.directions[0].streams
            assert result.verdict.kind == "pass", result.verdict
            assert (stream.sent, stream.received, stream.duplicate) == (500, 500, 0)
            told = of(result)
            assert told.replies.valid == 500
            assert told.asked_aaaa.model_dump() == {
                "names": 500,
                "again": 0,
                "cached": 0,
                "answered": 500,
            }
            assert told.asked_a.names == 0
            assert told.unknown_queries + told.unknown_replies + told.not_sent == 0


def test_a_name_without_an_aaaa_is_not_resolved_by_the_authority(
    tmp_path: Path,
) -> None:
    with running_engine(tmp_path) as engine:
        open_rings(engine)
        result = engine.measure(queries(aaaa=20))
    assert result.verdict.kind == "fail"
    told = of(result)
    assert (told.replies.valid, told.replies.empty) == (100, 400)
    assert result.directions[0].streams[0].received == 100


def test_nobody_has_names_cached_in_a_loop(tmp_path: Path) -> None:
    """Each is asked for of the authority, which tells: the trial is invalid."""
    request = queries()
    assert request.dns
    cached = CachedNames(names=8, count=100, percent=40)
    asked = request.dns.model_copy(update={"cached": cached})
    with running_engine(tmp_path) as engine:
        open_rings(engine)
        result = engine.measure(request.model_copy(update={"dns": asked}))
    told = of(result)
    assert [reason.code for reason in result.verdict.reasons] == ["answers_not_cached"]
    # Each was told apart by its id, though 200 queries ask for 100 names.
    assert result.directions[0].streams[0].received == 500
    assert (told.replies.valid, told.valid_cached) == (500, 200)
    assert (told.asked_aaaa.names, told.asked_aaaa.cached) == (300, 200)


LABS = {"unbound-dns64": "unbound", "bind-dns64": "named"}
WITNESS = "2001:2:0:f::"
"""The network of another client than the tester, beside the lab's own wires."""


def dnsperf(names: Sequence[str], file: Path) -> dict[str, str]:
    """What it says of 500 queries a second, each for the AAAA of a name, in order."""
    file.write_text("".join(f"{name} AAAA\n" for name in names))
    options = ("-n", "1", "-Q", "500", "-t", "2", "-d", str(file))
    told = inside("tester", "dnsperf", "-s", "2001:2::1", *options)
    lines = [line.partition(":")[::2] for line in told.splitlines()]
    return {key.strip(): value.strip() for key, value in lines}


def add_witness() -> None:
    """A wire from the tester's kernel to the server: no frame of it is the engine's."""
    wire = ("type", "veth", "peer", "name", "witness", "netns", "dut")
    inside("tester", "ip", "link", "add", "witness", *wire)
    inside("tester", "sysctl", "-w", "net.ipv6.conf.witness.disable_ipv6=0")
    for number, namespace in enumerate(("dut", "tester"), 1):
        address = (f"{WITNESS}{number}/64", "dev", "witness", "nodad")
        inside(namespace, "ip", "address", "add", *address)
        inside(namespace, "ip", "link", "set", "witness", "up")
    inside("tester", "ip", "route", "add", "2001:2::1", "via", f"{WITNESS}1")


@pytest.mark.lab
@pytest.mark.parametrize("name", LABS)
def test_another_client_and_the_server_count_as_the_tester_does(
    tmp_path: Path, name: str
) -> None:
    """dnsperf asks for the names that the tester finds in the cache afterwards.

    The tester is the authority for them while it asks little itself.
    """
    for program in (LABS[name], "dnsperf"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    names = [f"0008-{number:08x}.dutperf.test" for number in range(1000)]
    witness: dict[str, str] = {}

    def on_progress(progress: TrialProgress) -> None:
        if progress.phase == "running" and not witness:
            witness.update(dnsperf(names, tmp_path / "names"))

    try:
        hooks = lab.up(name).hooks
        add_witness()
        neighbours = lab_neighbours(left=[6], right=[4])
        with lab_engine(tmp_path, "af_packet", neighbours=neighbours) as engine:

            def ask(own: int, percent: int) -> tuple[DnsResult, ServerCounts]:
                """50 queries, while dnsperf asks; then 500."""
                trial = of_server(queries(trial_id=own, aaaa=50), own, percent)
                runs = run_hooks(hooks.before_trial, "before_trial")
                result = engine.measure(trial, on_progress)
                runs += run_hooks(hooks.after_trial, "after_trial")
                counts = server_counts(runs)
                assert counts
                return of(result), counts

            (first, of_first), (second, of_second) = ask(7, 1), ask(9, 60)
    finally:
        lab.down(all_=True)
    assert witness["Queries sent"] == "1000"
    assert witness["Queries completed"] == "1000 (100.00%)"
    assert witness["Queries lost"] == "0 (0.00%)"
    assert witness["Response codes"] == "NOERROR 1000 (100.00%)"
    assert first.replies.valid == first.asked_aaaa.names == 50
    assert (first.asked_aaaa.cached, first.asked_a.cached) == (1000, 500)
    assert (of_first.queries, of_first.looked_up) == (1050, 1050)
    assert (second.replies.valid, second.valid_cached) == (500, 300)
    assert second.asked_aaaa.cached + second.asked_a.cached == 0
    assert (of_second.queries, of_second.looked_up) == (500, 200)
    if of_first.asked is not None:
        asked = [
            each.asked_aaaa.answered + each.asked_a.answered for each in (first, second)
        ]
        assert [of_first.asked, of_second.asked] == asked


def of_server(request: TrialRequest, own: int, percent: int) -> TrialRequest:
    """The same of the lab's server, with so many queries about names of trial 8.

    At 1 %, of which the first is the hundredth, none is asked in five seconds.
    """
    (stream,) = request.directions[0].streams
    asked = stream.model_copy(
        update={"dst_ip": GATEWAYS[6][0], "next_hop": GATEWAYS[6][0]}
    )
    fps = 10 if percent == 1 else 500
    way = request.directions[0].model_copy(update={"streams": [asked], "rate_fps": fps})
    assert request.dns
    cached = CachedNames(names=8, count=1000, percent=percent)
    dns = request.dns.model_copy(update={"names": own, "cached": cached})
    duration_ns = 5000 * MS if percent == 1 else 1000 * MS
    return request.model_copy(
        update={"directions": [way], "dns": dns, "duration_ns": duration_ns}
    )


@pytest.mark.lab
@pytest.mark.parametrize("name", LABS)
@pytest.mark.parametrize("aaaa", [0, 20])
def test_a_server_asks_for_what_a_name_has(
    tmp_path: Path, name: str, aaaa: int
) -> None:
    if shutil.which(LABS[name]) is None:
        pytest.skip(f"needs {LABS[name]}")
    try:
        done = dutperf(
            *("dns64", "--lab", name, "--max-rate", "500", "--aaaa", str(aaaa)),
            *("--trial-duration", "1", "--settle-wait", "0.1"),
            *("--restabilise-wait", "0", "--output", str(tmp_path / "run")),
        )
    finally:
        lab.down(all_=True)
    assert done.returncode == 0, done.stderr
    (cell,) = load_results(tmp_path / "run").cells
    assert (cell.median, cell.unit, cell.bound) == (500, "queries/s", "lower")
    passed = [
        record
        for record in load_journal(tmp_path / "run").records
        if record.role == "trial" and record.result.verdict.kind == "pass"
    ]
    assert passed
    for record in passed:
        told = of(record.result)
        assert told.asked_aaaa.names == 500
        assert told.asked_a.names == 500 * (100 - aaaa) // 100
        counts = server_counts(record.hooks)
        assert counts
        assert (counts.queries, counts.looked_up) == (500, 500)
        asked = told.asked_aaaa.answered + told.asked_a.answered
        assert counts.asked in (None, asked)
    assert dutperf("verify", str(tmp_path / "run")).returncode == 0


@pytest.mark.lab
@pytest.mark.parametrize("name", LABS)
def test_a_server_answers_from_its_cache_what_it_was_asked_before(
    tmp_path: Path, name: str
) -> None:
    if shutil.which(LABS[name]) is None:
        pytest.skip(f"needs {LABS[name]}")
    try:
        done = dutperf(
            *("dns64", "--lab", name, "--max-rate", "500", "--trial-duration", "2"),
            *("--cached", "60", "--cached-names", "1000", "--aaaa", "50"),
            *("--settle-wait", "0.1", "--restabilise-wait", "0"),
            *("--output", str(tmp_path / "run")),
        )
    finally:
        lab.down(all_=True)
    assert done.returncode == 0, done.stderr
    records = load_journal(tmp_path / "run").records
    assert any(record.role == "cache" for record in records)
    passed = [
        record
        for record in records
        if record.role == "trial" and record.result.verdict.kind == "pass"
    ]
    assert passed
    for record in passed:
        told = of(record.result)
        assert (told.valid_cached, told.asked_aaaa.names) == (600, 400)
        assert told.asked_aaaa.cached + told.asked_a.cached == 0
        counts = server_counts(record.hooks)
        assert counts
        assert (counts.queries, counts.looked_up) == (1000, 400)
    assert dutperf("verify", str(tmp_path / "run")).returncode == 0


def run_on_known_answer(
    path: Path, behaviour: Mapping[str, object], **keys: object
) -> tuple[CellResult, list[DnsResult]]:
    """What `dns64` finds at a server that does so, and its trials that count."""
    campaign = {
        "name": "truth",
        "lab": {"name": "known-answer-dns64", "behaviour": behaviour},
        "procedures": [
            {
                "procedure": "dns64",
                "settle_wait_s": 0.1,
                "restabilise_wait_s": 0,
                "repeats": 1,
                **keys,
            }
        ],
    }
    file = path / "campaign.yaml"
    file.write_text(json.dumps(campaign))
    try:
        done = dutperf("run", str(file), "--output", str(path / "run"))
    finally:
        lab.down(all_=True)
    assert done.returncode in (0, 1), done.stderr
    (cell,) = load_results(path / "run").cells
    records = load_journal(path / "run").records
    return cell, [of(r.result) for r in records if r.role == "trial"]


KNOWN = {"authority": "198.19.0.2"}


@pytest.mark.parametrize("ip", [4, 6])
def test_of_an_a_the_tester_knows_each_answer(tmp_path: Path, ip: IpVersion) -> None:
    request = queries(ip)
    assert request.dns
    asked = request.dns.model_copy(update={"record": "a"})
    with running_engine(tmp_path) as engine:
        open_rings(engine)
        result = engine.measure(request.model_copy(update={"dns": asked}))
    assert result.verdict.kind == "pass", result.verdict
    told = of(result)
    assert (told.replies.valid, told.asked_a.names) == (500, 500)
    assert told.asked_aaaa.names == 0


@pytest.mark.lab
@pytest.mark.parametrize(("ip", "record"), [("4", "A"), ("6", "AAAA")])
def test_a_resolver_is_asked_for_what_it_is_to_answer(
    tmp_path: Path, ip: str, record: str
) -> None:
    if shutil.which("unbound") is None:
        pytest.skip("needs unbound")
    try:
        done = dutperf(
            *("dns", "--lab", "unbound", "--ip", ip, "--record", record),
            *("--max-rate", "500", "--trial-duration", "1", "--settle-wait", "0.1"),
            *("--restabilise-wait", "0", "--output", str(tmp_path / "run")),
        )
    finally:
        lab.down(all_=True)
    assert done.returncode == 0, done.stderr
    (cell,) = load_results(tmp_path / "run").cells
    assert (cell.median, cell.unit, cell.bound) == (500, "queries/s", "lower")
    last = load_journal(tmp_path / "run").records[-1]
    told = of(last.result)
    asked = {"A": told.asked_a.names, "AAAA": told.asked_aaaa.names}
    assert asked.pop(record) == 500
    assert list(asked.values()) == [0]


@pytest.mark.lab
def test_what_a_server_answers_wrongly_is_told_by_kind(tmp_path: Path) -> None:
    """Each count is the one that the server was told, though it fails each trial."""
    wrong = {**KNOWN, "refuse_every": 10, "wrong_every": 9, "empty_every": 45}
    keys = {"max_rate_fps": 500, "trial_duration_s": 1, "resolution": "200"}
    _, trials = run_on_known_answer(tmp_path, {"dns64": wrong}, **keys)
    told = trials[0].replies
    assert (told.refused, told.wrong_address, told.empty) == (50, 40, 10)
    assert (told.valid, told.malformed, told.truncated) == (400, 0, 0)
    assert (trials[0].asked_aaaa.names, trials[0].asked_a.names) == (450, 450)


@pytest.mark.lab
def test_a_prefix_may_be_shorter(tmp_path: Path) -> None:
    prefix = "2001:db8:122:344::/64"
    cell, trials = run_on_known_answer(
        tmp_path,
        {"dns64": {**KNOWN, "prefix": prefix}},
        prefix=prefix,
        max_rate_fps=500,
        trial_duration_s=1,
    )
    assert (cell.median, cell.verdict) == (500, "pass")
    assert trials[-1].replies.valid == 500


@pytest.mark.lab
def test_a_server_that_remembers_answers_cached_names_alone(tmp_path: Path) -> None:
    behaviour = {"dns64": {**KNOWN, "caches": True}}
    cell, trials = run_on_known_answer(
        tmp_path,
        behaviour,
        cached_percent=60,
        cached_names=1000,
        max_rate_fps=500,
        trial_duration_s=1,
    )
    assert (cell.median, cell.bound, cell.verdict) == (500, "lower", "pass")
    told = trials[-1]
    assert (told.replies.valid, told.valid_cached) == (500, 300)
    assert (told.asked_aaaa.names, told.asked_aaaa.cached) == (200, 0)


@pytest.mark.lab
def test_the_rate_of_a_server_is_found_where_it_was_set(tmp_path: Path) -> None:
    """What it asks the authority a second is what it serves, one after the other."""
    service = {"rate_fps": 8000, "queue_frames": 64, "others": True}
    cell, trials = run_on_known_answer(
        tmp_path,
        {"dns64": KNOWN, "forward": {"service": service}},
        max_rate_fps=16_000,
        trial_duration_s=2,
        resolution="2%",
    )
    assert cell.verdict != "invalid", cell.reasons
    assert cell.median is not None
    # In two seconds the queue serves its room more: 64 of 16,000.
    assert 8000 * 0.96 <= cell.median <= 8000 * 1.005
    assert trials[-1].replies.wrong_address == 0
