"""Frames that a device cuts into pieces (RFC 2544 9.4), put together by the tester.

The known-answer device says how many pieces left and which frames lack one; the
kernel's router is another that cuts them, and tshark another that puts them together.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from livetools import (
    DEVICE,
    MS,
    NO_ODD_FRAMES,
    SHORT,
    STALLS,
    RefDut,
    Trial,
    captured_in_lab,
    codes,
    counting,
    crossed_neighbours,
    dutperf,
    measured_once,
    odd_frames,
    ref_dut,
    running_engine,
    tagged,
)
from readers import needs_tshark, tshark

from dutperf import lab
from dutperf.config.sizes import pieces_of
from dutperf.engine.client import Engine
from dutperf.lab.refdut_socket import Behaviour, ClassAccount, TrialAccount
from dutperf.protocol.base import Side, VlanTag
from dutperf.protocol.result_messages import PortReport, TrialResult
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import load_journal, load_results
from tools.calibrate.truth import Counts, by_account
from tools.calibrate.truth import by_result as counts

pytestmark = counting(DEVICE)

FRAMES = 1009
"""A prime, so that pieces are lost of all parts of frames."""
MTU = 9000
ONE_TAG = [VlanTag(id=10)]
PIECES = "ip[6:2] & 0x3fff != 0 or ip6[6] == 44"
"""For dumpcap."""
TWO_TAGS = [VlanTag(tpid=0x88A8, id=20, pcp=5), VlanTag(id=200)]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with running_engine(tmp_path_factory.mktemp("fragments"), memory_mb=1024) as it:
        yield it


@pytest.fixture(scope="module")
def device() -> Iterator[RefDut]:
    """One that does as it is told until the next test tells it something else."""
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as directory,
        ref_dut(Path(directory), None, f"--mtu={MTU}") as it,
    ):
        yield it


def request(sizes: Sequence[int], **keys: Any) -> TrialRequest:  # noqa: ANN401 - keys
    """Frames of these sizes in turn, forward, which may arrive in pieces."""
    extra = {"residual_wait_ns": 300 * MS}
    trial = Trial(fps=FRAMES * 10, ms=100, directions=["forward"], extra=extra)
    data = trial.request().model_dump()
    both = {"frame_sizes": list(sizes), "received_frame_sizes": list(sizes)}
    data["directions"][0]["streams"][0] |= {"most_pieces": 27, **both, **keys}
    return TrialRequest.model_validate(data)


def through(
    engine: Engine, device: RefDut, behaviour: Behaviour, trial: TrialRequest
) -> tuple[TrialResult, TrialAccount]:
    """One trial through newly opened ports; the result, and the device's account."""
    device.client.configure({"forward": behaviour})
    engine.open_ports(device.ports(MTU))
    engine.set_neighbours(crossed_neighbours())
    result = engine.measure(trial)
    return result, device.account()


def tags_of_a_behaviour(left: list[VlanTag], right: list[VlanTag]) -> Behaviour:
    both = {"left": left, "right": right}
    return {side: [tag.model_dump() for tag in tags] for side, tags in both.items()}


def arrived_at(result: TrialResult, side: Side = "right") -> PortReport:
    return result.ports[("left", "right").index(side)]


def foreground(account: TrialAccount) -> ClassAccount:
    return account.directions["forward"].foreground


