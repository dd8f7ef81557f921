"""How a run stands to the RFCs: what it does less, and what its result may be called.

Said of a cell before anything is measured (``config``), and stored with its result.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

_STORED = ConfigDict(extra="forbid")

Level = Literal["definition", "MUST", "SHOULD", "text"]
Status = Literal["unconditional", "conditional", "none", "other_measure"]


@dataclass(frozen=True, config=_STORED)
class Deviation:
    """One point in which the run did less than the standard asks for."""

    rfc: Annotated[str, Field(description="for example 'RFC 2544 24'")]
    requirement: str
    actual: str
    level: Annotated[
        Level | None,
        Field(
            description="how the RFC says it; definition: it is what the quantity is; "
            "text: without a MUST or SHOULD",
        ),
    ] = None


@dataclass(frozen=True, config=_STORED)
class Conformance:
    """What may be said of a result in the words of RFC 2544 5."""

    rfc: Annotated[
        str, Field(description="whose procedure it is, for example 'RFC 2544'")
    ]
    section: str
    status: Annotated[
        Status,
        Field(
            description="unconditional: every MUST and SHOULD is met; conditional: "
            "every MUST is; other_measure: it is defined otherwise and must not be "
            "called so"
        ),
    ]
    statement: Annotated[str, Field(description="in words, with the reasons")]
