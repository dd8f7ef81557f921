"""What pages say that there is, and what is missing, against the lists of both."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import get_args

import pytest

from dutperf import __version__
from dutperf.catalogue import PROCEDURES, ProcedureName
from dutperf.config.encapsulation import SideKind
from dutperf.lab.devices import LABS
from tools.pictures import ANSWER

DOCS = Path(__file__).parents[2] / "docs"


def rows(page: str, first: str) -> list[list[str]]:
    """Of the table whose first column is called ``first``."""
    text = (DOCS / page).read_text()
    table = re.search(rf"^\| {first} \|.*\n\|---.*\n((?:\|.*\n)+)", text, re.MULTILINE)
    assert table, f"{page} has no table of {first}"
    lines = table[1].splitlines()
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


@pytest.mark.parametrize("name", PROCEDURES)
def test_conformance_names_each_procedure_and_where_it_is_defined(
    name: ProcedureName,
) -> None:
    procedure = PROCEDURES[name]
    own = " ".join(
        cell
        for title, *cells in rows("conformance.md", "procedure")
        if title.lower().startswith(procedure.title.lower())
        for cell in cells
    )
    for rfc, section in procedure.sections.items():
        assert re.search(rf"\b{rfc} {re.escape(section)}\b", own), (rfc, section)


def test_labs_names_each_device_or_its_kin() -> None:
    text = " ".join(name for name, *_ in rows("labs.md", "lab"))
    for name in LABS:
        parts = name.split("-")
        endings = (f"`-{'-'.join(parts[at:])}`" for at in range(1, len(parts)))
        kin = name.startswith("known-answer-") and "`known-answer` and its kin" in text
        assert f"`{name}`" in text or kin or any(e in text for e in endings), name


def test_pictures_are_of_this_version() -> None:
    made = DOCS / "pictures"
    assert (made / "version").read_text() == f"{__version__}\n", "make pictures"
    shown = (DOCS / "questions.md").read_text("utf-8")
    names = [name for _, name in ANSWER.findall(shown)]
    assert len(names) == shown.count("](pictures/") >= 5, "a picture without a command"
    for name in names:
        drawn = (made / f"{name}.svg").read_text("utf-8")
        assert f"dutperf {__version__}" in drawn, f"{name}: make pictures"
    header, *pieces = (made / "demo.cast").read_text("utf-8").splitlines()
    assert json.loads(header)["version"] == 2
    assert all(json.loads(piece)[1] == "o" for piece in pieces)


def test_a_picture_loads_nothing() -> None:
    text = (DOCS / "pictures/demo.svg").read_text("utf-8")
    assert "url(http" not in text
    assert "<script" not in text


def test_limitations_deny_nothing_that_there_is() -> None:
    known = {*PROCEDURES, *LABS, *get_args(SideKind)}
    known |= {procedure.title.lower() for procedure in PROCEDURES.values()}
    for missing, *_ in rows("limitations.md", "not there"):
        denied = missing.lower().split(";")[0].removeprefix("labs of ")
        assert not [name for name in known if denied.startswith(name)], missing
