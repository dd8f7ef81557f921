"""Without certificates nothing goes beyond the loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

from dutperf.cli import app
from dutperf.errors import InputError
from dutperf.remote.security import Certificates, check_loopback, checked_address


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    files = [tmp_path / name for name in ("ca", "cert", "key")]
    for file in files:
        file.write_text("PEM")
    return Certificates(*files)


@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("tcp://127.0.0.1:8786", "tcp://127.0.0.1:8786"),
        ("127.0.0.1", "tcp://127.0.0.1:8786"),
        ("localhost:9", "tcp://localhost:9"),
        ("tcp://[::1]:9", "tcp://[::1]:9"),
    ],
)
def test_the_loopback_needs_no_certificates(given: str, full: str) -> None:
    assert checked_address(given, Certificates()) == full


@pytest.mark.parametrize("address", ["tcp://192.0.2.1:8786", "192.0.2.1"])
def test_another_machine_does(address: str, certificates: Certificates) -> None:
    with pytest.raises(InputError, match=r"192.0.2.1 is not this machine: without TLS"):
        checked_address(address, Certificates())
    tls = address.replace("tcp", "tls")
    assert checked_address(tls, certificates) == "tls://192.0.2.1:8786"


@pytest.mark.parametrize(
    "address", ["", "tcp://", "http://127.0.0.1", "tcp://127.0.0.1:port", "tcp://[::1"]
)
def test_what_is_no_address_is_told(address: str) -> None:
    with pytest.raises(InputError, match="is not the address of a scheduler"):
        checked_address(address, Certificates())


def test_address_and_certificates_must_fit(certificates: Certificates) -> None:
    with pytest.raises(InputError, match="certificates were given, which tcp:// does"):
        checked_address("tcp://127.0.0.1:8786", certificates)
    with pytest.raises(InputError, match=r"tls://127.0.0.1:8786 needs certificates"):
        checked_address("tls://127.0.0.1:8786", Certificates())


def test_certificates_are_all_there_or_none(certificates: Certificates) -> None:
    assert certificates.given
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


def test_a_worker_owns_something_once(capsys: pytest.CaptureFixture[str]) -> None:
    worker = ["worker", "tcp://127.0.0.1:1"]
    assert app.run(worker) == 2
    assert "a worker owns testbeds, and none was given" in capsys.readouterr().err
    assert app.run([*worker, "--lab", "linux-router", "--lab", "linux-router"]) == 2
    assert "testbed linux-router was given twice" in capsys.readouterr().err
    assert app.run([*worker, "--lab", "linux-router", "--simulate", "9"]) == 3
    told = capsys.readouterr().err
    assert "no scheduler answers at tcp://127.0.0.1:1" in told
    assert "dutperf scheduler --host 127.0.0.1 --port 1" in told
