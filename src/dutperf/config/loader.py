"""From files to checked models. Everything wrong becomes one InputError."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from dutperf.config.campaign import Campaign
from dutperf.config.document import Document, Problem, read_document, refusal
from dutperf.config.fields import Strict
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


def load_campaign(path: Path) -> Campaign:
    """The campaign in the file at ``path``; a testbed given as a path is inlined.

    That path is relative to the campaign file.

    Raises:
        InputError: names file, line and key of everything wrong (at most ten).
    """
    document = read_document(path)
    campaign = validate(Campaign, document)
    if not isinstance(campaign.testbed, str):
        return campaign
    testbed = _named_testbed(document, path.parent, campaign.testbed)
    return campaign.model_copy(update={"testbed": testbed})


def from_data(model: type[Model], data: dict[str, Any], where: str) -> Model:
    """``data`` that came from elsewhere (``where``: "command line") as ``model``.

    Raises:
        InputError: names the keys as files would, without lines.
    """
    return validate(model, Document(where, data))


def _named_testbed(document: Document, folder: Path, name: str) -> Testbed:
    try:
        return load_testbed(folder / name)
    except InputError as error:
        problem = Problem(("testbed",), "this testbed cannot be used:")
        named = refusal(document, [problem]).message
        raise InputError(f"{named}\n{error.message}", error.hint) from None
