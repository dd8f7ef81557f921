"""Who owns the lab: the state file, the lock, and whether an owner still lives.

    (no file) --write(owner = maker)--> being made --write--> up: owner or "kept"
        ^                                   |                        |
        +------------- remove --------------+---- owner died --------+

The file is written before the first namespace is made, so whatever a killed process
leaves behind can be recognised as the lab's. An owner is a process: its number, its
start time (numbers are reused) and the boot it ran in (/run may outlive a reboot). So
are the DUT's own processes, and what is changed outside the namespaces is there, too.

Of several labs at once all but one have a name of their own, and a file of their own:

    /run/dutperf/lab.json            namespaces tester, dut     of the one without
    /run/dutperf/labs/a/lab.json     tester-a, dut-a            of the one named a
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dutperf import busy
from dutperf.errors import SetupError
from dutperf.lab.netns import NAMESPACES, name_in_lab
from dutperf.lab.processes import Process

if TYPE_CHECKING:
    from dutperf.config.testbed import Testbed

STATE_DIRECTORY = Path("/run/dutperf")
_NAMED = "labs"
"""Below the directory of all labs: a directory for each that has a name of its own."""
_FILE = "lab.json"
_VERSION = 1


@dataclass(frozen=True)
class ChangedSetting:
    """A setting of the whole machine that a lab changes while it is up."""

    path: Path
    before: int
    meanwhile: int


@dataclass(frozen=True)
class RaisedPriority:
    """A thread that a lab gives precedence while it is up: a lower nice value."""

    thread: Process
    before: int
    raised: int


@dataclass(frozen=True, kw_only=True)
class LabState:
    """The content of the state file.

    It is read without the models of testbeds: loading those takes a second.

    Attributes:
        name: of its own, of several labs at once; None: the one without.
        owner: whose lab it is; None if it is kept.
        shares_cpus: it was brought up though others had its CPUs.
        dut_cpu: where the DUT works; None: on the tester's own CPU.
        more_dut_cpus: those that it works on beside that one.
        receive_cpu: what takes in the DUT's frames for the tester; None: the DUT's CPU.
        processes: the DUT's own, which end with the lab.
        settings: to be set back when the lab goes.
        priorities: likewise.
        testbed_keys: of the testbed that it is, as JSON.
    """

    device: str
    name: str | None = None
    since: datetime
    owner: Process | None
    namespaces: tuple[str, ...]
    links: tuple[str, ...]
    shares_cpus: bool = False
    dut_cpu: int | None = None
    more_dut_cpus: tuple[int, ...] = ()
    receive_cpu: int | None = None
    processes: tuple[Process, ...] = ()
    settings: tuple[ChangedSetting, ...] = ()
    priorities: tuple[RaisedPriority, ...] = ()
    testbed_keys: dict[str, Any]

    @property
    def testbed(self) -> Testbed:
        """The testbed that it is.

        Raises:
            SetupError: it is not one of this version.
        """
        from pydantic import ValidationError  # noqa: PLC0415 - see above

        from dutperf.config.testbed import Testbed  # noqa: PLC0415 - see above

        try:
            return Testbed.model_validate_json(json.dumps(self.testbed_keys))
        except ValidationError as error:
            raise _foreign(StateFile(name=self.name)) from error

    @property
    def tester_cores(self) -> list[int]:
        """The CPUs of the tester's workers."""
        return list(self.testbed_keys["cores"])

    @property
    def title(self) -> str:
        """What people call it: the device, and the lab's own name if it has one."""
        return self.device if self.name is None else f"{self.device}@{self.name}"

    @property
    def device_cpus(self) -> set[int]:
        """Those that work for the device, and take in its frames."""
        found = {self.dut_cpu, *self.more_dut_cpus, self.receive_cpu}
        return {cpu for cpu in found if cpu is not None}

    @property
    def tester_cpus(self) -> set[int]:
        """Those of the tester: its workers', and its main thread's."""
        main = self.testbed_keys["main_core"]
        return {*self.tester_cores, *([] if main is None else [main])}


