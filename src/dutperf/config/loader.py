"""From files to checked models. Everything wrong becomes one InputError."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from dutperf.config.campaign import Campaign
from dutperf.config.captures import with_captures
from dutperf.config.document import (
    LARGEST_STORED_BYTES,
    Document,
    read_document,
    refusal,
    shown,
)
from dutperf.config.testbed import Testbed
from dutperf.errors import InputError
from dutperf.model.fields import KeyedError, Keys, Problem, Strict
from dutperf.model.specs import SPECS, ProcedureSpec

# Data to model; what pydantic finds wrong becomes sentences that a user can act on.


_TAGS = {
    "procedures": set(SPECS),
    "port": {"interface", "pci", "memif", "vdev", "ring"},
    "testbed": {"inline", "file"},
    "lab": {"name", "keys"},
    "frame_size": {"bytes", "all"},
    "community": {"plain", "hidden"},
    "command": {"plain", "hidden"},
}
"""Keys below which pydantic names the chosen kind as if it were another key."""

_SENTENCES = {
    "int_type": "must be a whole number, not {value}",
    "float_type": "must be a number, not {value}",
    "string_type": "must be a text, not {value}",
    "list_type": "must be a list, not {value}",
    "model_type": "must be a block of keys, not {value}",
    "model_attributes_type": "must be a block of keys, not {value}",
    "literal_error": "must be {expected}, not {value}",
    "greater_than_equal": "must be at least {ge}, not {value}",
    "less_than_equal": "must be at most {le}, not {value}",
    "greater_than": "must be above {gt}, not {value}",
    "multiple_of": "must be a multiple of {multiple_of}, not {value}",
    "less_than": "must be below {lt}, not {value}",
    "too_short": "must have at least {min_length} entry",
    "too_long": "must have at most {max_length} entries, not {actual_length}",
    "string_too_short": "must not be empty",
    "value_error": "{error}",
}
_HINTS = {
    "int_type": "write a whole number like 100000, 100k or 1e6: no quotes, no unit",
    "float_type": "write a number like 0.5, 100k or 1e6: no quotes, no unit",
    "string_type": "put the value in quotes",
    "list_type": "write a list in brackets, also of one entry: [64]",
    "model_attributes_type": "put its keys on the lines below it, indented",
    "model_type": "put its keys on the lines below it, indented",
    "too_short": "an empty list measures nothing; a key that has a default may be left "
    "out",
    "port_kind": "interface for a kernel interface, pci for a NIC bound to vfio-pci, "
    "memif for a software DUT, ring for a self-test",
}


def validate(model: type[Model], document: Document) -> Model:
    """``document`` as ``model``; types are not converted ('64' is not a number).

    Raises:
        InputError: names every wrong key (at most ten) with its line.
    """
    try:
        return model.model_validate(document.data, strict=True)
    except ValidationError as error:
        details = error.errors(include_url=False)
        problems = [_problem(model, document, d) for d in details]
        raise refusal(document, problems) from None


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401 - a type
    """The models that a value of this type may be, or hold as a list."""
    for argument in get_args(annotation):
        yield from models_in(argument)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation


def _problem(
    model: type[BaseModel], document: Document, detail: ErrorDetails
) -> Problem:
    error = detail.get("ctx", {}).get("error")
    inside = error.keys if isinstance(error, KeyedError) else ()
    keys = tuple(_written((*_untagged(detail["loc"]), *inside), document.data))
    if isinstance(error, KeyedError):
        return Problem(keys, error.what, error.hint)
    if detail["type"].startswith("union_tag"):
        return _no_such_procedure(keys, detail)
    if detail["type"] == "missing":
        field = _models_at(model, detail["loc"][:-1])[0].model_fields[str(keys[-1])]
        told = f"add {document.called(keys)}: {field.description}"
        return Problem(keys, "is missing", told)
    if detail["type"] == "extra_forbidden":
        return _unknown_key(keys, _models_at(model, detail["loc"][:-1])[0])
    hint = _nearest(model, detail) or _HINTS.get(detail["type"], "")
    return Problem(keys, _sentence(detail), hint)


def _no_such_procedure(keys: Keys, detail: ErrorDetails) -> Problem:
    keys = (*keys, "procedure")
    if detail["type"] == "union_tag_not_found":
        return Problem(keys, "is missing", f"add one of {', '.join(SPECS)}")
    given = detail["input"]["procedure"]
    hint = _near(given, SPECS)
    return Problem(keys, f"must be one of {', '.join(SPECS)}, not {shown(given)}", hint)


def _nearest(model: type[BaseModel], detail: ErrorDetails) -> str:
    """What was meant where a word is not one of those that may stand there."""
    if detail["type"] != "literal_error":
        return ""
    *above, key = (
        key
        for key in detail["loc"]
        if isinstance(key, str) and not key.startswith(_OF_UNIONS)
    )
    fields = [one.model_fields.get(key) for one in _models_at(model, tuple(above))[:1]]
    words = [word for field in fields if field for word in _words_in(field.annotation)]
    return _near(detail["input"], words)


def _words_in(annotation: Any) -> Iterator[str]:  # noqa: ANN401 - a type
    """The words that a value of this type may be, or hold as a list."""
    for argument in get_args(annotation):
        if isinstance(argument, str):
            yield argument
        else:
            yield from _words_in(argument)


def _near(given: object, words: Iterable[str]) -> str:
    near = difflib.get_close_matches(str(given), list(words), n=1)
    return f"did you mean {near[0]!r}?" if near else ""


def _unknown_key(keys: Keys, model: type[BaseModel]) -> Problem:
    known = model.model_fields
    if owners := list(_owners(model, str(keys[-1]))):
        *others, last = owners
        of = f"{', '.join(others)} and {last}" if others else last
        what = f"unknown key: it is of {of}"
        return Problem(keys, what, "take it out, or measure what it is of")
    near = difflib.get_close_matches(str(keys[-1]), list(known), n=1)
    told = f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"
    return Problem(keys, f"unknown key; {told}", "correct the key or remove it")


def _owners(model: type[BaseModel], key: str) -> Iterator[str]:
    """Procedures that have a key which ``model``, of another procedure, has not."""
    for block in ("", "stateful"):
        kinds = {name: _block(spec, block) for name, spec in SPECS.items()}
        if model in kinds.values():
            yield from (n for n, kind in kinds.items() if key in kind.model_fields)


def _block(spec: type[BaseModel], key: str) -> type[BaseModel]:
    return next(models_in(spec.model_fields[key].annotation)) if key else spec


def _sentence(detail: ErrorDetails) -> str:
    sentence = _SENTENCES.get(detail["type"])
    if sentence is None:  # our own types say it in plain words already
        return detail["msg"]
    limits = {k: _whole(v) for k, v in detail.get("ctx", {}).items()}
    told = sentence.format(value=shown(detail["input"]), **limits)
    return told if len(told) <= 300 else f"{told[:297]}..."


def _whole(limit: object) -> object:
    # pydantic turns the 60 of a float's limit into 60.0.
    return int(limit) if isinstance(limit, float) and limit.is_integer() else limit


_OF_UNIONS = ("literal[", "function-before[")
"""What pydantic calls a member of a union; no key of ours begins so."""


def _untagged(loc: Keys) -> Iterator[str | int]:
    previous = ""
    for key in loc:
        of_union = isinstance(key, str) and key.startswith(_OF_UNIONS)
        if not of_union and key not in _TAGS.get(previous, ()):
            yield key
        previous = key if isinstance(key, str) else previous


def _written(keys: Iterable[str | int], data: Any) -> Iterator[str | int]:  # noqa: ANN401
    """Without the index of what is written as one value instead of a list."""
    for key in keys:
        if isinstance(key, int) and not isinstance(data, list):
            continue
        yield key
        try:
            data = data[key]
        except (KeyError, IndexError, TypeError):
            data = []


def _is_kind(model: type[BaseModel], tag: str) -> bool:
    """Told by the procedure's name, or else by the key that it must have."""
    return SPECS.get(tag) is model or tag in model.model_fields


