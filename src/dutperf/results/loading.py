"""Reading stored files, with errors that say which file and which version wrote it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from dutperf import __version__
from dutperf.errors import InputError
from dutperf.plain_files import read_plain
from dutperf.results.model import RESULTS_SCHEMA_VERSION
from dutperf.results.stored import Stored

S = TypeVar("S", bound=Stored)

_DIGITS = 40
_LONG = re.compile(rf"\d{{{_DIGITS}}}")
"""Only then is each number looked at, which takes time."""


def stored_file(path: Path, name: str) -> Path:
    """``path`` itself if it is a file, else the file ``name`` in directory ``path``."""
    return path / name if path.is_dir() else path


def read_text(path: Path) -> str:
    """Whole file as text.

    Raises:
        InputError: it is missing, unreadable or not text.
    """
    try:
        return read_bytes(path).decode()
    except UnicodeDecodeError as error:
        raise InputError(f"cannot read {path}: {error}") from error


def read_bytes(path: Path) -> bytes:
    """Whole file.

    Raises:
        InputError: it is missing or unreadable.
    """
    try:
        return read_plain(path)
    except FileNotFoundError as error:
        raise InputError(
            f"{path} does not exist", "give the results directory of a run"
        ) from error
    except OSError as error:
        raise InputError(f"cannot read {path}: {error}") from error


def parse_object(text: str | bytes, where: str) -> dict[str, Any]:
    """``text`` as a JSON object; ``where`` names it in errors.

    Raises:
        InputError: it is not JSON, or not an object.
    """
    try:
        if isinstance(text, bytes):
            text = text.decode()
        value = json.loads(text, parse_int=_whole if _LONG.search(text) else None)
    except RecursionError as error:
        raise InputError(f"{where} is not valid JSON: nested too deeply") from error
    except ValueError as error:  # not JSON, or not even text
        raise InputError(f"{where} is not valid JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f"{where} is not a JSON object")
    return value


def _whole(digits: str) -> int:
    """A count or an address has fewer digits; figures of more overflow a float."""
    if len(digits) > _DIGITS:
        raise ValueError(f"{digits[:20]}... is a number of {len(digits)} digits")
    return int(digits)


def check_version(data: dict[str, Any], where: str) -> None:
    """Refuse what another dutperf wrote, before its keys look like mistakes.

    Raises:
        InputError: the schema version is missing, or not this program's.
    """
    version = data.get("schema_version")
    if not isinstance(version, int):
        raise InputError(f"{where} has no schema_version: not a file of dutperf")
    if version != RESULTS_SCHEMA_VERSION:
        writer = data.get("dutperf_version", "another version")
        newer = version > RESULTS_SCHEMA_VERSION
        raise InputError(
            f"{where} has schema version {version}, written by dutperf {writer}; "
            f"dutperf {__version__} reads version {RESULTS_SCHEMA_VERSION}",
            f"use the dutperf that wrote it{', or a newer one' if newer else ''}",
        )


def validated(model: type[S], data: dict[str, Any], where: str) -> S:
    """``data`` as ``model``.

    Raises:
        InputError: naming the first key that does not fit.
    """
    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"])
        raise InputError(
            f"{where}: {key}: {first['msg']}",
            "the file was changed by hand, or damaged",
        ) from error


def load_versioned(
    model: type[S], path: Path, name: str, without: str | None = None
) -> S:
    """The JSON file ``name`` in directory ``path`` (or the file ``path``) as ``model``.

    The key ``without`` is left out as if it were not there.

    Raises:
        InputError: missing, damaged, or written by another dutperf.
    """
    file = stored_file(path, name)
    data = parse_object(read_text(file), str(file))
    check_version(data, str(file))
    if without is not None:
        data.pop(without, None)
    return validated(model, data, str(file))
