"""The first frames of a trial as a file, and how long all trials would take."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from dutperf.config import Campaign, Testbed, expand, notices
from dutperf.config.side import RingPort, SideConfig, alternately
from dutperf.config.sizes import mean_frame_size
from dutperf.engine.process import start_engine
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.loads import ends_when_lossless
from dutperf.model.rate_specs import BackToBackSpec, FrameLossSpec, RateSearchKeys
from dutperf.model.specs import (
    CapacitySearchKeys,
    ConnectionRateSpec,
    IdleTimeoutSpec,
    NatBehaviourSpec,
    NatLogSpec,
    ObservedKeys,
    PowerSpec,
    SoakSpec,
    TcpUseKeys,
    TeardownRateSpec,
)
from dutperf.model.stateful_keys import Stateful
from dutperf.procedures.first_frames import first_frames_s, is_tried_first
from dutperf.procedures.max_rate import MaxRate, is_probed
from dutperf.procedures.searching import check_range, strategy_of, waits_s
from dutperf.procedures.stateful.connection_rate import numbers_beyond
from dutperf.procedures.stateful.establishing import stateful_of
from dutperf.procedures.stateful.table_capacity import search_of
from dutperf.procedures.tester_limit import TRIAL_S, TRIALS
from dutperf.protocol.base import Side, line_rate_fps
from dutperf.protocol.methods import PreviewParams
from dutperf.protocol.port_messages import PortSpec
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.results import Environment, TrialRecord
from dutperf.run.engine_session import (
    EngineOpener,
    Notify,
    TesterEngine,
    open_ports,
    resolve_neighbours,
)
from dutperf.run.trial_request import trial_request
from dutperf.search import Outcome, Resolution
from dutperf.search.binary import ignore_capacity_step
from dutperf.simulation.simulated_tester import SimulatedTester, SlopeDevice
from dutperf.stats import LOOKS

_MAX_DURATION_S = 2**47 // 10**9
_TRIAL_ID = 1


@dataclass(frozen=True)
class Preview:
    """Frames of ``cell``'s first trial; ``frames`` of all directions together."""

    cell: Cell
    frames: int
    path: Path


def preview_frames(
    campaign: Campaign,
    testbed: Testbed,
    open_engine: EngineOpener,
    *,
    rate_fps: int,
    count: int,
    path: Path,
    notify: Notify,
) -> Preview:
    """Write the first ``count`` frames of each direction of the first cell to a pcap.

    The ports are opened and the next hops are asked for, so the MAC addresses are
    those of a trial; of ``unopened`` ports they are stand-ins.

    Args:
        campaign: its first cell counts.
        testbed: where.
        open_engine: see ``session.EngineOpener``.
        rate_fps: intended load, frames per second and direction: it sets the stamps.
        count: frames of each direction.
        path: the pcap file; overwritten.
        notify: is told what the user should know.

    Raises:
        InputError: found before the engine was started.
        SetupError, EngineError: machine, device or engine are not as needed.
    """
    cells = expand(campaign, testbed)
    cell = cells[0]
    _check_place(path)
    for text in notices(testbed, cells):
        notify(text)
    start = open_engine(testbed, notify)
    duration_s = max(cell.spec.trial_duration_s, count / rate_fps)
    trial = trial_request(
        testbed, cell, rate_fps, _TRIAL_ID, min(duration_s, _MAX_DURATION_S)
    )
    params = PreviewParams(trial=trial, count=count, path=str(path.absolute()))
    logs = Path(tempfile.mkdtemp(prefix="dutperf-frames-"))
    with start(logs / "engine.log") as engine:
        open_ports(engine, testbed, notify)
        resolve_neighbours(engine, testbed, [cell], notify)
        frames = engine.preview(params).frames
    shutil.rmtree(logs)  # an error leaves the log: its message names it
    return Preview(cell, frames, path)