def _models_at(model: type[BaseModel], loc: Keys) -> list[type[BaseModel]]:
    models = [model]
    for key in loc:
        if isinstance(key, int):
            continue
        if len(models) > 1:  # a union: ``key`` is the tag of the chosen kind
            models = [m for m in models if _is_kind(m, key)]
        elif key in models[0].model_fields:
            models = list(models_in(models[0].model_fields[key].annotation))
    return models


Model = TypeVar("Model", bound=Strict)


def load_testbed(path: Path) -> Testbed:
    """The testbed in the file at ``path``.

    Raises:
        InputError: names file, line and key of everything wrong (at most ten).
    """
    testbed = validate(Testbed, _of_kind("testbed", path))
    return testbed.with_tables(path.parent)


def load_campaign(path: Path, *, stored: bool = False) -> Campaign:
    """The campaign in the file at ``path``; testbeds given as paths are inlined.

    Those paths are relative to the campaign file.

    Args:
        path: of the file.
        stored: it is of a results directory, which may have come from anywhere: it has
            its testbeds inside, and no other file is read.

    Raises:
        InputError: names file, line and key of everything wrong (at most ten).
    """
    most = (LARGEST_STORED_BYTES,) if stored else ()
    document = _of_kind("campaign", path, *most)
    campaign = validate(Campaign, document)
    if not stored:
        procedures = with_captures(campaign.procedures, path.parent)
        campaign = campaign.model_copy(update={"procedures": procedures})
    if campaign.testbed is None:
        return campaign
    if stored and any(isinstance(given, str) for given in campaign.testbed):
        inside = "is the path of a file, and a stored campaign has its testbeds inside"
        hint = "the file was changed: give the campaign that the run was made of"
        raise refusal(document, [Problem(("testbed",), inside, hint)])
    testbeds = [
        _named_testbed(document, path.parent, given, number)
        if isinstance(given, str)
        else (given if stored else given.with_tables(path.parent))
        for number, given in enumerate(campaign.testbed)
    ]
    return campaign.model_copy(update={"testbed": testbeds})


