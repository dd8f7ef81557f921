"""Edits that have to make C++ tests fail: each has its place in the code."""

from __future__ import annotations

import tomllib

from tools.mutants_cpp import LISTED, SOURCE


def test_each_edit_of_the_list_has_one_place() -> None:
    units = tomllib.loads(LISTED.read_text())["unit"]
    edits = [edit for unit in units for edit in unit["edit"]]
    assert edits
    for edit in edits:
        assert (SOURCE / edit["file"]).read_text().count(edit["old"]) == 1, edit
