"""Files of version 0.1, whose procedures all had the keys of all, still work."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from config_samples import make_testbed
from ruamel.yaml import YAML

from dutperf.config import expand, load_campaign, resolved, resolved_again
from dutperf.config.specs import ThroughputSpec
from dutperf.errors import InputError

FORMER = Path(__file__).parent / "former"
ASKED = FORMER / "asked.yaml"
HOOKS = {"bulk_delete": {"command": ["true"]}, "table_count": {"command": ["true"]}}
HEAD = "name: x\nlab: linux-router\nprocedures:\n  - "


def stored() -> dict[str, Any]:
    """What version 0.1 stored of ``ASKED``."""
    with (FORMER / "resolved.yaml").open() as file:
        data: dict[str, Any] = YAML(typ="safe", pure=True).load(file)
    return data


def test_what_was_stored_then_asks_for_what_the_same_file_asks_for_now() -> None:
    testbed = make_testbed(hooks=HOOKS)
    now = resolved(load_campaign(ASKED), testbed)
    assert resolved_again(stored(), testbed) == now
    assert resolved_again(now, testbed) == now


def test_a_stored_campaign_of_then_can_be_run_again(tmp_path: Path) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_text((FORMER / "resolved.yaml").read_text())
    testbed = make_testbed(hooks=HOOKS)
    told: list[str] = []
    ids = [cell.id for cell in expand(load_campaign(path, told.append), testbed)]
    assert ids == [cell.id for cell in expand(load_campaign(ASKED), testbed)]


def test_what_had_no_effect_is_told_with_its_line() -> None:
    told: list[str] = []
    load_campaign(ASKED, told.append)
    lines = ASKED.read_text().splitlines()
    for text in told:
        line, key = text.removeprefix(f"{ASKED}:").split(": ")[:2]
        assert key.rpartition(".")[2] in lines[int(line) - 1]
    keys = [text.split(": ")[1].split(".")[-1] for text in told]
    assert keys == [
        "trial_duration_s",
        "hopeless_loss_percent",
        "resolution",
        "resolution",
        "legacy",
        "residual_wait_s",
    ]


def test_a_key_that_is_called_otherwise_now_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_text(
        "name: x\nlab: [linux-router, nat64]\nprocedures:\n"
        "  - {procedure: throughput, places: [nat64], search: verified,\n"
        "     hopeless_loss_percent: 5}\n"
    )
    told: list[str] = []
    (spec,) = load_campaign(path, told.append).procedures
    assert isinstance(spec, ThroughputSpec)
    assert (spec.testbeds, spec.max_verify_loss_percent) == (["nat64"], 5)
    places, hopeless = (text.removeprefix(f"{path}:") for text in told)
    assert places == "4: procedures[0].places: is called testbeds now: rename it"
    assert hopeless.startswith("5: procedures[0].hopeless_loss_percent: is called max_")


@pytest.mark.parametrize(
    ("procedure", "told"),
    [
        ("{procedure: pdv, rate_fps: 9, tags: 5}", "tags: unknown key: it is of lat"),
        ("{procedure: pdv, rate_fps: 9, legacy: true}", "legacy: unknown key"),
        ("{procedure: throughput, load_percent: [9]}", "load_percent: unknown key"),
        (
            "{procedure: connection-rate, stateful: {connections: 5}, direction: all}",
            "direction: unknown key",
        ),
        (
            "{procedure: connection-rate, stateful: {connections: 5, error: 2}}",
            "stateful.error: unknown key",
        ),
    ],
)
def test_what_was_refused_then_is_refused_now(
    tmp_path: Path, procedure: str, told: str
) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_text(HEAD + procedure)
    with pytest.raises(InputError) as refusal:
        load_campaign(path)
    assert f"procedures[0].{told}" in refusal.value.message
