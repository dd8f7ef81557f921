"""siitperf-tp, siitperf-lat, siitperf-pdv: one trial by siitperf.conf, and its lines.

Ends with 0 if the trial tells something, 1 if it is invalid or the state table was not
filled, else as ``dutperf``: 2 bad input, 3 environment, 130 interrupted.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NoReturn

from dutperf.compat.command_line import (
    STATE_TABLE,
    Arguments,
    Command,
    is_invalid,
    read_arguments,
    trial_lines,
)
from dutperf.compat.conf import LETTERS, NAME, Conf, read_conf
from dutperf.compat.conversion import (
    device_watch,
    gateways,
    open_ports_of,
    with_cores,
    with_macs,
)
from dutperf.compat.requests import Gateways, Requests, neighbours, trial_requests
from dutperf.errors import DutperfError, EngineError, InputError, defect
from dutperf.procedures import cpu_contention
from dutperf.procedures.cpu_contention import DeviceWatch
from dutperf.procedures.loss_criterion import missing, own_drops
from dutperf.programs import terminate_as_interrupt
from dutperf.protocol.port_messages import ResolvedNeighbour
from dutperf.protocol.result_messages import Reason, TrialResult, Verdict
from dutperf.protocol.trial_messages import TrialRequest
from dutperf.run.engine_session import (
    EngineOpener,
    TesterEngine,
    open_ports,
    prepare_engine,
)
from dutperf.visible import visible

# Where the engine of one command writes its log.
#
#     ends well, or by a mistake in the file   the folder goes
#     the engine failed                        it stays: the error sends somebody there
#     killed                                   the next command removes it
#
# A folder is locked while its command runs; the kernel lets go of it however that ends.


_PREFIX = "siitperf-"
_KEPT = "kept"
_UNLOCKED_S = 60
"""Who has just made a folder has yet to lock it."""


@contextmanager
def log_folder() -> Iterator[Path]:
    """A folder of the block's own."""
    _remove_those_of_the_killed()
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    with _locked(folder):
        try:
            yield folder
        except EngineError:
            (folder / _KEPT).touch()
            raise
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _remove_those_of_the_killed() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # Others' folders, links, and what another command removes at this moment.
        with contextlib.suppress(OSError):
            if not _is_left(folder):
                continue
            with _locked(folder):
                shutil.rmtree(folder)


def _is_left(folder: Path) -> bool:
    about = folder.lstat()
    own = about.st_uid == os.getuid() and not folder.is_symlink()
    made_just_now = time.time() - about.st_mtime < _UNLOCKED_S
    return own and not made_just_now and not (folder / _KEPT).exists()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Raises OSError if another has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


# One trial, judged by all that is known of it.
#
# A script takes what it reads for the device's. So a trial whose losses are in part the
# tester's own says nothing: not of a search, which would repeat it, nor of a loss rate.


_REPEAT = "the trial is worth repeating"


def measured(
    engine: TesterEngine, request: TrialRequest, watch: DeviceWatch | None
) -> TrialResult:
    """Run ``request``.

    ``watch`` knows where a lab's device works; None: nobody does.
    """
    seen = cpu_contention.watched(watch, request, lambda: engine.measure(request))
    result = seen.result
    if seen.cpu and cpu_contention.explains(seen.cpu, request, result):
        result = cpu_contention.judged(result, seen.cpu, again=True, then=_REPEAT)
    return _without_own_losses(result)


def _without_own_losses(result: TrialResult) -> TrialResult:
    """Invalid if the tester dropped some of the frames that are missing."""
    if result.verdict.kind != "fail":
        return result
    reasons = [
        Reason(
            code="receiver_overflow",
            message=f"{direction.name}: of {missing(direction):,} lost or late frames "
            f"the tester itself dropped up to {own:,}",
            hint="lower the rate, or give the tester more cores or a faster driver",
        )
        for direction in result.directions
        if (own := own_drops(result, direction)) and missing(direction)
    ]
    if not reasons:
        return result
    verdict = Verdict(kind="invalid", reasons=[*reasons, *result.verdict.reasons])
    return result.model_copy(update={"verdict": verdict})


STRICT = "SIITPERF_STRICT"
SEED = "SIITPERF_SEED"

_INVALID = 1
_INTERRUPTED = 130
_SEEDS = 2**63
_SEED_FORM = re.compile(r"[0-9]{1,19}")
_TRIAL_IDS = 65535

Print = Callable[[str], None]
Measure = Callable[[TrialRequest], TrialResult]


def tp() -> NoReturn:
    """``siitperf-tp``: what was sent and received."""
    _main("tp")


def lat() -> NoReturn:
    """``siitperf-lat``: also typical and worst case latency of tagged frames."""
    _main("lat")


def pdv() -> NoReturn:
    """``siitperf-pdv``: also packet delay variation, or losses by a frame timeout."""
    _main("pdv")


def _main(command: Command) -> NoReturn:
    try:
        with terminate_as_interrupt():
            code = run(command, sys.argv[1:], os.environ, Path(NAME), _to_stdout)
    except KeyboardInterrupt:
        code = _INTERRUPTED
    sys.stdout.flush()
    sys.stderr.flush()
    # All is closed by now. Python's own end takes a tenth of a second more, and scripts
    # run these commands hundreds of times.
    os._exit(code)