_KINDS = {
    "testbed": ("left", "dutperf throughput FILE, or 'testbed: FILE' in a campaign"),
    "campaign": ("procedures", "dutperf run FILE"),
    "results": ("cells", "dutperf report DIRECTORY, of the one that it is in"),
}
"""Of each kind of file a key that no other has, and what takes it."""


def _of_kind(wanted: str, path: Path, *most_bytes: int) -> Document:
    """The file at ``path``, which is not of another kind."""
    document = read_document(path, *most_bytes)
    if _KINDS[wanted][0] not in document.data:
        for kind, (key, takes) in _KINDS.items():
            if key in document.data:
                article = "of results" if kind == "results" else f"a {kind}"
                raise InputError(f"{path}: this is {article}, not a {wanted}", takes)
    return document


def from_data(model: type[Model], data: dict[str, Any], where: str) -> Model:
    """``data`` that came from elsewhere (``where``: "command line") as ``model``.

    Raises:
        InputError: names the keys as files would, without lines.
    """
    return validate(model, Document(where, data))


def spec_from(data: dict[str, Any], where: str) -> ProcedureSpec:
    """``data`` of a known procedure, which came from elsewhere, as its model.

    Args:
        data: its keys, ``procedure`` among them.
        where: see ``from_data``.

    Raises:
        InputError: as ``from_data``.
    """
    return from_data(SPECS[data["procedure"]], data, where)


def _named_testbed(document: Document, folder: Path, name: str, number: int) -> Testbed:
    try:
        return load_testbed(folder / name)
    except InputError as error:
        several = isinstance(document.data["testbed"], list)
        keys = ("testbed", number) if several else ("testbed",)
        problem = Problem(keys, "this testbed cannot be used:")
        named = refusal(document, [problem]).message
        raise InputError(f"{named}\n{error.message}", error.hint) from None


# JSON schemas of the configuration files, for editors that complete and check.


_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schemas() -> dict[str, dict[str, Any]]:
    """Schemas of ``testbed.yaml`` and ``campaign.yaml``: ``testbed``, ``campaign``."""
    return {
        name: {"$schema": _DIALECT, **model.model_json_schema()}
        for name, model in (("testbed", Testbed), ("campaign", Campaign))
    }
