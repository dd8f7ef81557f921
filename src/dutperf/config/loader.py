"""From files to checked models. Everything wrong becomes one InputError."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from dutperf.config.campaign import Campaign
from dutperf.config.document import Document, read_document, refusal
from dutperf.config.fields import Strict
from dutperf.config.problem import Problem
from dutperf.config.specs import SPECS, ProcedureSpec
from dutperf.config.testbed import Testbed
from dutperf.config.validate import validate
from dutperf.errors import InputError

Model = TypeVar("Model", bound=Strict)


def load_testbed(path: Path) -> Testbed:
    """The testbed in the file at ``path``.

    Raises:
        InputError: names file, line and key of everything wrong (at most ten).
    """
    return validate(Testbed, read_document(path))


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
    document = read_document(path)
    campaign = validate(Campaign, document)
    if campaign.testbed is None:
        return campaign
    if stored and any(isinstance(given, str) for given in campaign.testbed):
        inside = "is the path of a file, and a stored campaign has its testbeds inside"
        hint = "the file was changed: give the campaign that the run was made of"
        raise refusal(document, [Problem(("testbed",), inside, hint)])
    testbeds = [
        _named_testbed(document, path.parent, given, number)
        if isinstance(given, str)
        else given
        for number, given in enumerate(campaign.testbed)
    ]
    return campaign.model_copy(update={"testbed": testbeds})


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
