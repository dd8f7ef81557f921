"""What all stored values have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from dutperf.visible import visible_json


class Stored(BaseModel):
    """Base of all stored values: immutable; an unknown key is an error.

    So is a number that is none: JSON has no NaN, but Python reads it.
    """

    model_config = ConfigDict(
        defer_build=True, extra="forbid", frozen=True, allow_inf_nan=False
    )

    def stored_text(self, indent: int | None = None) -> str:
        """As JSON that may be looked at with ``cat``: a terminal obeys none of it."""
        return visible_json(self.model_dump_json(indent=indent))
