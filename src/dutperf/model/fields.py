"""What the configuration models are made of: strict bases and checked texts.

Each check raises ``ValueError`` with a plain sentence that continues "the value ...",
because the loader puts it behind file, line and key.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainValidator,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, core_schema

from dutperf.errors import InputError, SetupError
from dutperf.stats import LOOKS

_LONGEST_SECRET = 4096


_WRITTEN = re.compile(
    r"(?P<digits>[0-9]{1,15}(?:\.[0-9]{1,9})?)"
    r"(?:(?P<factor>[kMG])|e(?P<power>[0-9]{1,2}))?"
)
_FACTORS: dict[str | None, int] = {"k": 10**3, "M": 10**6, "G": 10**9}


def written_number(text: str) -> Fraction | None:
    """``25000``, ``100k``, ``1.5M``, ``1e6``; None: it is none of these."""
    found = _WRITTEN.fullmatch(text)
    if found is None:
        return None
    factor = _FACTORS.get(found["factor"], 1)
    for _ in range(int(found["power"] or 0)):
        factor *= 10
    return factor * Fraction(found["digits"])


def _as_number(value: Any, *, percent: bool) -> Any:  # noqa: ANN401 - raw YAML
    """``value`` as the number that it says; digits alone in quotes are a text."""
    if isinstance(value, list):
        return [_as_number(each, percent=percent) for each in value]
    if not isinstance(value, str) or value.replace(".", "").isdecimal():
        return value
    number = written_number(value.removesuffix("%") if percent else value)
    if number is None:
        return value
    return int(number) if number.denominator == 1 else float(number)


@cache
def _numbers_of(model: type[BaseModel]) -> tuple[str, ...]:
    """The keys of ``model`` that are numbers, or may be."""

    def is_number(annotation: Any) -> bool:  # noqa: ANN401 - a type
        return annotation in (int, float) or any(
            is_number(each) for each in get_args(annotation)
        )

    return tuple(
        name
        for name, field in model.model_fields.items()
        if is_number(field.annotation)
    )


class Strict(BaseModel):
    """Base of all configuration: immutable, and an unknown key is an error.

    A number may be written as people do: ``100k``, ``1.5M``, ``1e6``, of a percentage
    ``5%``.
    """

    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _written(cls, data: Any) -> Any:  # noqa: ANN401 - raw YAML
        if not isinstance(data, dict):
            return data
        told = {
            name: _as_number(data[name], percent=name.endswith("_percent"))
            for name in _numbers_of(cls)
            if isinstance(data.get(name), str | list)
        }
        return {**data, **told} if told else data


class Secret(Strict):
    """A text that is looked up when it is needed, and stored nowhere.

    Results have ``{env: NAME}`` or ``{file: PATH}`` in its place.
    """

    env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")] | None = Field(
        default=None, description="the environment variable that holds it; or"
    )
    file: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="the file whose first line it is"
    )

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError("give exactly one of the keys env and file")
        return self

    def __str__(self) -> str:
        return f"{{env: {self.env}}}" if self.env else f"{{file: {self.file}}}"

    def value(self) -> str:
        """The text itself.

        Raises:
            SetupError: it is not there, or empty.
        """
        if self.env:
            found, where = os.environ.get(self.env, ""), f"${self.env}"
            hint = f"export {self.env}, and start dutperf again"
        else:
            where, hint = str(self.file), "put it there, in the first line"
            try:
                with Path(where).open() as file:
                    found = file.readline(_LONGEST_SECRET).rstrip("\r\n")
            except (OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or "it is no text"
                raise SetupError(f"{where} should hold a secret: {why}", hint) from None
        if not found or "\0" in found:
            raise SetupError(f"{where} should hold a secret, and holds none", hint)
        return found


def _secret_kind(value: Any) -> str:  # noqa: ANN401 - raw YAML
    return "hidden" if isinstance(value, dict | Secret) else "plain"


_Plain = TypeVar("_Plain")
MaybeSecret = Annotated[
    Annotated[_Plain, Tag("plain")] | Annotated[Secret, Tag("hidden")],
    Discriminator(_secret_kind),
]


@dataclass(frozen=True, eq=False)
class Short:
    """Marks a block of keys that may also be written as one value.

    Attributes:
        kind: type of that value.
        expand: makes the block of it; ValueError if it cannot.
        schema: JSON schema of the value.
    """

    kind: type
    expand: Callable[[Any], Mapping[str, Any]]
    schema: Mapping[str, Any]

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            self._block, handler(source)
        )

    def __get_pydantic_json_schema__(
        self, block: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"anyOf": [dict(self.schema), handler(block)]}

    def _block(self, value: Any) -> Any:  # noqa: ANN401 - raw YAML
        return self.expand(value) if type(value) is self.kind else value


class Listed:
    """Marks a list that may also be written as its only entry."""

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            self._listed, handler(source)
        )

    def __get_pydantic_json_schema__(
        self, listed: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        schema = handler(listed)
        return {"anyOf": [schema["items"], schema]}

    def _listed(self, value: Any) -> Any:  # noqa: ANN401 - raw YAML
        return value if isinstance(value, list) else [value]


T = TypeVar("T")
OneOrMore = Annotated[list[T], Field(min_length=1), Listed()]


def repeated(values: Sequence[object]) -> int | None:
    """Index of the first of ``values`` that stands before it already."""
    return next((n for n, value in enumerate(values) if value in values[:n]), None)


def distinct(values: list[T]) -> list[T]:
    """``values``, none of which is listed twice.

    Raises:
        ValueError: one is.
    """
    twice = repeated(values)
    if twice is not None:
        value = values[twice]
        shown = f"{value:g}" if isinstance(value, float) else value
        raise ValueError(f"must not list {shown} twice")
    return values


def _as_text(value: Any) -> Any:  # noqa: ANN401 - raw YAML
    return str(value) if type(value) in (int, float) else value


NumberAsText = BeforeValidator(_as_text)
"""YAML reads the 1000 of "resolution: 1000" as a number."""


_LABELS = 2**20
_LABEL = "[0-9]{1,7}"


def label_or(word: str) -> AfterValidator:
    """A flow label of IPv6 as text, or ``word``."""

    def check(text: str) -> str:
        is_number = re.fullmatch(_LABEL, text) and int(text) < _LABELS
        if text != word and not is_number:
            raise ValueError(
                f"must be 0 to {_LABELS - 1}, or {word}, not {text[:40]!r}"
            )
        return text

    return AfterValidator(check)


def label_schema(word: str) -> WithJsonSchema:
    """The same for other programs."""
    return WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": f"^({_LABEL}|{word})$"},
                {"type": "integer", "minimum": 0, "exclusiveMaximum": _LABELS},
            ]
        }
    )


def _matches(pattern: str, sentence: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"{sentence}, not {text!r}")
        return text

    return AfterValidator(check)


def _shape(pattern: str) -> Any:  # noqa: ANN401 - pydantic's own return type
    # Editors get the pattern through the schema; people get the sentence.
    return Field(json_schema_extra={"pattern": f"^{pattern}$"})


_NAME = "[A-Za-z0-9_][A-Za-z0-9._-]{0,63}"
_QUESTION = "\\S[^\\n\\r\\t]{0,79}"
_INTERFACE = "[^\\s/:,]{1,15}"
"""A comma would begin another argument of DPDK's driver."""
_PCI = "[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-7]"


