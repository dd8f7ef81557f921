"""Who signed a run is told, and nobody else can be taken for him."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from planning import TESTBED, Run, campaign, spec

from dutperf.cli import app, verify_command
from dutperf.config import Campaign, PlannedTestbed
from dutperf.errors import InputError, SetupError
from dutperf.evidence import Check, pack, sign, verify
from dutperf.evidence.pack import (
    SIGNATURE,
    SUMS,
    BadSignatureError,
    opened,
    packed,
    signer,
)
from dutperf.run.campaign_run import results_again
from dutperf.simulation.fake_engine import FakeEngine, step

SUM = b"0" * 64 + b"  journal.jsonl\n"


def new_key(path: Path, passphrase: str = "") -> Path:
    make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "", "-f"]
    subprocess.run([*make, path.absolute()], check=True)
    return path


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return new_key(tmp_path_factory.mktemp("key") / "key")


@pytest.fixture(scope="module")
def signed(key: Path) -> bytes:
    return sign(SUM, key)


def allowing(path: Path, key: Path, name: str = "me@example.com") -> Path:
    path.write_text(f"{name} {key.with_suffix('.pub').read_text()}")
    return path


def fingerprint(key: Path) -> str:
    told = subprocess.run(
        ["ssh-keygen", "-l", "-f", key], capture_output=True, text=True, check=True
    )
    return told.stdout.split()[1]


def test_whose_key_it_was_is_told(key: Path, signed: bytes, tmp_path: Path) -> None:
    told = f"{fingerprint(key)} (ED25519)"
    assert signer(SUM, signed, None) == (told, None)
    allowed = allowing(tmp_path / "allowed", key)
    assert signer(SUM, signed, allowed) == (told, "me@example.com")


def test_a_signature_of_other_sums_is_none(signed: bytes) -> None:
    with pytest.raises(BadSignatureError, match="no signature of these sums"):
        signer(SUM.replace(b"0", b"1", 1), signed, None)


def test_one_for_another_purpose_is_none(key: Path, tmp_path: Path) -> None:
    """Who signed a mail or a commit did not sign this."""
    (tmp_path / "sums").write_bytes(SUM)
    other = ["ssh-keygen", "-Y", "sign", "-q", "-f", str(key), "-n", "git"]
    subprocess.run([*other, str(tmp_path / "sums")], check=True)
    with pytest.raises(BadSignatureError, match="namespace does not match"):
        signer(SUM, (tmp_path / "sums.sig").read_bytes(), None)


@pytest.mark.parametrize("content", [b"", b"\x1b[2J", b"x" * 100_000_000])
def test_what_is_no_signature_is_refused(content: bytes) -> None:
    with pytest.raises(BadSignatureError):
        signer(SUM, content, None)


def test_a_signer_who_is_not_allowed_is_told(signed: bytes, tmp_path: Path) -> None:
    allowed = allowing(tmp_path / "allowed", new_key(tmp_path / "other"))
    with pytest.raises(BadSignatureError, match="No principal matched"):
        signer(SUM, signed, allowed)


def test_one_whose_key_is_allowed_for_other_things_is_not(
    key: Path, signed: bytes, tmp_path: Path
) -> None:
    allowed = allowing(tmp_path / "allowed", key, 'me@example.com namespaces="git"')
    with pytest.raises(BadSignatureError, match="is none of"):
        signer(SUM, signed, allowed)


@pytest.mark.parametrize("name", ["-rf", "me\x1b[2J", "*@example.com"])
def test_a_name_is_shown_and_never_obeyed(
    key: Path, signed: bytes, tmp_path: Path, name: str
) -> None:
    found = signer(SUM, signed, allowing(tmp_path / "allowed", key, name))
    assert found.identity == name.replace("\x1b", "\\x1b")


def test_paths_that_look_like_options_are_paths(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    key = new_key(Path("-key"))
    allowed = allowing(Path("-allowed"), key)
    assert signer(SUM, sign(SUM, key), allowed).identity == "me@example.com"


def test_a_key_that_is_missing_is_told() -> None:
    with pytest.raises(InputError, match=r"nowhere cannot sign: .*No such file"):
        sign(SUM, Path("nowhere"))


def test_without_a_terminal_no_passphrase_is_waited_for(tmp_path: Path) -> None:
    key = new_key(tmp_path / "key", "secret")
    with pytest.raises(InputError, match="cannot sign") as caught:
        sign(SUM, key)
    assert "at a terminal" in (caught.value.hint or "")


def test_a_program_that_asks_is_never_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asking = tmp_path / "ask"
    asking.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\necho secret\n")
    asking.chmod(0o755)
    monkeypatch.setenv("SSH_ASKPASS", str(asking))
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")
    monkeypatch.setenv("DISPLAY", ":0")
    with pytest.raises(InputError, match="cannot sign"):
        sign(SUM, new_key(tmp_path / "key", "secret"))
    assert not (tmp_path / "asked").exists()


def test_at_a_terminal_the_passphrase_is_asked_for(tmp_path: Path) -> None:
    key = new_key(tmp_path / "key", "secret")
    child, terminal = pty.fork()
    if child == 0:
        with contextlib.suppress(BaseException):
            (tmp_path / "sig").write_bytes(sign(SUM, key))
        os._exit(0)
    said = b""
    while b"passphrase" not in said:
        said += os.read(terminal, 1000)
    os.write(terminal, b"secret\n")
    with contextlib.suppress(OSError):  # how the end of a terminal is told
        while os.read(terminal, 1000):
            pass
    os.waitpid(child, 0)
    os.close(terminal)
    assert signer(SUM, (tmp_path / "sig").read_bytes(), None).identity is None


@pytest.fixture
def agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    place = tmp_path / "agent"
    with subprocess.Popen(["ssh-agent", "-D", "-a", place], stdout=-3) as running:
        while not place.exists():
            assert running.poll() is None
            time.sleep(0.01)
        monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
        yield
        running.terminate()


@pytest.mark.usefixtures("agent")
def test_a_key_of_the_agent_signs_by_its_public_part(tmp_path: Path) -> None:
    key = new_key(tmp_path / "key")
    subprocess.run(["ssh-add", "-q", key], check=True)
    key.unlink()
    public = key.with_suffix(".pub")
    assert signer(SUM, sign(SUM, public), None).key.startswith(fingerprint(public))


def test_without_ssh_keygen_its_package_is_named(
    key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError) as caught:
        sign(SUM, key)
    assert "openssh-client" in (caught.value.hint or "")


# --- in an archive


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("signed") / "run"
    what = campaign(spec(resolution="20%", repeats=1, trial_duration_s=1))
    Run(path, FakeEngine(step(200_000)))(what)
    return path


@pytest.fixture
def archive(run: Path, key: Path, tmp_path: Path) -> Path:
    return pack(run, tmp_path / "a.gz", sign=lambda sums: sign(sums, key)).path


def checked(path: Path, allowed: Path | None = None) -> Check:
    def plan(_campaign: Campaign) -> list[PlannedTestbed]:
        return [PlannedTestbed(testbed=TESTBED)]

    checks = verify(path, plan, results_again, allowed=allowed).checks
    assert not [c for c in checks if c.wrong and c.name != "signature"]
    (found,) = (check for check in checks if check.name == "signature")
    return found


def test_a_signed_archive_tells_who(archive: Path, key: Path, tmp_path: Path) -> None:
    assert checked(archive).told == f"signed by {fingerprint(key)} (ED25519)"
    found = checked(archive, allowing(tmp_path / "allowed", key))
    assert found.told.startswith("signed by me@example.com, SHA256:")
    assert (found.wrong, found.unknown, found.looked) == ([], [], True)


def test_all_but_the_signature_is_what_an_unsigned_one_has(
    run: Path, archive: Path, tmp_path: Path
) -> None:
    files = opened(archive)
    del files[SIGNATURE]
    assert files == opened(pack(run, tmp_path / "b.gz").path)


def test_an_unsigned_archive_is_refused_only_where_a_signer_is_asked_for(
    run: Path, key: Path, tmp_path: Path
) -> None:
    path = pack(run, tmp_path / "b.gz").path
    assert (checked(path).wrong, checked(path).looked) == ([], False)
    assert checked(path, allowing(tmp_path / "allowed", key)).wrong


def test_sums_that_were_repaired_are_not_those_that_were_signed(
    archive: Path,
) -> None:
    files = opened(archive)
    signature = files.pop(SIGNATURE)
    for name in (SUMS, "manifest.json"):
        del files[name]
    files["engine.log"] = b"another one\n"
    archive.write_bytes(
        packed("run", files, {"schema_version": 1}, lambda _: signature)
    )
    assert "no signature of these sums" in checked(archive).wrong[0]


def test_where_nothing_can_check_a_signature_that_is_said(
    archive: Path, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = allowing(tmp_path / "allowed", key)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = checked(archive)
    assert (found.wrong, found.looked) == ([], False)
    assert "openssh-client" in found.unknown[0]
    with pytest.raises(SetupError):
        checked(archive, allowed)


def test_a_file_of_signers_that_is_missing_is_told(archive: Path) -> None:
    with pytest.raises(InputError, match="is no file"):
        checked(archive, Path("nowhere"))


def test_the_commands(
    run: Path,
    key: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(verify_command, "recorded_frames", lambda *_: {})
    out, other = str(tmp_path / "a.gz"), new_key(tmp_path / "other")
    assert app.run(["evidence", str(run), "--output", out, "--sign", str(key)]) == 0
    for named, code in ((key, 0), (other, 1)):
        allowed = str(allowing(tmp_path / "allowed", named))
        assert app.run(["verify", out, "--allowed-signers", allowed]) == code
    told = capsys.readouterr().out
    assert "good    signature    signed by me@example.com, SHA256:" in told
    assert "refused: signature" in told
