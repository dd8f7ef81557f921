"""Commands around trials: clear the device's state, read its counters.

Each is a list of words, without a shell, on this machine or over ssh on another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated

from pydantic import AfterValidator, Field

from dutperf.model.fields import MaybeSecret, Secret, Strict


def _check_word(text: str) -> str:
    # What begins with a dash would be an option of ssh.
    if not re.fullmatch(r"[A-Za-z0-9_:][A-Za-z0-9._:%-]*", text):
        raise ValueError(
            "must be letters, digits, '.', '_', ':', '%' or '-', and not begin with "
            f"'-', not {text!r}"
        )
    return text


def _check_path(text: str) -> str:
    if not text or '"' in text:
        raise ValueError(f"must be the path of a file, without quotes, not {text!r}")
    return text


CORES = "{cores}"
"""The number of cores, in a command of the hook ``set_cores``."""
_Word = Annotated[str, AfterValidator(_check_word)]
_Path = Annotated[str, AfterValidator(_check_path)]


class SshHost(Strict):
    """Where a command runs: by the OpenSSH client, never asking, host key checked."""

    host: _Word = Field(description="name or address; its key must be known")
    user: _Word | None = Field(default=None, description="default: as ssh is set up")
    port: Annotated[int, Field(ge=1, le=65535)] = Field(
        default=22, description="TCP port of the SSH server"
    )
    identity_file: _Path | None = Field(
        default=None, description="private key; default: as ssh is set up"
    )
    known_hosts: _Path | None = Field(
        default=None, description="file of host keys; default: as ssh is set up"
    )


class Hook(Strict):
    """One command; it succeeds with exit code 0 within its time."""

    command: Annotated[
        list[MaybeSecret[Annotated[str, Field(min_length=1)]]], Field(min_length=1)
    ] = Field(
        description="program and arguments as a list; {env: NAME} or {file: PATH} is a "
        "word that is looked up there"
    )
    ssh: SshHost | None = Field(default=None, description="default: this machine")
    timeout_s: Annotated[float, Field(gt=0, le=3600)] = Field(
        default=30, description="it is ended, and has failed, after this time"
    )
    retries: Annotated[int, Field(ge=0, le=100)] = Field(
        default=0, description="how often a command that failed is run again"
    )
    retry_wait_s: Annotated[float, Field(ge=0, le=3600)] = Field(
        default=1, description="pause before it is run again"
    )

    @property
    def shown(self) -> list[str]:
        """The words as they may be seen: of secrets where they are."""
        return [str(word) for word in self.command]

    @property
    def secrets(self) -> list[Secret]:
        """The words that are looked up."""
        return [word for word in self.command if isinstance(word, Secret)]


class Hooks(Strict):
    """Commands of a testbed, each list in its order; a lab's device has its own.

    A trial is invalid if one of them fails that belongs to it.
    """

    before_campaign: list[Hook] = Field(
        default=[], description="once, before the first trial; if it fails, none is run"
    )
    set_cores: Hook | None = Field(
        default=None,
        description="makes so many cores of the device active as the words {cores} of "
        "its command become; run before the first trial for each number of a "
        "campaign's key cores (RFC 9693 5.2)",
    )
    bulk_delete: Hook | None = Field(
        default=None,
        description="deletes all connections of a stateful device at once (RFC 9693); "
        "run before each trial, ahead of before_trial",
    )
    table_count: Hook | None = Field(
        default=None,
        description="prints how many connections a stateful device holds: the first "
        "number counts; teardown-rate watches its table by it",
    )
    restart: Hook | None = Field(
        default=None,
        description="brings a device back that collapsed in a table-capacity search, "
        "with an empty table; default: bulk_delete",
    )
    before_trial: list[Hook] = Field(
        default=[], description="prepares the device for a trial"
    )
    during_trial: list[Hook] = Field(
        default=[],
        description="outage: what interrupts the device, while frames are sent "
        "(trigger_after_s); none: you are asked to do it",
    )
    after_trial: list[Hook] = Field(default=[], description="reads counters, mostly")
    is_alive: Hook | None = Field(
        default=None,
        description="succeeds if the device works; asked after a trial that did not "
        "pass; if it fails, the run ends there and can be resumed",
    )

    def each(self) -> Iterator[tuple[str, Hook]]:
        """All of them, with their keys."""
        for key, given in self:
            if isinstance(given, Hook):
                yield key, given
            for number, hook in enumerate(given if isinstance(given, list) else ()):
                yield f"{key}[{number}]", hook
