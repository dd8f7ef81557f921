"""A scheduler, workers and runs as programs on the loopback, at simulated testbeds."""

from __future__ import annotations

import asyncio
import contextlib
import pickle
import shutil
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from remote_hosts import (
    RATE_FPS,
    Hosts,
    Program,
    campaign_of,
    hosts,
    measured_at,
    results,
    trials,
    write_testbed,
)

from dutperf import __version__
from dutperf.api.places import planned_testbeds, surroundings
from dutperf.cli import app
from dutperf.config import load_campaign, load_testbed
from dutperf.errors import InputError, SetupError
from dutperf.remote.hub import SchedulerHub
from dutperf.remote.messages import Claim, Owner
from dutperf.remote.security import (
    Call,
    Certificates,
    Hello,
    Line,
    Reply,
    connect,
    make_keys,
)
from dutperf.remote.task import Post, Workshop
from dutperf.remote.worker import simulating
from dutperf.results import load_environment
from dutperf.run.campaign_run import run_campaign

SLOW = {"DUTPERF_TRIAL_S": "0.15"}
HALF = 8
"""Trials into the first cell, and before its end."""


def measured_here(campaign: Path, directory: Path, resume: Path | None = None) -> Path:
    """The same by the local executor."""
    asked = load_campaign(campaign)
    run_campaign(
        asked,
        planned_testbeds(asked),
        simulating(surroundings(), RATE_FPS),
        on_event=lambda _event: None,
        results_dir=None if resume else directory,
        resume=resume,
    )
    return directory


