"""What ``testbed.yaml`` says of the device: its agent, its routing, its parameters."""

from __future__ import annotations

import re
from typing import Annotated, Self

from pydantic import Field, model_validator

from dutperf.config.fields import MaybeSecret, Secret, Strict
from dutperf.config.problem import KeyedError
from dutperf.errors import SetupError

COMMUNITY_VARIABLE = "DUTPERF_SNMP_COMMUNITY"
"""Where a stored campaign looks for a community that its testbed's file had itself."""
_COMMUNITY = r"^[!-~]{1,32}$"


class SnmpAgent(Strict):
    """The DUT's SNMP agent, which traffic.management asks."""

    community: MaybeSecret[Annotated[str, Field(pattern=_COMMUNITY)]] = Field(
        default="public",
        description="of version 2c, that may read; {env: NAME} or {file: PATH}: looked "
        "up there",
    )
    interface: Annotated[int, Field(ge=1, le=2**31 - 1)] = Field(
        default=1, description="ifIndex of the one whose counters are asked for"
    )

    @property
    def stored(self) -> SnmpAgent:
        """As results have it: the name of a place instead of a community."""
        if self.community == "public" or isinstance(self.community, Secret):
            return self
        return self.model_copy(update={"community": Secret(env=COMMUNITY_VARIABLE)})

    def secret(self) -> str:
        """The community, wherever it is.

        Raises:
            SetupError: it is not there, or could be none.
        """
        if isinstance(self.community, str):
            return self.community
        found = self.community.value()
        if not re.match(_COMMUNITY, found):
            raise SetupError(
                f"snmp.community: {self.community} is no community",
                "it has 1 to 32 ASCII characters and no blanks",
            )
        return found


class Ospf(Strict):
    """How the DUT speaks OSPF (RFC 2328, RFC 5340), as its neighbours must."""

    area: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        default=0, description="of both links; 0: the backbone"
    )
    hello_s: Annotated[int, Field(ge=1, le=65535)] = Field(
        default=10, description="interval between hellos"
    )
    dead_s: Annotated[int, Field(ge=2, le=65535)] = Field(
        default=40, description="without a hello for so long a neighbour is gone"
    )

    @model_validator(mode="after")
    def _lives_longer_than_a_hello(self) -> Self:
        if self.dead_s <= self.hello_s:
            raise KeyedError(("dead_s",), "must be more than hello_s")
        return self


_As = Annotated[int, Field(ge=1, le=2**32 - 2)]


class Bgp(Strict):
    """How the DUT speaks BGP with the tester (RFC 4271), over either IP version."""

    tester_as: _As = Field(default=65001, description="AS of the tester on both sides")
    device_as: _As = Field(default=65000, description="the DUT's")
    hold_s: Annotated[int, Field(ge=3, le=65535)] = Field(
        default=90, description="without a message for so long a session is closed"
    )


class Routing(Strict):
    """How the DUT speaks the protocol of traffic.routes with its neighbours."""

    prefix_length: Annotated[int, Field(ge=8, le=30)] = Field(
        default=24, description="of the IPv4 networks on the links; of IPv6 it is 64"
    )
    ospf: Ospf = Field(default=Ospf(), description="for traffic.routes: ospf")
    bgp: Bgp = Field(default=Bgp(), description="for traffic.routes: bgp")


class DeviceFacts(Strict):
    """What RFC 9693 6 asks to be told of a DUT that is a general-purpose computer."""

    computer: str | None = Field(default=None, description="its type")
    cpu: str | None = Field(default=None, description="type of the CPU")
    cores: str | None = Field(default=None, description="how many cores are active")
    memory: str | None = Field(default=None, description="type, size and speed")
    nic: str | None = Field(default=None, description="type of the NIC, with its speed")
    link: str | None = Field(
        default=None, description="direct cables, or the type of the switch"
    )
    os: str | None = Field(default=None, description="type and version")
    kernel: str | None = Field(default=None, description="its version")
    nat: str | None = Field(
        default=None, description="version; of one without, last commit and its date"
    )

    @property
    def told(self) -> dict[str, str]:
        """Those that are known."""
        return {key: value for key, value in self if value is not None}

    @property
    def missing(self) -> tuple[str, ...]:
        """The others."""
        return tuple(key for key, value in self if value is None)
