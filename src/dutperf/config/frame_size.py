"""An entry of ``frame_size``: bytes with FCS, or ``all`` of the RFCs' lists."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Discriminator, Tag, WithJsonSchema

from dutperf.protocol import FrameSize

ALL_SIZES = "all"


def _check_all(text: str) -> str:
    if text != ALL_SIZES:
        raise ValueError(f"must be a number of bytes, or all, not {text[:40]!r}")
    return text


def _kind(value: Any) -> str:  # noqa: ANN401 - raw YAML
    return "all" if isinstance(value, str) else "bytes"


_All = Annotated[str, AfterValidator(_check_all), WithJsonSchema({"const": ALL_SIZES})]
SizeOrAll = Annotated[
    Annotated[FrameSize, Tag("bytes")] | Annotated[_All, Tag("all")],
    Discriminator(_kind),
]
