"""Dask as it is used here: quiet, and with answers to what a user can mend."""

from __future__ import annotations

import asyncio
import logging
from importlib.metadata import version
from typing import Any

from dutperf.errors import InputError, SetupError
from dutperf.remote.security import Certificates

CONNECT_S = 5.0
_LOUD = ("distributed", "asyncio", "tornado")


def load() -> str:
    """Load Dask, whose version is returned, and have it print nothing of its own.

    Raises:
        InputError: it is not installed.
    """
    try:
        import dask  # noqa: PLC0415 - an optional package, slow to load
        import distributed  # noqa: F401, PLC0415
    except ImportError as error:
        raise InputError(
            "many testbeds need the Python package distributed (Dask)",
            "pip install 'dutperf[many]'",
        ) from error
    dask.config.set({"distributed.comm.timeouts.connect": CONNECT_S})
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(_LOUD):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    return version("distributed")


def resource(testbed: str) -> str:
    """How Dask calls the testbed."""
    return f"dutperf {testbed}"


async def workers_of(address: str, certificates: Certificates) -> dict[str, Any]:
    """What the scheduler says of its workers, by their addresses.

    Raises:
        SetupError: it does not answer.
    """
    from distributed.core import rpc  # noqa: PLC0415 - see load

    how = certificates.security().get_connection_args("client")
    scheduler = rpc(address, connection_args=how, timeout=CONNECT_S)
    try:
        told = await asyncio.wait_for(scheduler.identity(), CONNECT_S)
    except (OSError, TimeoutError) as error:
        raise no_scheduler(address, certificates) from error
    finally:
        await scheduler.close_rpc()
    workers: dict[str, Any] = told["workers"]
    return workers


def no_scheduler(address: str, certificates: Certificates) -> SetupError:
    """Nothing, or something else, is at ``address``."""
    host, _, port = address.partition("://")[2].rpartition(":")
    return SetupError(
        f"no scheduler that {certificates.ca} has signed answers at {address}",
        f"start one: dutperf scheduler --host {host} --port {port}, with keys of the "
        "same CA (or of the same user); a firewall may be in the way",
    )