def unopened(testbed: Testbed) -> tuple[Testbed, list[str]]:
    """``testbed`` on ports inside the engine, which needs nothing of the machine.

    Returns:
        It, and which MAC addresses are stand-ins, in words: those of ports and next
        hops that are not given.
    """
    made_up = ["the ports' own MAC addresses"]
    changes: dict[Side, list[dict[str, Any]]] = {}
    for each in testbed.tester_ports:
        last = alternately(each.side, each.number)
        mac = each.config.next_hop_mac or f"02:00:00:00:01:{last:02x}"
        if each.config.next_hop_mac is None:
            made_up.append(f"that of the next hop on the {each.label}, {mac}")
        port = RingPort(ring=True, mtu=each.config.port.mtu)
        changes.setdefault(each.side, []).append({"port": port, "next_hop_mac": mac})
    sides = {name: _with(side, changes[name]) for name, side in testbed.sides.items()}
    keys = {"namespace": None, "hugepages": "off"}
    return testbed.model_copy(update=sides | keys), made_up


def _with(side: SideConfig, changes: list[dict[str, Any]]) -> SideConfig:
    """``side`` with other keys of each of its ports."""
    first, *others = changes
    more = zip(side.more_ports, others, strict=True)
    ports = [port.model_copy(update=change) for port, change in more]
    return side.model_copy(update={**first, "more_ports": ports})


def _check_place(path: Path) -> None:
    if not path.absolute().parent.is_dir():
        raise InputError(
            f"--pcap {path}: there is no directory {path.parent}", "make it first"
        )
    if path.is_dir():
        raise InputError(f"--pcap {path} is a directory", "name a file in it")


# The first frames of each cell's trials as pcap files, made from what is stored.
#
# The journal has every request and the MAC addresses that were resolved for it, so the
# engine that writes the frames needs neither the device nor the ports: ports that go
# nowhere do.


FRAMES = 10
"""Of each direction."""
_MEMORY_MB = 256
_SENDER: Mapping[str, Side] = {"forward": "left", "reverse": "right"}

StartEngine = Callable[[Path], AbstractContextManager[TesterEngine]]


def idle_engine(log: Path) -> AbstractContextManager[TesterEngine]:
    """An engine for ports that go nowhere.

    Raises:
        InputError, SetupError: it cannot be started here.
    """
    return start_engine(
        worker_cpus=[0],
        main_cpu=0,
        memory_mb=_MEMORY_MB,
        hugepages=False,
        namespace=None,
        log_path=log,
    )


def recorded_frames(
    records: Sequence[TrialRecord],
    environments: Sequence[Environment],
    start: StartEngine = idle_engine,
) -> dict[str, bytes]:
    """``frames/CELL.pcap`` of each cell, with ten frames of each direction.

    Of trials on connections those of phase 1, as answers depend on what was learned.

    Raises:
        InputError, SetupError, EngineError: no engine can be started here.
    """
    first: dict[str, TrialRecord] = {}
    for record in records:
        if record.role in ("trial", "phase1") and not _answers(record.request):
            first.setdefault(record.cell, record)
    macs = {environment.place: _macs(environment) for environment in environments}
    found: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory(prefix="dutperf-frames-") as name:
        folder = Path(name)
        with start(folder / "engine.log") as engine:
            engine.open_ports(_idle_ports(environments))
            for number, (cell, record) in enumerate(first.items()):
                path = folder / f"{number}.pcap"
                own = macs.get(record.place) or macs.get(None, {})
                trial = _addressed(record, own)
                params = PreviewParams(trial=trial, count=FRAMES, path=str(path))
                engine.preview(params)
                found[f"frames/{cell}.pcap"] = path.read_bytes()
    return found


def _idle_ports(environments: Sequence[Environment]) -> list[PortSpec]:
    """As many as any of the testbeds has."""
    most = max((p.number for each in environments for p in each.ports), default=0)
    return [
        PortSpec(name=side, number=number, driver="null")
        for side in _SIDES
        for number in range(most + 1)
    ]


_SIDES: tuple[Side, Side] = ("left", "right")


def _answers(request: TrialRequest) -> bool:
    """Whether its frames are of the table, which is gone."""
    streams = [s for direction in request.directions for s in direction.streams]
    return any(stream.is_learned for stream in streams)


_Port = tuple[Side, int]


def _macs(environment: Environment) -> dict[_Port, str]:
    return {(port.name, port.number): port.mac for port in environment.ports}


