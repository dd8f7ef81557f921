"""Who may take part: keys, who may read them, and where they are asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from dutperf.cli import app
from dutperf.errors import InputError
from dutperf.remote.security import (
    RUN,
    SCHEDULER,
    Certificates,
    check_loopback,
    checked_address,
    own_keys,
)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    files = [tmp_path / name for name in ("ca", "cert", "key")]
    for file in files:
        file.write_text("PEM")
        file.chmod(0o600)
    return Certificates(*files)


@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("tls://127.0.0.1:8786", "tls://127.0.0.1:8786"),
        ("127.0.0.1", "tls://127.0.0.1:8786"),
        ("localhost:9", "tls://localhost:9"),
        ("tls://[::1]:9", "tls://[::1]:9"),
    ],
)
def test_this_machine_needs_no_options(given: str, full: str) -> None:
    assert checked_address(given, Certificates()) == full


@pytest.mark.parametrize("address", ["tls://192.0.2.1:8786", "192.0.2.1"])
def test_another_machine_does(address: str, certificates: Certificates) -> None:
    with pytest.raises(InputError, match=r"192.0.2.1 is not this machine: between"):
        checked_address(address, Certificates())
    assert checked_address(address, certificates) == "tls://192.0.2.1:8786"


@pytest.mark.parametrize(
    "address", ["", "tcp://", "http://127.0.0.1", "tls://127.0.0.1:port", "tls://[::1"]
)
def test_what_is_no_address_is_told(address: str) -> None:
    with pytest.raises(InputError, match="is not the address of a scheduler"):
        checked_address(address, Certificates())


def test_nothing_goes_without_encryption(certificates: Certificates) -> None:
    for each in (certificates, Certificates()):
        with pytest.raises(InputError, match="anybody may measure as root") as error:
            checked_address("tcp://127.0.0.1", each)
        assert error.value.hint == "all is by TLS: tls://127.0.0.1:8786"


def test_certificates_are_all_there_or_none(certificates: Certificates) -> None:
    assert certificates.given
    for mode in (0o644, 0o620):
        (certificates.key or Path()).chmod(mode)
        with pytest.raises(
            InputError, match=r"others may read .*key: whoever"
        ) as error:
            _ = certificates.given
        assert error.value.hint == f"chmod go= {certificates.key}"
    (certificates.key or Path()).chmod(0o600)
    with pytest.raises(InputError, match="--tls-cert and --tls-key must be given, too"):
        _ = Certificates(ca=certificates.ca).given
    (certificates.key or Path()).unlink()
    with pytest.raises(InputError, match=r"--tls-key .*: No such file"):
        _ = certificates.given


def test_a_scheduler_listens_on_the_loopback_only(certificates: Certificates) -> None:
    with pytest.raises(InputError, match=r"0.0.0.0 is not this machine"):
        check_loopback("0.0.0.0", Certificates())  # noqa: S104 - what is refused
    check_loopback("0.0.0.0", certificates)  # noqa: S104
    assert app.run(["scheduler", "--host", "192.0.2.1"]) == 2


def test_certificates_without_a_scheduler_are_a_mistake(
    certificates: Certificates, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    campaign = tmp_path / "campaign.yaml"
    campaign.write_text(
        "{name: c, lab: linux-router, procedures: [{procedure: throughput}]}"
    )
    tls = ["--tls-ca", certificates.ca, "--tls-cert", certificates.cert]
    command = ["run", campaign, *tls, "--tls-key", certificates.key]
    assert app.run(list(map(str, command))) == 2
    assert "are for --scheduler, which is missing" in capsys.readouterr().err


def test_keys_are_made_once_and_nobody_else_may_read_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make = ["worker", "--make-keys", str(tmp_path / "keys"), "--host"]
    assert app.run([*make, "left"]) == 0
    made = sorted(path for path in (tmp_path / "keys").rglob("*"))
    before = {path: path.read_bytes() for path in made if path.is_file()}
    assert [path.name for path in made if path.is_dir()] == [
        *("ca", "left", "run", "scheduler")
    ]
    assert not any(path.stat().st_mode & 0o077 for path in made if path.is_dir())
    assert not any(path.stat().st_mode & 0o077 for path in made if "key" in path.name)
    capsys.readouterr()
    assert app.run([*make, "right"]) == 0
    assert capsys.readouterr().out == f"made {tmp_path}/keys/right\n"
    assert all(path.read_bytes() == then for path, then in before.items())
    assert app.run([*make, "../right"]) == 2
    (tmp_path / "keys").chmod(0o755)
    assert app.run([*make, "third"]) == 2
    assert f"chmod go= {tmp_path}/keys" in capsys.readouterr().err


def test_own_keys_that_others_may_read_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(InputError, match="this account has none in"):
        Certificates().or_own(RUN)
    assert Certificates().or_own(SCHEDULER).ca == own_keys() / "scheduler/ca.pem"
    assert Certificates().or_own(RUN).key == own_keys() / "run/key.pem"
    own_keys().chmod(0o755)
    with pytest.raises(InputError, match="others may read"):
        Certificates().or_own(RUN)


def test_a_worker_owns_something_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    Certificates().or_own(SCHEDULER)
    worker = ["worker", "tls://127.0.0.1:1"]
    assert app.run(worker) == 2
    assert "a worker owns testbeds, and none was given" in capsys.readouterr().err
    assert app.run([*worker, "--lab", "linux-router", "--lab", "linux-router"]) == 2
    assert "testbed linux-router was given twice" in capsys.readouterr().err
    assert app.run([*worker, "--lab", "linux-router", "--simulate", "9"]) == 3
    told = capsys.readouterr().err
    assert "signed answers at tls://127.0.0.1:1" in told
    assert "dutperf scheduler --host 127.0.0.1 --port 1" in told