def _joined(value: Any) -> Any:  # noqa: ANN401 - raw YAML
    """Words of a name become one: results and namespaces are called so."""
    return "-".join(value.split()) if isinstance(value, str) else value


Name = Annotated[
    str,
    BeforeValidator(_joined),
    _matches(
        _NAME,
        "must be 1 to 64 letters, digits, '.', '_' or '-', the first a letter or digit",
    ),
    _shape(_NAME),
]
Question = Annotated[
    str,
    _matches(_QUESTION, "must be a line of 1 to 80 characters"),
    _shape(_QUESTION),
]
InterfaceName = Annotated[
    str,
    _matches(
        _INTERFACE,
        "must be the name of an interface, at most 15 characters without a comma "
        "(see: ip link)",
    ),
    _shape(_INTERFACE),
]
PciAddress = Annotated[
    str,
    _matches(
        _PCI, "must be a PCI address like 0000:03:00.1, lower case (see: lspci -D)"
    ),
    _shape(_PCI),
]


def _ip_checker(version: int) -> Callable[[str], str]:
    def check(text: str) -> str:
        try:
            address = ipaddress.ip_address(text)
        except ValueError:
            raise ValueError(f"must be an IPv{version} address, not {text!r}") from None
        if address.version != version:
            raise ValueError(
                f"must be an IPv{version} address; {text} is IPv{address.version}"
            )
        if _not_a_host(address):
            raise ValueError(f"must be the unicast address of one host, not {text}")
        return str(address)

    return check