def _addressed(record: TrialRecord, own: Mapping[_Port, str]) -> TrialRequest:
    """The request with the MAC addresses that its trial had."""
    data = record.request.model_dump()
    hops = {(n.port, n.number, n.ip): n.mac for n in record.result.neighbours}
    for direction in data["directions"]:
        side = _SENDER[direction["name"]]
        for stream in direction["streams"]:
            for path in (stream, *stream.get("more_paths", [])):
                number = path.get("sent_by", 0)
                hop = hops.get((side, number, path["next_hop"]))
                path["src_mac"] = path["src_mac"] or own.get((side, number))
                path["dst_mac"] = path["dst_mac"] or hop
    # A preview has no table to learn into.
    return TrialRequest.model_validate(data | {"learn": None, "not_before_ns": 0})


# How many trials a campaign takes and how long: pure, nothing is opened or sent.
#
# What a search needs depends on the device, which is not known yet. So the search
# itself runs, on a simulated device that does half of the maximum rate, give or take
# half a percent, on links of 10 Gbit/s where no maximum was set, and without a trial
# that has to be repeated. A slower device takes a few trials more, a noisier one many.
#
# How often ``repeats: auto`` repeats depends on nothing but the noise: it is told as a
# range, from its first look to its last one.
#
# What begins a cell is in it: the first frames, and a second to find what virtual ports
# can offer.


ASSUMED_LINK_MBPS = 10_000
ASSUMED_SHARE_PERCENT = 50
ASSUMED_NOISE = 0.005
_SHARES_PERCENT = (42, 45, 48, 50, 53, 56, 59)
ASSUMPTION = (
    f"estimate, assuming {ASSUMED_SHARE_PERCENT} % of the maximum rate and no repeated "
    "trials"
)


@dataclass(frozen=True)
class CellEstimate:
    """What one cell is expected to take, all waits included.

    ``most`` is above that where it depends on the device's noise: ``repeats: auto``.
    """

    cell: Cell
    repeats: int
    trials: int
    duration_s: float
    most: CellEstimate | None = None


def estimate(
    cells: Sequence[Cell], virtual: Collection[str] = ()
) -> list[CellEstimate]:
    """One estimate for each of ``cells``, in their order.

    Args:
        cells: what is to be measured.
        virtual: names of the testbeds whose ports are known to be virtual.

    Raises:
        InputError: see ``searching.check_range``.
    """
    return [_begun(_estimate(cell), virtual=cell.testbed in virtual) for cell in cells]


def _begun(found: CellEstimate, *, virtual: bool) -> CellEstimate:
    """With what comes before the procedure's own trials."""
    cell, trials, duration_s = found.cell, 0, 0.0
    if is_tried_first(cell):
        trials += 1
        duration_s += first_frames_s(_limit_fps(cell)) + waits_s(cell)
    if virtual and is_probed(cell):
        trials += TRIALS
        duration_s += TRIALS * TRIAL_S
    return replace(
        found,
        trials=found.trials + trials,
        duration_s=found.duration_s + duration_s,
        most=_begun(found.most, virtual=virtual) if found.most else None,
    )


def _estimate(cell: Cell) -> CellEstimate:
    match cell.spec:
        case CapacitySearchKeys() as spec:
            return _of_capacity(cell, spec)
        case TeardownRateSpec() as spec:
            return _of_teardown(cell, spec)
        case IdleTimeoutSpec() as spec:
            return _of_waiting(cell, spec)
        case ObservedKeys() as spec:
            return _of_observed(cell, spec)
        case NatLogSpec() as spec:
            return _of_log(cell, spec)
        case ConnectionRateSpec() | TcpUseKeys() as spec:
            return _of_connections(cell, spec)
    if cell.phase2:
        return _with_phase1(cell, _of_streams(_with_assumed_rate(cell, cell.phase2)))
    return _of_streams(cell)


def _of_streams(cell: Cell) -> CellEstimate:
    idle_s = 0.0
    match cell.spec:
        case RateSearchKeys() as spec:
            return _of_throughput(cell, spec)
        case BackToBackSpec() as spec:
            return _of_bursts(cell, spec)
        case FrameLossSpec() as spec:
            each = _loads_until_lossless(spec.load_percent)
        case PowerSpec() as spec:
            each = len(spec.load_percent)
            idle_s = cell.repeats * spec.trial_duration_s
        case SoakSpec() as spec:
            gaps_s = spec.settle_wait_s + spec.residual_wait_s
            sending_s = spec.trials * (spec.trial_duration_s + gaps_s)
            return CellEstimate(
                cell, 1, spec.trials, sending_s + spec.restabilise_wait_s
            )
        case _:
            each = 1
    trials = cell.repeats * each
    duration_s = idle_s + trials * (cell.spec.trial_duration_s + waits_s(cell))
    return CellEstimate(cell, cell.repeats, trials, duration_s)


