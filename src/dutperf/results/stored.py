"""What all stored values have in common."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Stored(BaseModel):
    """Base of all stored values: immutable, and an unknown key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)