def _not_a_host(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    scope = getattr(address, "scope_id", None)
    broadcast = str(address) == "255.255.255.255"
    special = address.is_multicast or address.is_unspecified or address.is_loopback
    return special or broadcast or scope is not None


Ipv4 = Annotated[
    str,
    AfterValidator(_ip_checker(4)),
    Field(json_schema_extra={"format": "ipv4"}),
]
Ipv6 = Annotated[
    str,
    AfterValidator(_ip_checker(6)),
    Field(json_schema_extra={"format": "ipv6"}),
]


# What is wrong with a key, as data: the sentence is made where it is told.


Keys = tuple[str | int, ...]
"""Where a value stands: keys of blocks and indices of lists, from the top."""


@dataclass(frozen=True)
class Problem:
    """One thing wrong with a document: where, what (a sentence), what to do."""

    keys: Keys
    what: str
    hint: str = ""


class KeyedError(InputError, ValueError):
    """A value that cannot be used; ``keys`` lead to it from the block that was checked.

    A ValueError as well, so that a model may raise it while it is being made.
    """

    def __init__(self, keys: Keys, what: str, hint: str = "") -> None:
        super().__init__(f"{dotted(keys)}: {what}", hint, dotted(keys))
        self.keys = keys
        self.what = what


class CampaignError(InputError):
    """A campaign that can be read, but not measured where it says.

    It names the campaign and the key; with ``located`` around also file and line.
    """

    def __init__(self, campaign: str, problem: Problem) -> None:
        key = dotted(problem.keys)
        said = f"campaign {campaign}: {key}: {problem.what}"
        super().__init__(said, problem.hint, key)
        self.problem = problem


def dotted(keys: Keys) -> str:
    """``left.ipv4.address``, ``procedures[0].frame_size``."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{printable(key)}"
    return text.removeprefix(".")


def printable(key: str) -> str:
    """``key`` as a message names it: short, on one line."""
    return shortened(key if key.isprintable() and key else repr(key))


def shortened(text: str) -> str:
    """``text``, of at most 60 characters."""
    return text if len(text) <= 60 else f"{text[:57]}..."


# A list of objects that may also be written as numbers, or as one of them.
#
# vlan: 10     vlan: [10, 100]     vlan: [{id: 10, pcp: 5}]


@dataclass(frozen=True)
class Shorthand:
    """Marks such a list; a number stands for its object's ``key``.

    least, most: range of the key, for the schema.
    complete: what is left out of several objects, if anything is.
    pattern: of a text that stands for the key, too, for the schema; complete reads it.
    """

    key: str
    least: int
    most: int
    complete: Callable[[list[Any]], list[Any]] = lambda objects: objects
    pattern: str | None = None

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(
            self._listed, handler(source)
        )

    def __get_pydantic_json_schema__(
        self, listed: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        schema = handler(listed)
        short: list[Any] = [
            {"type": "integer", "minimum": self.least, "maximum": self.most}
        ]
        if self.pattern:
            short.append({"type": "string", "pattern": f"^({self.pattern})$"})
        one: dict[str, list[Any]] = {"anyOf": [*short, schema["items"]]}
        return {"anyOf": [*one["anyOf"], schema | {"items": one}]}

    def _listed(self, value: Any) -> Any:  # noqa: ANN401 - raw YAML
        listed = value if isinstance(value, list) else [value]
        return self.complete(
            [{self.key: each} if _is_number(each) else each for each in listed]
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


# What keys of a search may say: widths, repeats, goals.


Search = Literal["narrowed", "classic", "verified", "mlrsearch"]
Auto = Literal["auto"]
AUTO: Auto = "auto"

_MOST_REPEATS = 1000
_GOAL = r"([0-9]{1,2}(?:\.[0-9]{1,7})?)%?(?::([0-9]{1,2}(?:\.[0-9]{1,7})?)%?)?"


def _check_width(text: str) -> str:
    if not re.fullmatch(r"[0-9]{1,12}|[0-9]{1,3}(\.[0-9]{1,9})?%", text):
        raise ValueError(
            "must be a percentage like '0.1%' or whole frames per second like 1000, "
            f"not {text!r}"
        )
    number = float(text.removesuffix("%"))
    if number == 0:
        raise ValueError("must be above 0: no search can end there")
    if text.endswith("%") and number >= 100:
        raise ValueError(f"must be below 100%, not {text}")
    return text


Width = Annotated[
    str,
    NumberAsText,
    AfterValidator(_check_width),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?%$|^[0-9]+$"},
                {"type": "integer", "minimum": 1},
            ]
        }
    ),
]
"""How close two rates must come."""


def _check_repeats(value: Any) -> Any:  # noqa: ANN401 - raw YAML
    if value == AUTO or (type(value) is int and 1 <= value <= _MOST_REPEATS):
        return value
    raise ValueError(
        f"must be a whole number from 1 to {_MOST_REPEATS}, or auto, not {value!r}"
    )


RepeatCount = Annotated[
    int | Auto,
    PlainValidator(_check_repeats),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 1, "maximum": _MOST_REPEATS},
                {"const": AUTO},
            ]
        }
    ),
]


def _check_looks(number: int) -> int:
    if number not in LOOKS:
        known = ", ".join(map(str, LOOKS))
        raise ValueError(f"must be one of {known}, not {number}")
    return number


MostRepeats = Annotated[int, AfterValidator(_check_looks)]


class GoalSpec(Strict):
    """What a rate must hold to be a result of MLRsearch (RFC 9971 4.6)."""

    loss_percent: Annotated[float, Field(ge=0, lt=100)] = Field(
        default=0, description="how much of a trial's frames may be lost, in percent"
    )
    exceed_percent: Annotated[float, Field(ge=0, lt=100)] = Field(
        default=0,
        description="in how much of the time more may be lost, in percent",
    )
    duration_sum_s: Annotated[float, Field(gt=0, le=864_000)] | None = Field(
        default=None,
        description="how long a rate is measured until it is decided; default: one "
        "trial, or as many as it takes to tolerate one that lost more",
    )

    def duration_sum(self, trial_s: float) -> float:
        """In seconds, with trials of ``trial_s``."""
        if self.duration_sum_s is not None:
            return self.duration_sum_s
        if not self.exceed_percent:
            return trial_s
        return trial_s * math.ceil(100 / Fraction(str(self.exceed_percent)))


def _goal(text: str) -> Mapping[str, Any]:
    found = re.fullmatch(_GOAL, text.strip())
    if not found:
        raise ValueError(
            "must be the loss that is tolerated, and in how much of the time it may be "
            f"more: 0, 0.5% or 0.5%:50%, not {text!r}"
        )
    loss, exceed = found.groups()
    return {"loss_percent": float(loss), "exceed_percent": float(exceed or 0)}


Goal = Annotated[
    GoalSpec,
    Short(kind=str, expand=_goal, schema={"type": "string", "pattern": f"^{_GOAL}$"}),
]