def _with_phase1(cell: Cell, found: CellEstimate) -> CellEstimate:
    """Two trials for one; the waits have the time of phase 1 in them."""
    most = _with_phase1(cell, found.most) if found.most else None
    waits = found.trials * _until_forgotten_s(stateful_of(cell))
    return replace(
        found,
        cell=cell,
        trials=2 * found.trials,
        duration_s=found.duration_s + waits,
        most=most,
    )


def _until_forgotten_s(stateful: Stateful, *, always: bool = False) -> float:
    """Before a test, where no hook empties the table, and it has no room for two."""
    if stateful.is_emptied or stateful.dut_timeout_s is None:
        return 0.0
    has_room = 2 * stateful.connections <= (stateful.table_size or 0)
    return 0.0 if has_room and not always else stateful.forgotten_after_s


def _with_assumed_rate(cell: Cell, stateful: Stateful) -> Cell:
    """Connections are opened at a share of half the maximum rate, if of a found one."""
    if stateful.rate_reference is None:
        return cell
    limit_fps = _limit_fps(cell) * ASSUMED_SHARE_PERCENT / 100
    rate_fps = max(1, stateful.rate_reference.of(limit_fps))
    ready = stateful.model_copy(update={"phase1_rate": rate_fps})
    return cell.model_copy(update={"stateful": ready})


def _of_throughput(cell: Cell, spec: RateSearchKeys) -> CellEstimate:
    """By running the search on a simulated device.

    Of few repeats on several devices, for a mean: a bisection whose first step is just
    what the device does sees it lose frames at all others, which ends trials early, or
    at none. Cells that are alike take the same.
    """
    check_range(cell, MaxRate(_limit_fps(cell), "set"))
    shares = _SHARES_PERCENT if cell.repeats < LOOKS[0] else (ASSUMED_SHARE_PERCENT,)
    draws = [_simulated(cell, spec, percent) for percent in shares]
    first, *others = draws
    if not others:
        return first
    return replace(
        first,
        trials=round(mean(each.trials for each in draws)),
        duration_s=mean(each.duration_s for each in draws),
    )


def _simulated(cell: Cell, spec: RateSearchKeys, percent: int) -> CellEstimate:
    limit_fps = _limit_fps(cell)
    capacity_fps = limit_fps * percent / 100
    tester = SimulatedTester(stops_at_loss=spec.early_stop, waits_s=waits_s(cell))
    bench = tester.bench(SlopeDevice(capacity_fps, ASSUMED_NOISE), percent)
    search = strategy_of(cell, limit_fps)
    after: list[CellEstimate] = []
    while len(after) < cell.repeats:
        found = search(bench)
        after.append(CellEstimate(cell, len(after) + 1, bench.trials, bench.elapsed_s))
        del after[len(after) - found.withdrawn :]
    if not cell.auto or cell.repeats == LOOKS[0]:
        return after[-1]
    return replace(after[LOOKS[0] - 1], most=after[-1])