@dataclass(frozen=True)
class StateFile:
    """``lab.json``, read and written atomically; all labs share one lock.

    Attributes:
        directory: of all labs.
        name: the lab's own, of several at once; None: the one without.
    """

    directory: Path = STATE_DIRECTORY
    name: str | None = None

    @property
    def home(self) -> Path:
        """Where this lab's files are."""
        if self.name is None:
            return self.directory
        return self.directory / _NAMED / self.name

    @property
    def path(self) -> Path:
        """The state file itself."""
        return self.home / _FILE

    @property
    def dut_directory(self) -> Path:
        """Where the DUT's programs have their files while the lab is up."""
        return self.home / "dut"

    def all(self) -> list[StateFile]:
        """Those of all labs that there are, up or left behind; the nameless one first.

        Only ``directory`` of this one counts. Ordinary users see none.
        """
        if not os.access(self.directory, os.X_OK):
            return []
        named = sorted((self.directory / _NAMED).glob(f"*/{_FILE}"))
        files = [
            StateFile(self.directory),
            *(StateFile(self.directory, path.parent.name) for path in named),
        ]
        return [file for file in files if file.path.exists()]

    @classmethod
    def at(cls, path: Path) -> StateFile:
        """The one whose file has this path."""
        home = path.parent
        if home.parent.name == _NAMED:
            return cls(home.parent.parent, home.name)
        return cls(home)

    def make_dut_directory(self) -> None:
        """Nobody else gets in: who reaches the sockets there may tell the DUT things.

        Raises:
            SetupError: it cannot be made.
        """
        try:
            busy.make_private(self.dut_directory)
        except OSError as error:
            raise _unusable(self.dut_directory, error) from error

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from changing any lab; see ``busy.take_turn``."""
        try:
            busy.make_private(self.directory)
            lock = os.open(self.directory, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise _unusable(self.directory, error) from error
        try:
            busy.take_turn(lock, self.directory)
            yield
        finally:
            os.close(lock)

    def read(self) -> LabState | None:
        """The lab that is up or left behind; None if there is none.

        To ordinary users, who cannot look there, there is none.

        Raises:
            SetupError: the file is not one that this version wrote.
        """
        try:
            return _parsed(self.path.read_bytes())
        except (FileNotFoundError, PermissionError):
            return None
        except OSError as error:
            raise _unusable(self.path, error) from error
        except (KeyError, TypeError, ValueError) as error:
            raise _foreign(self) from error

    def write(self, state: LabState) -> None:
        """Replaces the file as a whole; a crash leaves the old one or the new one."""
        draft = self.path.with_suffix(".new")
        try:
            busy.make_private(self.home)
            draft.write_text(_written(state), "utf-8")
            draft.replace(self.path)
        except OSError as error:
            raise _unusable(self.path, error) from error

    def remove(self) -> None:
        """Forgets the lab, and the files of its DUT."""
        shutil.rmtree(self.dut_directory, ignore_errors=True)
        self.path.unlink(missing_ok=True)
        if self.name is not None:
            shutil.rmtree(self.home, ignore_errors=True)


def _parsed(text: bytes) -> LabState:
    """The state that ``_written`` wrote.

    Raises:
        KeyError, TypeError, ValueError: this version has not written it.
    """
    keys = dict(json.loads(text))
    testbed = keys.pop("testbed")
    known = keys.pop("schema_version") == _VERSION
    if not known or not {"cores", "main_core"} <= set(testbed):
        raise ValueError(keys)
    owner = keys["owner"]
    read = {
        "since": datetime.fromisoformat(keys["since"]),
        "owner": None if owner is None else Process(**owner),
        "processes": tuple(Process(**each) for each in keys["processes"]),
        "settings": tuple(
            ChangedSetting(**each | {"path": Path(each["path"])})
            for each in keys["settings"]
        ),
        "priorities": tuple(
            RaisedPriority(**each | {"thread": Process(**each["thread"])})
            for each in keys["priorities"]
        ),
        "testbed_keys": testbed,
    }
    lists = ("namespaces", "links", "more_dut_cpus")
    return LabState(**keys | read | {key: tuple(keys[key]) for key in lists})


def _written(state: LabState) -> str:
    keys = {"schema_version": _VERSION, **asdict(state)}
    keys["since"] = state.since.astimezone(UTC).isoformat().replace("+00:00", "Z")
    keys["testbed"] = keys.pop("testbed_keys")
    return json.dumps(keys, indent=2, ensure_ascii=False, default=str) + "\n"


def _foreign(file: StateFile) -> SetupError:
    names = " ".join(name_in_lab(each, file.name) for each in NAMESPACES)
    return SetupError(
        f"{file.path} is not a lab's state as this version writes it",
        "take the lab down with the version that made it, or remove it by "
        f"hand: for name in {names}; do ip netns del $name; done; "
        f"rm {file.path}",
    )


def _unusable(path: Path, error: OSError) -> SetupError:
    return SetupError(
        f"cannot use {path}: {error.strerror}",
        "the lab keeps its state there: make it writable for root",
    )


# What a lab changed of the whole machine, when it goes and another one stays.
#
# Labs find a setting as another has left it, and rely on that. So a lab that goes hands
# over what it would set back, and the last one sets back what was there before the
# first.


def hand_over(gone: LabState, heirs: Sequence[tuple[StateFile, LabState]]) -> LabState:
    """Writes to the heirs' files what they set back from now on.

    Returns ``gone`` with what is still its own to set back, now.
    """
    if not heirs:
        return gone
    own: list[ChangedSetting] = []
    states = [state for _, state in heirs]
    for setting in gone.settings:
        heir = _heir_of(setting, states)
        if heir is None:
            own.append(setting)
        else:
            states[heir] = _with(states[heir], setting)
    priorities = (*states[0].priorities, *gone.priorities)
    states[0] = replace(states[0], priorities=priorities)
    for (file, before), state in zip(heirs, states, strict=True):
        if state != before:
            file.write(state)
    return replace(gone, settings=tuple(own), priorities=())


def _heir_of(setting: ChangedSetting, states: Sequence[LabState]) -> int | None:
    """Who takes it; None: it is set back to what another lab has set, which stays."""
    for number, state in enumerate(states):
        for theirs in state.settings:
            if theirs.path == setting.path:
                return None if theirs.meanwhile == setting.before else number
    return 0


def _with(state: LabState, setting: ChangedSetting) -> LabState:
    """``state`` that sets it back, too: what it changed again to what was before."""
    settings = {theirs.path: theirs for theirs in state.settings}
    theirs = settings.get(setting.path)
    if theirs is None:
        settings[setting.path] = setting
    elif theirs.before == setting.meanwhile:
        changed = replace(theirs, before=setting.before)
        settings[setting.path] = changed
    return replace(state, settings=tuple(settings.values()))