@pytest.mark.parametrize(
    ("mtu", "sizes"),
    [
        (1500, [1519]),
        (1500, [4096]),
        (1500, [9018]),
        (80, [1518]),
        (576, [64, 594, 595, 602, 603, 1518, 9018]),
    ],
)
@pytest.mark.parametrize("reversed_", [False, True])
def test_what_is_cut_arrives_whole(
    engine: Engine, device: RefDut, mtu: int, sizes: list[int], *, reversed_: bool
) -> None:
    fragments = {"mtu": mtu, "reversed": reversed_}
    trial = request(sizes)
    result, account = through(engine, device, {"fragments": fragments}, trial)
    assert codes(result) <= STALLS
    assert counts(result) == by_account(account)
    assert counts(result)["forward"] == Counts(FRAMES, FRAMES)
    assert odd_frames(result) == NO_ODD_FRAMES
    in_turn = [pieces_of(sizes[i % len(sizes)], mtu) for i in range(FRAMES)]
    cut = [pieces for pieces in in_turn if pieces > 1]
    port, own = arrived_at(result), foreground(account).pieces
    found = (port.fragments, port.reassembled, port.incomplete)
    assert found == (sum(cut), len(cut), 0)
    assert (own.left, own.frames) == (port.fragments, port.reassembled)
    [stream] = result.directions[0].streams
    assert stream.inspected is not None
    assert stream.inspected.frames > 0
    assert stream.inspected.payload == 0


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 100])
@pytest.mark.parametrize("reversed_", [False, True])
def test_a_frame_that_lacks_a_piece_is_lost(
    engine: Engine, device: RefDut, k: int, *, reversed_: bool
) -> None:
    """Of three pieces: with every third one none is whole, with others some are."""
    fragments = {"mtu": 1500, "lose_every": k, "reversed": reversed_}
    result, account = through(engine, device, {"fragments": fragments}, request([4096]))
    pieces = 3 * FRAMES
    lacking = {i // 3 for i in range(k - 1, pieces, k)}
    assert counts(result) == by_account(account)
    forward = counts(result)["forward"]
    assert (forward.sent, forward.lost) == (FRAMES, len(lacking))
    assert foreground(account).incomplete == len(lacking)
    port = arrived_at(result)
    assert port.fragments == pieces - pieces // k
    assert port.reassembled == FRAMES - len(lacking)
    assert port.incomplete == (len(lacking) if k > 1 else 0)
    assert odd_frames(result) == NO_ODD_FRAMES


@pytest.mark.parametrize("k", [None, 3, 7, 100])
@pytest.mark.parametrize(
    ("left", "right"), [(ONE_TAG, ONE_TAG), (ONE_TAG, TWO_TAGS), ([], ONE_TAG)]
)
def test_pieces_behind_tags_are_put_together(
    engine: Engine, left: list[VlanTag], right: list[VlanTag], k: int | None
) -> None:
    """Every one has the tags; of three pieces two in a row are never lost."""
    fragments = {"mtu": 1500} | ({"lose_every": k} if k else {})
    behaviour = {
        "vlan": tags_of_a_behaviour(left, right),
        "forward": {"fragments": fragments},
    }
    plain = request([4096])
    vlan = {"vlan": left, "received_vlan": right}
    way = plain.directions[0].model_copy(update=vlan)
    with (
        tempfile.TemporaryDirectory(prefix="dutperf") as short,
        ref_dut(Path(short), behaviour, f"--mtu={MTU}") as device,
    ):
        engine.open_ports(tagged(device.ports(MTU), left, right))
        engine.set_neighbours(crossed_neighbours())
        result = engine.measure(plain.model_copy(update={"directions": [way]}))
        account = device.account()
    pieces = 3 * FRAMES
    lost = pieces // k if k else 0
    assert counts(result) == by_account(account)
    assert counts(result)["forward"] == Counts(FRAMES, FRAMES - lost, lost)
    port = arrived_at(result)
    found = (port.fragments, port.reassembled, port.incomplete)
    assert found == (pieces - lost, FRAMES - lost, lost)
    assert port.other_vlan == 0
    assert odd_frames(result) == NO_ODD_FRAMES


def test_copies_are_told_from_frames(engine: Engine, device: RefDut) -> None:
    behaviour = {
        "rules": [{"every": 5, "do": "duplicate"}],
        "fragments": {"mtu": 1500},
    }
    result, account = through(engine, device, behaviour, request([4096]))
    assert counts(result) == by_account(account)
    assert counts(result)["forward"].duplicate == FRAMES // 5


def test_damage_is_found_in_what_was_put_together(
    engine: Engine, device: RefDut
) -> None:
    behaviour = {
        "rules": [{"every": 5, "do": {"corrupt": "payload"}}],
        "fragments": {"mtu": 1500},
    }
    result, account = through(engine, device, behaviour, request([4096]))
    assert counts(result) == by_account(account)
    [stream] = result.directions[0].streams
    assert stream.damaged is not None
    assert stream.damaged.total == FRAMES // 5


def test_a_delay_is_that_of_the_last_piece(engine: Engine, device: RefDut) -> None:
    behaviour = {
        "rules": [{"do": {"delay_ns": 5 * MS}}],
        "fragments": {"mtu": 1500},
    }
    result, _ = through(engine, device, behaviour, request([4096]))
    [stream] = result.directions[0].streams
    assert stream.delay_ns.count == FRAMES
    assert (stream.delay_ns.min or 0) >= 5 * MS


def test_where_nothing_is_cut_all_is_lost(engine: Engine, device: RefDut) -> None:
    behaviour = {"fragments": {"mtu": 1500}}
    whole = request([4096], most_pieces=1, df=True)
    result, account = through(engine, device, behaviour, whole)
    assert counts(result)["forward"] == Counts(FRAMES, 0, lost=FRAMES)
    assert foreground(account).dropped_too_big == FRAMES
    assert arrived_at(result).fragments == 0


def test_without_identifications_pieces_are_counted_and_no_more(
    engine: Engine, device: RefDut
) -> None:
    behaviour = {"fragments": {"mtu": 1500}}
    plain = request([4096], most_pieces=1)
    result, _ = through(engine, device, behaviour, plain)
    port = arrived_at(result)
    assert counts(result)["forward"].received == 0
    assert (port.fragments, port.reassembled, port.incomplete) == (3 * FRAMES, 0, 0)


def test_what_a_trial_left_incomplete_is_no_part_of_the_next(
    engine: Engine, device: RefDut
) -> None:
    """The identifications of both are the same."""
    lossy: Behaviour = {"fragments": {"mtu": 1500, "lose_every": 3}}
    through(engine, device, lossy, request([4096]))
    device.client.configure({"forward": {"fragments": {"mtu": 1500}}})
    again = request([4096]).model_copy(update={"trial_id": 2})
    result = measured_once(engine, again)
    assert counts(result)["forward"] == Counts(FRAMES, FRAMES)
    assert arrived_at(result).incomplete == 0


# --- the kernel's router, and the lab of the device


@pytest.mark.lab
@needs_tshark
@pytest.mark.parametrize(
    ("device", "options", "side", "whole"),
    [
        (
            "linux-router-mtus",
            "--ip 4 --direction forward --frame-size 4096",
            "right",
            {"ip.fragment.count": "3", "udp.length": "4058"},
        ),
        pytest.param(
            *("tayga-siit", "--ip 6-4 --direction both --frame-size 1518", "left"),
            {"ipv6.fragment.count": "2", "udp.length": "1460"},
            marks=pytest.mark.skipif(
                shutil.which("tayga") is None, reason="needs Debian's tayga"
            ),
        ),
    ],
)
def test_a_devices_pieces_are_read_by_others(
    tmp_path: Path, device: str, options: str, side: Side, whole: dict[str, str]
) -> None:
    """tshark puts together as many packets as the tester, from the same wire."""
    assert lab.running() == [], "a lab is up: take it down before these tests"
    try:
        lab.up(device)
        with captured_in_lab(tmp_path, PIECES) as files:
            done = dutperf(
                *("frame-loss", "--lab", device, *options.split(), "--fragmented"),
                *("--max-rate", "1000", "--load", "100", "--repeats", "1"),
                *(*SHORT, "--plain", "--output", str(tmp_path / "run")),
            )
    finally:
        lab.down(all_=True)
    assert done.returncode in (0, 1), done.stderr
    records = load_journal(tmp_path / "run").records
    trials = [r.result for r in records if r.role != "probe"]  # not for the device
    ports = [arrived_at(trial, side) for trial in trials]
    assert {port.incomplete for port in ports} == {0}
    assert {way.lost for trial in trials for way in counts(trial).values()} == {0}
    seen = tshark(files[side], list(whole))
    read = [row for row in seen if all(row.values())]
    assert read
    assert all(row == whole for row in read)
    assert len(read) == sum(port.reassembled for port in ports)


CAMPAIGN = """\
name: pieces
lab: {{name: {device}, behaviour: {behaviour}}}
procedures:
  - procedure: frame-loss
    ip: {ip}
    direction: {direction}
    frame_size: {size}
    traffic: {{fragmented: true}}
    load_percent: [100]
    max_rate_fps: 1000
    repeats: 1
    trial_duration_s: 0.5
    settle_wait_s: 0.02
    residual_wait_s: 0.3
    restabilise_wait_s: 0.02
"""


def trials_of(path: Path, behaviour: Behaviour, **keys: object) -> list[TrialResult]:
    """A campaign's trials on the known-answer device."""
    campaign = path / "campaign.yaml"
    campaign.write_text(CAMPAIGN.format(behaviour=json.dumps(behaviour), **keys))
    output = str(path / "run")
    done = dutperf("run", str(campaign), "--plain", "--output", output)
    assert done.returncode in (0, 1), done.stderr
    records = load_journal(path / "run").records
    trials = [r.result for r in records if r.role == "trial"]
    assert trials
    return trials


@pytest.mark.lab
@pytest.mark.parametrize("k", [None, 7])
def test_pieces_of_a_lab_with_tags_are_put_together(
    tmp_path: Path, k: int | None
) -> None:
    """The campaign says the tags to the device, and so to the testbed."""
    behaviour = {
        "vlan": tags_of_a_behaviour(ONE_TAG, [VlanTag(id=20)]),
        "forward": {"fragments": {"mtu": 1500} | ({"lose_every": k} if k else {})},
    }
    keys = {"device": "known-answer-mtus", "ip": 4, "direction": "forward"}
    for trial in trials_of(tmp_path, behaviour, size=4096, **keys):
        forward, port = counts(trial)["forward"], arrived_at(trial)
        lost = 3 * forward.sent // k if k else 0
        assert (forward.lost, port.other_vlan) == (lost, 0)
        assert port.fragments == 3 * forward.sent - lost
        assert port.reassembled == forward.sent - lost


@pytest.mark.lab
@pytest.mark.parametrize("k", [None, 7])
@pytest.mark.parametrize("reversed_", [False, True])
def test_ipv6_pieces_of_a_translator_are_put_together(
    tmp_path: Path, k: int | None, *, reversed_: bool
) -> None:
    """MAP-T: what is whole again is for the customer edge that it says."""
    fragments = {"mtu": 1280, "reversed": reversed_} | ({"lose_every": k} if k else {})
    behaviour = {"reverse": {"fragments": fragments}}
    keys = {"device": "known-answer-map-t", "ip": "6-4", "direction": "reverse"}
    for trial in trials_of(tmp_path, behaviour, size=1518, **keys):
        reverse, port = counts(trial)["reverse"], arrived_at(trial, "left")
        lost = 2 * reverse.sent // k if k else 0
        assert reverse.lost == lost
        found = (port.fragments, port.reassembled, port.incomplete)
        assert found == (2 * reverse.sent - lost, reverse.sent - lost, lost)
        assert port.misdirected == 0
        [stream] = trial.directions[0].streams
        assert stream.inspected is not None
        assert stream.inspected.frames > stream.inspected.payload == 0


@pytest.mark.lab
def test_the_rates_of_a_lab_are_found(tmp_path: Path) -> None:
    """A device whose account is exact: no frame is lost, pieces are many."""
    done = dutperf(
        *("throughput", "--lab", "known-answer-mtus", "--ip", "4"),
        *("--direction", "forward", "--fragmented", "--frame-size", "9216"),
        *("--max-rate", "2000", "--repeats", "1"),
        *(*SHORT, "--plain", "--output", str(tmp_path / "run")),
    )
    assert done.returncode in (0, 1), done.stderr
    [cell] = load_results(tmp_path / "run").cells
    assert cell.median == 2000
    last = list(load_journal(tmp_path / "run").records)[-1].result
    port = arrived_at(last)
    assert (port.fragments, port.incomplete) == (7 * port.reassembled, 0)