def _of_bursts(cell: Cell, spec: BackToBackSpec) -> CellEstimate:
    """Each a bisection, of which about every other burst loses frames."""
    longest = _limit_fps(cell) * spec.longest_burst_s
    step = Resolution.parse(spec.step)
    share = float(step.value) / (1 if step.relative else longest)
    halvings = math.ceil(math.log2(1 / min(0.5, share)))
    trials = cell.repeats * (1 + halvings * (1 + spec.verify_trials) // 2)
    sending_s = cell.repeats * 2 * spec.longest_burst_s
    return CellEstimate(cell, cell.repeats, trials, trials * waits_s(cell) + sending_s)


def _of_connections(cell: Cell, spec: ConnectionRateSpec | TcpUseKeys) -> CellEstimate:
    """Every test opens all connections, at about half of the maximum rate."""
    stateful, limit = stateful_of(cell), _limit_fps(cell)
    resolution = Resolution.parse(spec.resolution)
    share = float(resolution.value) / (1 if resolution.relative else limit)
    tests = cell.repeats * (2 + math.ceil(math.log2(1 / min(0.5, share))))
    rate = max(1, limit * ASSUMED_SHARE_PERCENT // 100)
    each_s = stateful.lifetime_s(rate) + waits_s(cell) + _until_forgotten_s(stateful)
    duration_s = tests * each_s
    phases = 1 if stateful.rates_per_s(rate)[1] is None else 2
    return CellEstimate(cell, cell.repeats, tests * phases, duration_s)


def _of_teardown(cell: Cell, spec: TeardownRateSpec) -> CellEstimate:
    """One phase 1 each; what deleting takes is what nobody knows yet."""
    stateful = stateful_of(cell)
    lives_s = stateful.lifetime_s(spec.rate_fps)
    if stateful.expiry:
        lives_s += (stateful.dut_timeout_s or 0) + stateful.connections / spec.rate_fps
    each_s = lives_s + waits_s(cell)
    return CellEstimate(cell, cell.repeats, cell.repeats, cell.repeats * each_s)


def _of_waiting(cell: Cell, spec: IdleTimeoutSpec) -> CellEstimate:
    """Opened, and used one after the other."""
    stateful = stateful_of(cell)
    each_s = stateful.lifetime_s(spec.uses_per_s(stateful.connections)) + waits_s(cell)
    return CellEstimate(cell, cell.repeats, 2 * cell.repeats, cell.repeats * each_s)


def _of_observed(cell: Cell, spec: ObservedKeys) -> CellEstimate:
    """Opened, and answered; of its behaviour, from other ends, too."""
    stateful = stateful_of(cell)
    trials = 4 if isinstance(spec, NatBehaviourSpec) else 2
    each_s = stateful.connections / spec.stateful.phase1_rate
    duration_s = trials * (each_s + stateful.timeout_ms / 1000) + waits_s(cell)
    return CellEstimate(cell, 1, trials, duration_s)


def _of_log(cell: Cell, spec: NatLogSpec) -> CellEstimate:
    """Opened; then the log is waited for, twice."""
    stateful = stateful_of(cell)
    each_s = stateful.connections / spec.stateful.phase1_rate + waits_s(cell)
    each_s += stateful.timeout_ms / 1000 + 2 * spec.log_within_s
    return CellEstimate(cell, 1, spec.tests, spec.tests * each_s)


def _of_capacity(cell: Cell, spec: CapacitySearchKeys) -> CellEstimate:
    """By running the search on a simulated device, whose table is half as large.

    Both phases of each test count (RFC 9693 4.9), and those that show who survives.
    """
    stateful = stateful_of(cell)
    size = max(spec.stateful.first, stateful.connections // 2)
    can_per_s = max(1, _limit_fps(cell) * ASSUMED_SHARE_PERCENT // 100)
    tests: list[float] = []

    def establish(connections: int, rate_per_s: int) -> Outcome:
        missing = 1 - min(1, size / connections, can_per_s / rate_per_s)
        some = stateful.with_connections(connections)
        forgotten_s = _until_forgotten_s(stateful, always=True)
        tests.append(some.lifetime_s(rate_per_s) + waits_s(cell) + forgotten_s)
        return Outcome("fail" if missing else "pass", loss_ratio=missing)

    found = search_of(cell, establish, _limit_fps(cell), ignore_capacity_step)
    for number in numbers_beyond(size, stateful.connections):
        establish(number, max(1, (found.rate_per_s or 1) // 2))
    return CellEstimate(
        cell,
        cell.repeats,
        2 * len(tests) * cell.repeats,
        sum(tests) * cell.repeats,
    )


def _limit_fps(cell: Cell) -> int:
    if cell.spec.max_rate_fps is not None:
        return cell.spec.max_rate_fps
    sizes = (mean_frame_size(cell, "left"), mean_frame_size(cell, "right"))
    return min(line_rate_fps(ASSUMED_LINK_MBPS, size) for size in sizes)


def _loads_until_lossless(falling: Sequence[float]) -> int:
    """RFC 2544 26.3: its own series of loads ends at the second lossless one."""
    if not ends_when_lossless(falling):
        return len(falling)
    lossy = [load for load in falling if load > ASSUMED_SHARE_PERCENT]
    return min(len(falling), len(lossy) + 2)