def run(
    command: Command,
    words: Sequence[str],
    environment: Mapping[str, str],
    path: Path,
    show: Print,
    prepare: EngineOpener = prepare_engine,
) -> int:
    """Run one command; its errors are lines, as scripts look for them.

    Args:
        command: which of the three.
        words: its arguments.
        environment: the variables that it obeys.
        path: of siitperf.conf.
        show: prints a line.
        prepare: checks the machine and gives what starts the engine.

    Returns:
        What the program leaves with.
    """
    try:
        return _run(command, words, environment, path, show, prepare)
    except DutperfError as error:
        failure = error
    except Exception as error:  # noqa: BLE001 - no traceback reaches a user
        failure = defect(error, None)
    kind = "Input Error" if isinstance(failure, InputError) else "Error"
    show(f"{kind}: {failure.message}")
    if failure.hint:
        _notify(failure.hint)
    return failure.exit_code


def _run(
    command: Command,
    words: Sequence[str],
    environment: Mapping[str, str],
    path: Path,
    show: Print,
    prepare: EngineOpener,
) -> int:
    conf = read_conf(path)
    _notify("\n".join(conf.notices))
    only_ipv4 = {side.version for side in conf.sides.values()} == {4}
    arguments = read_arguments(
        command, words, stateful=conf.initiator is not None, only_ipv4=only_ipv4
    )
    _notify("\n".join(arguments.notices))
    strict = _switch(environment, STRICT)
    seed = _seed(environment)
    first_id = secrets.randbelow(_TRIAL_IDS) + 1
    with ExitStack() as stack:
        testbed = with_cores(
            stack.enter_context(open_ports_of(environment)), conf, _notify
        )
        conf = with_macs(conf, testbed)
        hops = gateways(testbed)
        # All that the file may have wrong is known before the engine starts.
        trials = trial_requests(conf, arguments, hops, seed=seed, first_id=first_id)
        folder = stack.enter_context(log_folder())
        start = prepare(testbed, _notify)
        engine = stack.enter_context(start(folder / "engine.log"))
        open_ports(engine, testbed, _notify)
        _meet(engine, conf, hops, background=arguments.m < arguments.n)
        show(f"Info: random values are drawn with {SEED}={seed}.")
        watch = device_watch(environment) if strict else None

        def measure(trial: TrialRequest) -> TrialResult:
            return measured(engine, trial, watch) if strict else engine.measure(trial)

        return _measure(measure, arguments, trials, show, strict=strict)


def _meet(
    engine: TesterEngine, conf: Conf, hops: Gateways, *, background: bool
) -> None:
    """Ask the next hops; who has a MAC address in the file need not answer."""
    asked = neighbours(conf, hops, background=background)
    found = engine.set_neighbours(asked).neighbours
    for notice in _foreign_macs(conf, found):
        _notify(notice)
    silent = {(each.port, each.ip) for each in found if each.mac is None}
    for side, ip in silent:
        if conf.sides[side].device_mac is None:
            letter = "L" if side == "left" else "R"
            raise conf.error(
                f"MAC-{letter}-DUT",
                f"is missing, and {ip} on the {side} does not answer ARP or "
                "neighbour discovery",
            )
    if silent:
        heard = {key: ip for key, ip in hops.items() if (key[0], ip) not in silent}
        engine.set_neighbours(neighbours(conf, heard, background=background))


def _foreign_macs(conf: Conf, found: list[ResolvedNeighbour]) -> Iterator[str]:
    """MAC addresses of the file that are not those of the device that answered."""
    for name, side in conf.sides.items():
        key = f"MAC-{LETTERS[name]}-DUT"
        macs = {each.mac for each in found if each.port == name and each.mac}
        if key in conf.given and macs and side.device_mac not in macs | {None}:
            yield conf.told(
                key,
                f"is {side.device_mac}, and the device on the {name} has "
                f"{', '.join(sorted(macs))}: it may not take frames to another MAC "
                "address; remove the key to ask for it",
            )


def _measure(
    measure: Measure,
    arguments: Arguments,
    trials: Requests,
    show: Print,
    *,
    strict: bool,
) -> int:
    if trials.phase1:
        code = _open_connections(measure, arguments, trials.phase1, show, strict=strict)
        if code:
            return code
    if trials.main is None:
        show("Info: Test finished.")
        return 0
    result = measure(trials.main)
    for line in trial_lines(arguments, result, strict=strict):
        show(line)
    show("Info: Test finished.")
    return _INVALID if is_invalid(arguments, result, strict=strict) else 0


def _open_connections(
    measure: Measure,
    arguments: Arguments,
    phase1: TrialRequest,
    show: Print,
    *,
    strict: bool,
) -> int:
    result = measure(phase1)
    for line in trial_lines(arguments, result, strict=strict, phase1=True):
        show(line)
    missing = _missing(result)
    if missing:
        show(f"{STATE_TABLE}: {missing}")
        return _INVALID
    invalid = is_invalid(arguments, result, strict=strict, phase1=True)
    return _INVALID if invalid else 0


def _missing(result: TrialResult) -> str:
    table = result.table
    if table is None or table.filled == 0:
        return "nothing was received in phase 1"
    if table.filled < table.entries:
        return f"{table.filled} of {table.entries} entries are filled"
    return ""


def _switch(environment: Mapping[str, str], name: str) -> bool:
    value = environment.get(name, "1")
    if value not in ("0", "1"):
        raise InputError(f"{name} must be 0 or 1, not {value[:40]!r}")
    return value == "1"


def _seed(environment: Mapping[str, str]) -> int:
    """As given, else another one for each trial, as siitperf has."""
    given = environment.get(SEED)
    if given is None:
        return secrets.randbelow(_SEEDS)
    if not _SEED_FORM.fullmatch(given) or int(given) >= _SEEDS:
        raise InputError(f"{SEED} must be a number below 2^63, not {given[:40]!r}")
    return int(given)


def _to_stdout(line: str) -> None:
    try:
        print(visible(line), flush=True)  # noqa: T201 - scripts read it
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _notify(text: str) -> None:
    for line in text.splitlines():
        print(f"notice: {visible(line)}", file=sys.stderr)  # noqa: T201
