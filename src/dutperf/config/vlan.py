"""The key ``vlan`` of a side: a VLAN id, or tags, outermost first.

A number is the id of an 802.1Q tag. Of two tags the outer one is 802.1ad's, unless it
says otherwise: ``[10, 100]`` is 100 inside the service VLAN 10.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from dutperf.config.shorthand import Shorthand
from dutperf.protocol import MAX_VLAN_TAGS, SERVICE_VLAN_TPID, VlanTag


def _with_service_tag(tags: list[Any]) -> list[Any]:
    if len(tags) == MAX_VLAN_TAGS and isinstance(tags[0], dict):
        tags[0] = {"tpid": SERVICE_VLAN_TPID} | tags[0]
    return tags


SideTags = Annotated[
    list[VlanTag],
    Field(max_length=MAX_VLAN_TAGS),
    Shorthand("id", 0, 4094, _with_service_tag),
]
