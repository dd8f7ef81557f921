"""Where a campaign is measured: one testbed or several, told apart by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from config_samples import TESTBED_YAML, make_campaign, make_testbed
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from dutperf.config import (
    Testbed,
    expand,
    json_schemas,
    load_campaign,
    located,
    resolved,
)
from dutperf.errors import InputError
from dutperf.model.fields import CampaignError

THROUGHPUT = {"procedure": "throughput", "ip": [4]}
LOSS = {"procedure": "frame-loss", "ip": [6]}
LABS = ["left-lab", "right-lab"]
CAMPAIGN = """\
name: x
lab: [left-lab, right-lab]
procedures:
- procedure: throughput
  ip: [4]
- procedure: frame-loss
"""


def benches(*names: str, **changes: object) -> list[Testbed]:
    return [make_testbed(name=name, **changes) for name in names or LABS]


def refused(path: Path, text: str, *found: Testbed) -> str:
    """What is said of a campaign file, without its name."""
    path = path / "campaign.yaml"
    path.write_text(text)
    with pytest.raises(InputError) as caught, located(path):
        expand(load_campaign(path), *(found or benches()))
    return caught.value.message.replace(f"{path}:", "")


def test_cells_of_a_testbed_stand_together_and_bear_its_name() -> None:
    cells = expand(make_campaign(THROUGHPUT, LOSS, lab=LABS), *benches())
    assert [(cell.testbed, cell.id) for cell in cells] == [
        (name, f"{cell}@{name}")
        for name in LABS
        for cell in ("throughput-ip4-64-both", "frame-loss-ip6-84-both")
    ]


def test_with_one_testbed_ids_are_what_they_always_were() -> None:
    for lab in ("left-lab", ["left-lab"]):
        [cell] = expand(make_campaign(THROUGHPUT, lab=lab), *benches("left-lab"))
        assert (cell.testbed, cell.id) == ("left-lab", "throughput-ip4-64-both")


def test_what_is_left_open_is_as_each_testbed_is() -> None:
    only_4 = make_testbed(name="old").model_dump()
    del only_4["left"]["ipv6"]
    both = make_testbed(name="new", max_rate_fps=5)
    campaign = make_campaign({"procedure": "throughput"}, lab=["old", "new"])
    cells = expand(campaign, Testbed.model_validate(only_4), both)
    assert [(cell.testbed, cell.ip, cell.spec.max_rate_fps) for cell in cells] == [
        ("old", 4, None),
        ("new", 4, 5),
        ("new", 6, 5),
    ]


def test_a_procedure_may_be_for_some_testbeds_only() -> None:
    campaign = make_campaign(THROUGHPUT, {**LOSS, "testbeds": ["right-lab"]}, lab=LABS)
    assert [cell.id for cell in expand(campaign, *benches())] == [
        "throughput-ip4-64-both@left-lab",
        "throughput-ip4-64-both@right-lab",
        "frame-loss-ip6-84-both@right-lab",
    ]


@pytest.mark.parametrize("key", ["lab", "testbed"])
@pytest.mark.parametrize("names", [LABS, LABS[:1]])
def test_the_resolved_campaign_gives_the_same_cells(
    tmp_path: Path, key: str, names: list[str]
) -> None:
    found = benches(*names)
    where: dict[str, Any] = {"lab": names}
    if key == "testbed":
        where = {"lab": None, "testbed": found}
    campaign = make_campaign(
        {**THROUGHPUT, "traffic": [{}, {"name": "many", "addresses": 9}]},
        {**LOSS, "testbeds": names[-1:], "direction": ["both", "forward"]},
        **where,
    )
    data = resolved(campaign, *found)
    path = tmp_path / "campaign.yaml"
    with path.open("w") as file:
        YAML(typ="safe", pure=True).dump(data, file)
    again = load_campaign(path)
    assert expand(again, *found) == expand(campaign, *found)
    assert resolved(again, *found) == data
    assert (again.lab, again.testbeds) == (campaign.lab, campaign.testbeds)


def test_a_lab_with_several_numbers_of_rules_is_several_testbeds(
    tmp_path: Path,
) -> None:
    path = tmp_path / "campaign.yaml"
    several = "lab: [fw, {name: fw, rules: 1}, {name: fw, rules: 25}]"
    path.write_text(CAMPAIGN.replace("lab: [left-lab, right-lab]", several))
    campaign = load_campaign(path)
    names = [keys.testbed_name for keys in campaign.labs]
    assert names == ["fw", "fw-1", "fw-25"]
    data = resolved(campaign, *benches(*names))
    assert data["lab"] == ["fw", *({"name": "fw", "rules": n} for n in (1, 25))]
    assert {tuple(each["testbeds"]) for each in data["procedures"]} >= {tuple(names)}


def test_with_one_testbed_it_is_resolved_as_it_always_was() -> None:
    data = resolved(make_campaign(THROUGHPUT, lab=["left-lab"]), *benches("left-lab"))
    assert data["lab"] == "left-lab"
    assert "testbeds" not in data["procedures"][0]


def test_testbeds_may_be_files_and_blocks(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(TESTBED_YAML)
    inline = make_testbed(name="other").model_dump(exclude_none=True)
    data = {"name": "x", "testbed": ["a.yaml", inline], "procedures": [THROUGHPUT]}
    path = tmp_path / "campaign.yaml"
    with path.open("w") as file:
        YAML(typ="safe", pure=True).dump(data, file)
    assert [t.name for t in load_campaign(path).testbeds] == ["bench", "other"]


@pytest.mark.parametrize(
    "where",
    [{"lab": "a"}, {"lab": ["a", "b"]}, {"testbed": "a"}, {"testbed": ["a", "b.yaml"]}],
)
def test_editors_accept_one_or_several(where: dict[str, Any]) -> None:
    data = {"name": "x", "procedures": [THROUGHPUT | {"testbeds": ["a"]}], **where}
    schema = Draft202012Validator(json_schemas()["campaign"])
    assert list(schema.iter_errors(data)) == []


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("lab: [left-lab, right-lab]", "lab: []", "2: lab: must have at least 1 entry"),
        (
            "lab: [left-lab, right-lab]",
            "testbed: []",
            "2: testbed: must have at least 1 entry",
        ),
        ("lab: [left-lab, right-lab]", "lab: 5", "2: lab: must be a text, not 5"),
        (
            "lab: [left-lab, right-lab]",
            "lab: [left-lab, 5]",
            "2: lab[1]: must be a text, not 5",
        ),
        (
            "lab: [left-lab, right-lab]",
            "lab: [left-lab, {name: right-lab, rules: 0}]",
            "2: lab[1].rules: must be at least 1, not 0",
        ),
        (
            "lab: [left-lab, right-lab]",
            "lab: [left-lab, right-lab]\ncores: al",
            "3: cores: must be a whole number, not 'al'",
        ),
        (
            "lab: [left-lab, right-lab]",
            "lab: {name: left-lab, rule: 1}",
            "2: lab.rule: unknown key; did you mean rules?",
        ),
        (
            "lab: [left-lab, right-lab]",
            "testbed: [a.yaml, 5]",
            "2: testbed[1]: must be a block of keys, not 5",
        ),
        (
            "lab: [left-lab, right-lab]",
            "lab: a\ntestbed: b",
            "1: give exactly one of the keys lab and testbed",
        ),
        (
            "ip: [4]",
            "testbeds: [left-lab, rihgt-lab]",
            (
                "5: procedures[0].testbeds[1]: rihgt-lab is no testbed of this "
                "campaign; did you mean right-lab?"
            ),
        ),
        (
            "ip: [4]",
            "testbeds:\n  - zzz",
            (
                "6: procedures[0].testbeds[0]: zzz is no testbed of this campaign; it "
                "has left-lab, right-lab"
            ),
        ),
        (
            "ip: [4]\n- procedure: frame-loss",
            "testbeds: [left-lab]",
            "2: lab[1]: right-lab is in the testbeds of no procedure",
        ),
        (
            "ip: [4]",
            "testbeds: [left-lab, left-lab]",
            "5: procedures[0].testbeds: must not list left-lab twice",
        ),
        (
            "ip: [4]",
            "frame_size: [128, 1519]",
            (
                "5: procedures[0].frame_size: at left-lab: 1519 does not fit the left "
                "port: its MTU 1500 carries frames of at most 1518 bytes"
            ),
        ),
        (
            "ip: [4]\n- procedure: frame-loss",
            "ip: [4]\n- procedure: throughput\n  ip: [4]",
            "6: procedures[1]: at left-lab: throughput-ip4-64-both@left-lab is listed",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused_with_line_and_testbed(
    tmp_path: Path, old: str, new: str, told: str
) -> None:
    assert old in CAMPAIGN
    assert refused(tmp_path, CAMPAIGN.replace(old, new, 1)).startswith(told)


def test_a_profile_that_a_testbed_cannot_send_is_named_by_its_number(
    tmp_path: Path,
) -> None:
    text = CAMPAIGN.replace("[4]", "[4]\n  traffic:\n  - {}\n  - {name: b, mix: 50/50}")
    new, old = benches()
    sides: dict[str, Any] = {
        side: config.model_copy(update={"ipv6": None})
        for side, config in old.sides.items()
    }
    told = "8: procedures[0].traffic[1].background_ip: at right-lab: IPv6 background is"
    assert refused(tmp_path, text, new, old.model_copy(update=sides)).startswith(told)


def test_the_same_testbed_twice_is_refused(tmp_path: Path) -> None:
    text = CAMPAIGN.replace("right-lab", "left-lab")
    same = benches("left-lab", "left-lab")
    told = "2: lab[1]: left-lab is listed twice: testbeds are told apart by their names"
    assert refused(tmp_path, text, *same) == told


def test_a_testbed_file_that_is_wrong_is_named_by_its_number(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(TESTBED_YAML)
    told = refused(
        tmp_path, CAMPAIGN.replace("lab: [left-lab, right-lab]", "testbed: [a.yaml, b]")
    )
    assert told.startswith("2: testbed[1]: this testbed cannot be used:\n")


def test_without_a_file_the_campaign_is_named() -> None:
    campaign = make_campaign({**THROUGHPUT, "frame_size": [1519]}, lab=LABS)
    with pytest.raises(CampaignError) as caught:
        expand(campaign, *benches())
    told = "campaign quick: procedures[0].frame_size: at left-lab: 1519 does not fit"
    assert caught.value.message.startswith(told)
