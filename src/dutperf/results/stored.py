"""What all stored values have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from dutperf.visible import visible_json


class Stored(BaseModel):
    """Base of all stored values: immutable, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    def stored_text(self, indent: int | None = None) -> str:
        """As JSON that may be looked at with ``cat``: a terminal obeys none of it."""
        return visible_json(self.model_dump_json(indent=indent))
