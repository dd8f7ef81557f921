"""``dutperf scheduler``: Dask's, which behind TLS."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from dutperf.errors import SetupError
from dutperf.remote.dask_setup import load
from dutperf.remote.security import SCHEDULER, Certificates, check_loopback

_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(
    host: str, port: int, certificates: Certificates, notify: Callable[[str], None]
) -> None:
    """Bring runs and workers together, until a signal ends it.

    Raises:
        InputError: ``host`` is not the loopback, and there are no certificates.
        SetupError: it cannot listen there.
    """
    check_loopback(host, certificates)
    certificates = certificates.or_own(SCHEDULER)
    load()
    asyncio.run(_serve(host, port, certificates, notify))


async def _serve(
    host: str, port: int, certificates: Certificates, notify: Callable[[str], None]
) -> None:
    import dask  # noqa: PLC0415 - see load
    from distributed import Scheduler  # noqa: PLC0415

    class Silent(Scheduler):
        def start_http_server(self, *_: object, **__: object) -> None:
            """Nobody needs to look in, least of all in plain text."""

    ended = asyncio.Event()
    for signum in _END:
        asyncio.get_running_loop().add_signal_handler(signum, ended.set)
    with dask.config.set({"distributed.scheduler.reuse-broadcast-comm": True}):
        try:
            scheduler = await Silent(
                host=host,
                port=port,
                protocol="tls://",
                security=certificates.security(),
                dashboard=False,
            )
        except (OSError, RuntimeError) as error:
            reason = error.__cause__ or error
            raise SetupError(
                f"cannot listen at {host}, port {port}: {reason}",
                "another scheduler may be there; --port chooses another one",
            ) from error
        notify(scheduler.address)
        await ended.wait()
        await scheduler.close()
