"""Starting engines that are small scripts: no root, no DPDK."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from fake_cpus import put_on

from dutperf.engine import process
from dutperf.engine.client import Engine
from dutperf.errors import EngineError, InputError, SetupError

ENGINE = """
import json, os, signal, socket, sys
control = socket.socket(fileno=int(sys.argv[sys.argv.index("--control-fd") + 1]))
print("arguments", *sys.argv[1:], flush=True)
hello = {"engine_version": "1", "dpdk_version": "2", "protocol_version": 2,
         "tsc_hz": 1, "worker_cpus": [0], "main_cpu": 0, "hugepages": False,
         "memory_mb": 1, "drivers": [], "clock_offset_ns": 0}
for line in control.makefile():
    request = json.loads(line)
    if request["method"] == "ports.status":
        os.kill(os.getpid(), signal.SIGKILL)
    answer = hello if request["method"] == "engine.hello" else {}
    reply = {"jsonrpc": "2.0", "id": request["id"], "result": answer}
    control.sendall(json.dumps(reply).encode() + b"\\n")
    if request["method"] == "engine.shutdown":
        print("shut down", flush=True)
        break
"""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "engine.log"


def command(source: str, tmp_path: Path) -> list[str]:
    script = tmp_path / "engine.py"
    script.write_text(source)
    return [sys.executable, str(script)]


def test_an_engine_is_started_asked_and_shut_down(tmp_path: Path, log: Path) -> None:
    with process.run_engine(command(ENGINE, tmp_path), log) as engine:
        assert engine.hello().engine_version == "1"
    assert "shut down" in log.read_text()


def test_an_engine_that_ignores_everything_is_killed(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_END_TIMEOUT_S", 0.1)
    pid_file = tmp_path / "pid"
    deaf = (
        "import os, pathlib, signal\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"pathlib.Path({str(pid_file)!r}).write_text(str(os.getpid()))\n"
        + ENGINE.replace("        break", "        signal.pause()")
    )
    with process.run_engine(command(deaf, tmp_path), log):
        pid = int(pid_file.read_text())
        assert Path(f"/proc/{pid}").exists()
    assert not Path(f"/proc/{pid}").exists()


def test_the_death_of_an_engine_names_its_signal(tmp_path: Path, log: Path) -> None:
    with (
        process.run_engine(command(ENGINE, tmp_path), log) as engine,
        pytest.raises(EngineError, match=r"the engine ended \(signal 9\)"),
    ):
        engine.port_status()


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (3, 4, "memory ran out, and the kernel killed it"),
        (3, 3, "somebody killed it; by the kernel's record memory was not short"),
        (None, None, "somebody killed it, or the kernel did for lack of memory"),
    ],
)
def test_a_killed_engine_is_said_to_lack_memory_if_the_kernel_says_so(
    tmp_path: Path,
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
    before: int | None,
    after: int | None,
    told: str,
) -> None:
    vmstat = tmp_path / "vmstat"
    record = "nr_free_pages 5\n" + (f"oom_kill {before}\n" if before else "")
    vmstat.write_text(record)
    monkeypatch.setattr(process, "_VMSTAT", vmstat)
    with process.run_engine(command(ENGINE, tmp_path), log) as engine:
        vmstat.write_text(record.replace(f"oom_kill {before}", f"oom_kill {after}"))
        with pytest.raises(EngineError) as caught:
            engine.port_status()
    assert told in caught.value.hint


def test_an_engine_that_cannot_start_says_why(tmp_path: Path, log: Path) -> None:
    refusing = ENGINE.replace(
        '"result": answer',
        '"error": {"code": 1, "message": '
        '"no memory", "data": {"hint": "lower memory_mb"}}',
    )
    with (
        pytest.raises(EngineError, match="no memory") as caught,
        process.run_engine(command(refusing, tmp_path), log),
    ):
        pass
    assert (caught.value.rpc_code, caught.value.hint) == (1, "lower memory_mb")


def test_a_missing_shared_library_names_the_package(tmp_path: Path, log: Path) -> None:
    loader = (
        "import sys\nprint('dutperf-engine: error while loading shared libraries: "
        "librte_eal.so.23: cannot open shared object file', file=sys.stderr)\n"
        "sys.exit(127)\n"
    )
    with (
        pytest.raises(SetupError, match=r"librte_eal\.so\.23") as caught,
        process.run_engine(command(loader, tmp_path), log),
    ):
        pass
    assert "libdpdk-dev" in caught.value.hint


def test_a_log_that_is_a_link_or_fifo_is_not_written(tmp_path: Path, log: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    for is_link in (True, False):
        log.unlink(missing_ok=True)
        if is_link:
            log.symlink_to(tmp_path / "mine")
        else:
            os.mkfifo(log)
        with (
            pytest.raises(SetupError, match=f"cannot write {log}"),
            process.run_engine(command(ENGINE, tmp_path), log),
        ):
            pass
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_program_that_is_not_there_is_a_setup_error(log: Path) -> None:
    with (
        pytest.raises(SetupError, match="cannot start /nowhere/engine"),
        process.run_engine(["/nowhere/engine"], log),
    ):
        pass


def test_start_engine_passes_cpus_memory_and_pages(
    tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "dutperf-engine"
    program.write_text(f"#!{sys.executable}\n{ENGINE}")
    program.chmod(0o755)
    monkeypatch.setenv("DUTPERF_ENGINE", str(program))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    put_on(monkeypatch, {0, 1, 2})
    with process.start_engine(
        worker_cpus=[0, 2],
        main_cpu=1,
        memory_mb=256,
        hugepages=False,
        namespace=None,
        log_path=log,
    ) as engine:
        assert isinstance(engine, Engine)
    assert (
        "--main-cpu 1 --worker-cpus 0,2 --memory-mb 256 --hugepages off --control-fd"
        in log.read_text()
    )


@pytest.mark.parametrize(
    ("workers", "main", "key"), [([0, 99], 0, "cores"), ([0], 99, "main_core")]
)
def test_a_cpu_that_does_not_exist_names_the_testbed_key(
    monkeypatch: pytest.MonkeyPatch, workers: list[int], main: int, key: str
) -> None:
    put_on(monkeypatch, {0}, isolated={1})
    process.check_cpus([1], 0)
    with pytest.raises(InputError, match=f"testbed key {key}: CPU 99") as caught:
        process.check_cpus(workers, main)
    assert "0, 1" in caught.value.hint


def test_without_root_the_hint_is_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(SetupError, match="root") as caught:
        process.check_root()
    assert "sudo" in caught.value.hint


def test_an_unknown_namespace_is_named() -> None:
    with pytest.raises(SetupError, match="namespace no-such-namespace"):
        process.check_namespace("no-such-namespace")


@pytest.mark.parametrize(
    ("available", "workers", "main"), [({0, 1}, [0], 1), ({3}, [3], 3)]
)
def test_the_main_thread_takes_a_spare_cpu_if_there_is_one(
    monkeypatch: pytest.MonkeyPatch, available: set[int], workers: list[int], main: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: available)
    assert process.choose_main_cpu(workers) == main


def meminfo(tmp_path: Path, free_pages: int) -> Path:
    path = tmp_path / "meminfo"
    path.write_text(
        f"MemTotal: 8000 kB\nHugePages_Free: {free_pages}\nHugepagesize: 2048 kB\n"
    )
    return path


@pytest.mark.parametrize(
    ("setting", "free_pages", "on", "told"),
    [
        ("auto", 256, True, ""),
        ("auto", 255, False, "no huge pages"),
        ("off", 256, False, ""),
    ],
)
def test_huge_pages_are_used_when_there_are_enough(
    tmp_path: Path, setting: str, free_pages: int, on: bool, told: str
) -> None:
    used, notice = process.choose_hugepages(
        "auto" if setting == "auto" else "off",
        memory_mb=512,
        pci=False,
        meminfo=meminfo(tmp_path, free_pages),
    )
    assert used is on
    assert told in notice
    assert bool(told) == bool(notice)


@pytest.mark.parametrize("setting", ["auto", "off"])
def test_pci_ports_do_not_run_without_huge_pages(tmp_path: Path, setting: str) -> None:
    with pytest.raises(SetupError, match="PCI ports need huge pages") as caught:
        process.choose_hugepages(
            "auto" if setting == "auto" else "off",
            memory_mb=512,
            pci=True,
            meminfo=meminfo(tmp_path, 0),
        )
    assert "nr_hugepages" in caught.value.hint


def test_more_memory_than_there_is_is_refused_before_anything_starts(
    tmp_path: Path,
) -> None:
    place = meminfo(tmp_path, 0)
    place.write_text(place.read_text() + "MemAvailable:    2097152 kB\n")
    with pytest.raises(SetupError, match=r"memory_mb: 4,096 MiB .* 2,048 MiB") as found:
        process.choose_hugepages("auto", meminfo=place, memory_mb=4096, pci=False)
    assert "lower memory_mb" in found.value.hint
    used, _ = process.choose_hugepages("auto", meminfo=place, memory_mb=512, pci=False)
    assert not used


@pytest.mark.parametrize(
    ("total", "free", "size_kb", "needed_mb", "pages"),
    [
        (0, 0, 2048, 512, 256),
        (0, 0, 0, 512, 256),  # a kernel that does not say
        (100, 40, 2048, 512, 60 + 256),  # what others have stays theirs
        (0, 0, 2048, 511, 256),
        (2, 1, 1_048_576, 512, 2),
    ],
)
def test_the_command_for_huge_pages_leaves_others_theirs(
    total: int, free: int, size_kb: int, needed_mb: int, pages: int
) -> None:
    memory = {
        "HugePages_Total": total,
        "HugePages_Free": free,
        "Hugepagesize": size_kb,
    }
    told = process.more_huge_pages(memory, needed_mb)
    assert told == f"echo {pages} > /proc/sys/vm/nr_hugepages"
