"""In how many shares a direction's work is split, by the testbed's cores."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from dutperf.config.testbed import Testbed


def on_ports(kind: str, **keys: object) -> Testbed:
    ports: dict[str, Any] = {
        side: {"ring": True} if kind == "ring" else {"interface": f"eth-{side}"}
        for side in ("left", "right")
    }
    sides = {
        side: {"port": ports[side], "ipv4": {"address": own, "gateway": other}}
        for side, own, other in (
            ("left", "198.18.0.2", "198.19.0.2"),
            ("right", "198.19.0.2", "198.18.0.2"),
        )
    }
    return Testbed.model_validate({"name": "t", **sides, **keys})


@pytest.mark.parametrize(
    ("cores", "shares"), [(1, 1), (2, 1), (4, 1), (5, 2), (8, 2), (9, 3), (32, 8)]
)
def test_they_are_a_quarter_of_the_cores_unless_told(cores: int, shares: int) -> None:
    assert on_ports("ring", cores=list(range(cores))).own_shares == shares
    assert on_ports("ring", cores=list(range(cores)), shares=32).own_shares == 32


def test_more_cores_than_they_keep_busy_are_refused() -> None:
    with pytest.raises(ValidationError, match="9 of them, and 2 shares keep 8 busy"):
        on_ports("ring", cores=list(range(9)), shares=2)


def test_an_interface_has_one_queue() -> None:
    assert on_ports("interface", cores=[0, 1, 2, 3]).own_shares == 1
    with pytest.raises(ValidationError, match="eth-left is an interface of the kernel"):
        on_ports("interface", cores=[0, 1, 2, 3, 4])
    with pytest.raises(ValidationError, match="take shares out"):
        on_ports("interface", shares=2)
