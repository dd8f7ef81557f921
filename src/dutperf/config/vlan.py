"""The key ``vlan`` of a side: a VLAN id, a range of them, or tags, outermost first.

A number is the id of an 802.1Q tag. Of two tags the outer one is 802.1ad's, unless it
says otherwise: ``[10, 100]`` is 100 inside the service VLAN 10. The ids of the outer
one may be a range, ``100-199``: each frame has one of these.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from dutperf.config.shorthand import Shorthand
from dutperf.protocol import MAX_VLAN_TAGS, SERVICE_VLAN_TPID, VlanTags

_RANGE = re.compile(r"(\d{1,4})-(\d{1,4})")


def _completed(tags: list[Any]) -> list[Any]:
    tags = [_with_range(tag) for tag in tags]
    if len(tags) == MAX_VLAN_TAGS and isinstance(tags[0], dict):
        tags[0] = {"tpid": SERVICE_VLAN_TPID} | tags[0]
    return tags


def _with_range(tag: Any) -> Any:  # noqa: ANN401 - raw YAML
    found = _RANGE.fullmatch(tag) if isinstance(tag, str) else None
    return {"id": int(found[1]), "last_id": int(found[2])} if found else tag


SideTags = Annotated[
    VlanTags,
    Shorthand("id", 0, 4094, _completed, r"[0-9]{1,4}-[0-9]{1,4}"),
]
