"""A list of objects that may also be written as numbers, or as one of them.

vlan: 10     vlan: [10, 100]     vlan: [{id: 10, pcp: 5}]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema


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
