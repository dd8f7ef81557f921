"""``dutperf run --scheduler``: what measures is on other hosts."""

from __future__ import annotations

import secrets
from functools import partial

from dutperf.procedures.events import OnEvent
from dutperf.remote.hub import SchedulerHub
from dutperf.remote.remote_executor import RemoteExecutor
from dutperf.remote.security import RUN, Certificates, checked_address
from dutperf.results import ResultsDirectory
from dutperf.run.campaign_run import ExecutorMaker
from dutperf.run.jobs import Executor
from dutperf.run.local_executor import Surroundings


def remote(scheduler: str, certificates: Certificates) -> ExecutorMaker:
    """Makes what has the workers of ``scheduler`` measure.

    Raises:
        InputError: it is no address that may be asked.
    """
    address = checked_address(scheduler, certificates)
    return partial(_executor, address, certificates.or_own(RUN))


def _executor(
    address: str,
    certificates: Certificates,
    around: Surroundings,
    directory: ResultsDirectory,
    on_event: OnEvent,
) -> Executor:
    run = secrets.token_hex(6)
    hub = SchedulerHub(address, certificates, run)
    return RemoteExecutor(hub, around, directory, on_event, run)