def check_same(directory: Path, local: Path, *testbeds: str) -> None:
    assert results(directory)["complete"]
    assert results(directory)["cells"] == results(local)["cells"]
    for testbed in testbeds:
        assert measured_at(directory, testbed) == measured_at(local, testbed) != []
    numbers = [trial["number"] for trial in trials(directory)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert results(directory)["trials"] == trials(directory)


def verify(there: Hosts, directory: Path) -> None:
    program = there.start("verify", directory)
    assert program.process.wait(240) == 0, program.said


def halfway(directory: Path, testbed: str) -> Callable[[], bool]:
    return lambda: len(measured_at(directory, testbed)) >= HALF


@pytest.fixture
def there(tmp_path: Path) -> Iterator[Hosts]:
    with hosts(tmp_path) as found:
        yield found


def test_a_worker_that_is_killed_in_mid_cell_costs_nothing_but_that(
    there: Hosts, tmp_path: Path
) -> None:
    campaign, out = campaign_of(tmp_path, "a", "b", "c"), tmp_path / "out"
    there.worker("a")
    there.worker("b")
    killed = there.worker("c", **SLOW)
    run = there.run(campaign, "--output", out)
    run.until(halfway(out, "c"))
    killed.kill()
    run.until_it_says("c: its worker has gone; waiting for it")
    there.worker("c")
    assert run.end() == 0, run.said
    check_same(out, measured_here(campaign, tmp_path / "local"), "a", "b", "c")
    verify(there, out)
    assert load_environment(out / "environment-c.json").parts[0].first_trial > HALF
    assert "no frame was sent" in load_environment(out / "environment-a.json").dut


def test_an_equal_testbed_measures_the_whole_cell_anew(
    there: Hosts, tmp_path: Path
) -> None:
    campaign, out = campaign_of(tmp_path, "a", "b"), tmp_path / "out"
    write_testbed(tmp_path, "spare", "equal_to: b\ncores: [1]")
    there.worker("a")
    there.worker("spare", **SLOW)
    killed = there.worker("b", **SLOW)
    run = there.run(campaign, "--output", out)
    run.until(halfway(out, "b"))
    killed.kill()
    run.until_it_says("b: measured at spare, which is equal to it")
    assert run.end() == 0, run.said
    local = measured_here(campaign, tmp_path / "local")
    assert results(out)["cells"] == results(local)["cells"]
    left = [t for t in trials(out) if t["place"] == "b" and t["stands_in"] is None]
    moved = [t for t in trials(out) if t["stands_in"] == "spare"]
    assert HALF <= len(left) < len(moved) == len(measured_at(local, "b"))
    verify(there, out)


def test_a_run_goes_on_where_it_ended(there: Hosts, tmp_path: Path) -> None:
    """By the same scheduler or on one machine, which is the same."""
    campaign, out = campaign_of(tmp_path, "a", "b"), tmp_path / "out"
    there.worker("a", "b", **SLOW)
    run = there.run(campaign, "--output", out)
    run.until(halfway(out, "a"))
    assert run.interrupt() == 130
    assert not results(out)["complete"]
    before = len(trials(out))
    here = shutil.copytree(out, tmp_path / "here")
    again = there.run("--resume", out)
    assert again.end() == 0, again.said
    assert len(trials(out)) > before >= HALF
    local = measured_here(campaign, tmp_path / "local")
    check_same(out, local, "a", "b")
    verify(there, out)
    check_same(measured_here(campaign, here, resume=here), local, "a", "b")


def test_a_scheduler_that_goes_costs_nothing_that_is_stored(
    there: Hosts, tmp_path: Path
) -> None:
    campaign, out = campaign_of(tmp_path, "a"), tmp_path / "out"
    worker = there.worker("a", **SLOW)
    run = there.run(campaign, "--output", out)
    run.until(lambda: len(trials(out)) >= HALF)
    there.scheduler.kill()
    assert run.end() == 3
    assert f"error: the scheduler at {there.address} has gone" in run.said
    assert f"dutperf run --resume {out}" in run.said
    worker.until_it_says("has gone; waiting for it")
    stored = trials(out)
    port = there.address.rpartition(":")[2]
    there.start("scheduler", "--port", port).until_it_says("tls://")
    worker.until(lambda: worker.said.count("connected") == 2)
    again = there.run("--resume", out)
    assert again.end() == 0, again.said
    assert trials(out)[: len(stored)] == stored
    local = measured_here(campaign, tmp_path / "local")
    assert results(out)["cells"] == results(local)["cells"]


def test_a_testbed_has_one_owner(there: Hosts, tmp_path: Path) -> None:
    campaign_of(tmp_path, "a", "b")
    there.worker("a")
    second = there.unconnected("b", "a")
    assert second.end() == 2
    assert "error: testbed a is owned by the worker" in second.said


def test_a_host_of_another_version_is_refused_with_both(
    there: Hosts, tmp_path: Path
) -> None:
    campaign, out = campaign_of(tmp_path, "a", "b"), tmp_path / "out"
    there.worker("a")
    there.worker("b", DUTPERF_VERSION="9.9")
    run = there.run(campaign, "--output", out)
    assert run.end() == 2
    assert f"has dutperf 9.9, this is {__version__}" in run.said
    assert "install the same dutperf on all hosts" in run.said
    assert not out.exists()


def test_where_clocks_differ_both_times_are_stored(
    there: Hosts, tmp_path: Path
) -> None:
    campaign, out = campaign_of(tmp_path, "a"), tmp_path / "out"
    there.worker("a", DUTPERF_AHEAD_S="300")
    run = there.run(campaign, "--output", out)
    assert run.end() == 0, run.said
    assert "min ahead of this machine's" in run.said
    environment = load_environment(out)
    assert environment.clock_ahead_s is not None
    assert environment.clock_ahead_s > 200
    assert all(trial["started_at"] and trial["stored_at"] for trial in trials(out))


def keys_of(folder: Path, name: str) -> list[object]:
    """The options for the keys in ``folder``."""
    ca, cert, key = (folder / name / f"{file}.pem" for file in ("ca", "cert", "key"))
    return ["--tls-ca", ca, "--tls-cert", cert, "--tls-key", key]


def test_only_who_has_a_key_of_the_same_ca_takes_part(
    there: Hosts, tmp_path: Path
) -> None:
    """As another user of the machine, who has keys, but not these."""
    campaign_of(tmp_path, "a")
    make_keys(tmp_path / "others", ["host"])
    with_others = there.unconnected("a", *keys_of(tmp_path / "others", "host"))
    assert with_others.end() == 3
    assert "no scheduler that" in with_others.said
    assert "keys of the same CA (or of the same user)" in with_others.said
    without = there.unconnected("a", XDG_CONFIG_HOME=str(tmp_path / "nobody"))
    assert without.end() == 2
    assert "error: no keys:" in without.said
    assert "dutperf worker --make-keys DIR --host NAME" in without.said


def test_keys_that_were_made_by_the_command_do(tmp_path: Path) -> None:
    campaign, out, keys = campaign_of(tmp_path, "a"), tmp_path / "out", tmp_path / "k"
    assert app.run(["worker", "--make-keys", str(keys), "--host", "a"]) == 0
    with hosts(tmp_path, *keys_of(keys, "scheduler")) as there:
        there.worker("a", *keys_of(keys, "a"))
        run = there.run(campaign, "--output", out, *keys_of(keys, "run"))
        assert run.end() == 0, run.said
    assert results(out)["complete"]


class Evil:
    """Whoever unpickles it makes a file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, ...]:
        return (Path.touch, (self.file,))


async def rogue(there: Hosts, testbed: Path, evil: bytes) -> None:
    """A worker with a key of its own, which answers the run with something evil."""
    workshop = Workshop(
        Post(), surroundings(), [load_testbed(testbed)], [], is_simulated=True
    )
    hello = Hello(name="rogue", testbeds=list(workshop.held))
    line = await connect(there.address, own_certificates(there, "worker"), hello)
    try:
        while True:
            call = await line.receive()
            assert isinstance(call, Call)
            text = evil.decode("latin-1")
            if call.what == "claim":
                text = workshop.claim(time.time()).model_dump_json()
            if call.what != "measure":
                line.send(Reply(number=call.number, text=text))
    finally:
        await line.close()


def own_certificates(there: Hosts, role: str) -> Certificates:
    folder = there.folder / "dutperf/keys" / role
    return Certificates(*(folder / f"{name}.pem" for name in ("ca", "cert", "key")))


def test_a_rogue_worker_costs_its_own_testbed_and_runs_nothing(
    there: Hosts, tmp_path: Path
) -> None:
    campaign, out = campaign_of(tmp_path, "a", "b"), tmp_path / "out"
    there.worker("a")
    evil = pickle.dumps(Evil(tmp_path / "evil"))

    async def measured() -> None:
        there_too = asyncio.create_task(rogue(there, tmp_path / "b.yaml", evil))
        run = there.run(campaign, "--output", out)
        assert await asyncio.to_thread(run.end) != 0, run.said
        assert "b: the worker on" in run.said
        assert "sent what this dutperf does not understand" in run.said
        there_too.cancel()
        await asyncio.wait({there_too})

    asyncio.run(measured())
    assert not (tmp_path / "evil").exists()
    local = measured_here(campaign, tmp_path / "local")
    assert measured_at(out, "a") == measured_at(local, "a") != []


def test_a_key_is_of_use_for_what_it_was_made_for_alone(there: Hosts) -> None:
    """Who breaks into a worker can neither measure elsewhere nor be the scheduler."""

    async def attempts() -> None:
        for role, testbeds in (("worker", []), ("run", ["a"])):
            hello = Hello(name="rogue", testbeds=testbeds)
            with pytest.raises(InputError, match=f"this is the key of a {role}"):
                await connect(there.address, own_certificates(there, role), hello)
        context = own_certificates(there, "worker").context(is_server=True)
        async with await asyncio.start_server(
            lambda *_: None, "127.0.0.1", 0, ssl=context
        ) as server:
            port = server.sockets[0].getsockname()[1]
            run = own_certificates(there, "run")
            with pytest.raises(SetupError, match="no scheduler that"):
                await connect(f"tls://127.0.0.1:{port}", run, Hello(name="run"))

    asyncio.run(attempts())


def test_a_scheduler_outlives_what_is_no_frame(there: Hosts, tmp_path: Path) -> None:
    port = int(there.address.rpartition(":")[2])
    context = own_certificates(there, "run").context(is_server=False)
    for sent in (
        b"\xff\xff\xff\xff",
        b"\0\0\0\2[]",
        b"\0\0\0\x10" + 16 * b"[",
        b"\0\0\0\4" + pickle.dumps(None),
    ):
        with (
            socket.create_connection(("127.0.0.1", port)) as plain,
            context.wrap_socket(plain) as line,
        ):
            line.settimeout(60)
            line.sendall(sent)
            assert line.recv(1000) == b""
    campaign_of(tmp_path, "a")
    there.worker("a")
    assert there.scheduler.said == f"{there.address}\n"


def listening(program: Program) -> set[str]:
    """The addresses at which the program takes connections."""
    inodes = {
        str(fd.readlink()) for fd in Path(f"/proc/{program.process.pid}/fd").iterdir()
    }
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return {
        line[1] for line in lines if line[3] == "0A" and f"socket:[{line[9]}]" in inodes
    }


def test_nothing_listens_but_where_it_was_told(there: Hosts, tmp_path: Path) -> None:
    """And all that listens wants a certificate: no HTTP, nothing in plain text."""
    campaign_of(tmp_path, "a")
    worker = there.worker("a")
    port = int(there.address.rpartition(":")[2])
    assert listening(there.scheduler) == {f"0100007F:{port:04X}"}
    assert listening(worker) == set()
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.settimeout(60)
        plain.sendall(b"GET /json/identity.json HTTP/1.0\r\n\r\n")
        with contextlib.suppress(ConnectionResetError):
            assert b"HTTP" not in plain.recv(1000)


MANY = 300


async def many_workers(
    there: Hosts, claim: Claim, meanwhile: Callable[[], None]
) -> None:
    """So many, each with a testbed of its own, say who they are, and wait."""

    async def one(number: int) -> None:
        name = f"many-{number}"
        own = claim.testbeds[0].model_copy(update={"name": name})
        text = claim.model_copy(update={"testbeds": [own]}).model_dump_json()
        hello = Hello(name=name, testbeds=[name])
        async with limit:
            lines.append(
                await connect(there.address, own_certificates(there, "worker"), hello)
            )
        line = lines[-1]
        with contextlib.suppress(OSError):
            while True:
                call = await line.receive()
                if isinstance(call, Call) and call.what == "claim":
                    line.send(Reply(number=call.number, text=text))

    lines: list[Line] = []
    limit = asyncio.Semaphore(20)
    tasks = [asyncio.create_task(one(number)) for number in range(MANY)]
    while len(lines) < MANY:
        assert not any(task.done() for task in tasks)
        await asyncio.sleep(0.02)
    await asyncio.to_thread(meanwhile)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*(line.close() for line in lines))


def test_hundreds_of_workers_meet_at_one_scheduler(
    there: Hosts, tmp_path: Path
) -> None:
    write_testbed(tmp_path, "a")
    there.worker("a").interrupt()  # its key is made
    workshop = Workshop(
        Post(), surroundings(), [load_testbed(tmp_path / "a.yaml")], [], True
    )
    hub = SchedulerHub(there.address, own_certificates(there, "run"), "run")
    found: list[Owner] = []

    def meanwhile() -> None:
        found.extend(hub.owners())
        hub.close()

    asyncio.run(many_workers(there, workshop.claim(time.time()), meanwhile))
    names = {name for owner in found if owner.claim for name in owner.claim.names}
    assert names == {f"many-{number}" for number in range(MANY)}
    assert not any(owner.trouble for owner in found)
