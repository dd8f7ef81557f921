"""The key ``vlan`` of a side: a VLAN id, or tags, outermost first.

A number is the id of an 802.1Q tag. Of two tags the outer one is 802.1ad's, unless it
says otherwise: ``[10, 100]`` is 100 inside the service VLAN 10.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from dutperf.protocol import MAX_VLAN_TAGS, SERVICE_VLAN_TPID, VlanTag


class _Shorthand:
    """Marks the list of tags that may also be written as numbers, or as one of them."""

    def __get_pydantic_core_schema__(
        self, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_before_validator_function(_tags, handler(source))

    def __get_pydantic_json_schema__(
        self, tags: CoreSchema, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        schema = handler(tags)
        one = {"anyOf": [{"type": "integer", "minimum": 0, "maximum": 4094}]}
        one["anyOf"].append(schema["items"])
        return {"anyOf": [*one["anyOf"], schema | {"items": one}]}


def _tags(value: Any) -> Any:  # noqa: ANN401 - raw YAML
    listed = value if isinstance(value, list) else [value]
    tags = [{"id": tag} if _is_number(tag) else tag for tag in listed]
    if len(tags) == MAX_VLAN_TAGS and isinstance(tags[0], dict):
        tags[0] = {"tpid": SERVICE_VLAN_TPID} | tags[0]
    return tags


def _is_number(tag: object) -> bool:
    return isinstance(tag, int) and not isinstance(tag, bool)


SideTags = Annotated[
    list[VlanTag],
    Field(max_length=MAX_VLAN_TAGS),
    _Shorthand(),
]
