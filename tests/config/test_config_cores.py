"""A campaign's key cores: a testbed for each number, set by the hook set_cores."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest
from planning import TESTBED
from pydantic import ValidationError

from dutperf import lab
from dutperf.api.places import planned_testbeds
from dutperf.config import Campaign, expand, load_campaign
from dutperf.config.campaign import LabKeys
from dutperf.config.expansion import resolved
from dutperf.config.testbed import Hook, Hooks, Testbed
from dutperf.errors import InputError
from dutperf.lab.processes import (
    core_numbers,
    cpus_of_mask,
    dut_cpus,
    plan_cpus,
    rps_mask,
)
from dutperf.model.fields import CampaignError

SET = Hook(command=["ssh-less", "--online", "{cores}", "of={cores}"])
FIRST = Hook(command=["first"])


def campaign(*cores: int, testbed: Testbed | None = None) -> Campaign:
    where = {"testbed": [testbed]} if testbed else {"lab": ["nft-nat44"]}
    return Campaign.model_validate(
        {
            "name": "cores",
            "cores": list(cores),
            "procedures": [{"procedure": "throughput"}],
            **where,
        }
    )


def bench(set_cores: Hook | None = SET) -> Testbed:
    hooks = Hooks(set_cores=set_cores, before_campaign=[FIRST])
    return TESTBED.model_copy(update={"hooks": hooks})


def test_each_number_is_a_testbed_that_sets_it_first() -> None:
    chosen = campaign(1, 8, testbed=bench())
    planned = planned_testbeds(chosen)
    name = TESTBED.name
    assert [p.name for p in planned] == [f"{name}-1cores", f"{name}-8cores"]
    for number, each in zip((1, 8), planned, strict=True):
        ran, first = each.testbed.hooks.before_campaign
        assert ran.command == ["ssh-less", "--online", str(number), f"of={number}"]
        assert first == FIRST
        assert each.testbed.device.cores == str(number)
        assert f"set to {number} active core" in each.testbed.description
    cells = expand(chosen, *(p.testbed for p in planned))
    assert list(dict.fromkeys(c.testbed for c in cells)) == [p.name for p in planned]


def test_what_is_resolved_gives_the_same_testbeds_again() -> None:
    for chosen in (campaign(1, 2, testbed=bench()), campaign(1), campaign(1, 1000)):
        planned = planned_testbeds(chosen)
        beds = [p.testbed for p in planned]
        again = Campaign.model_validate(resolved(chosen, *beds), strict=True)
        assert [p.testbed for p in planned_testbeds(again)] == beds
        assert [p.name for p in planned_testbeds(again)] == [p.name for p in planned]


def test_a_number_of_cores_is_listed_once() -> None:
    with pytest.raises(ValidationError, match="must not list 2 twice"):
        campaign(2, 1, 2)


def test_a_device_whose_cores_nobody_sets_is_refused() -> None:
    with pytest.raises(CampaignError, match="no hook set_cores"):
        planned_testbeds(campaign(2, testbed=bench(None)))
    known = campaign(2).model_copy(update={"lab": [LabKeys(name="known-answer")]})
    with pytest.raises(CampaignError, match="no hook set_cores"):
        planned_testbeds(known)


def test_all_are_as_many_as_the_machine_has_and_only_where_they_can_be_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lab, "core_numbers", lambda: [1, 2, 3])
    chosen = Campaign.model_validate(
        {
            "name": "cores",
            "cores": "all",
            "lab": ["nft-nat44", "known-answer"],
            "procedures": [
                {"procedure": "throughput", "testbeds": ["nft-nat44"]},
                {"procedure": "frame-loss", "testbeds": ["known-answer"]},
            ],
        }
    )
    planned = planned_testbeds(chosen)
    names = [*(f"nft-nat44-{n}cores" for n in (1, 2, 3)), "known-answer"]
    assert [each.name for each in planned] == names
    beds = [each.testbed for each in planned]
    assert {(c.procedure, c.testbed) for c in expand(chosen, *beds)} == {
        *(("throughput", name) for name in names[:3]),
        ("frame-loss", "known-answer"),
    }
    stored = resolved(chosen, *beds)
    assert stored["cores"] == [1, 2, 3]
    again = Campaign.model_validate(stored, strict=True)
    assert [p.testbed for p in planned_testbeds(again)] == beds
    assert expand(again, *beds) == expand(chosen, *beds)


def test_all_of_a_device_elsewhere_are_not_known() -> None:
    data = campaign(1, testbed=bench()).model_dump(exclude_unset=True)
    with pytest.raises(ValidationError, match="all is for labs"):
        Campaign.model_validate(data | {"cores": "all"})


@pytest.mark.parametrize(
    ("usable", "expected"),
    [([0, 1], [1]), (range(7), [1, 2, 4]), (range(9), [1, 2, 4, 6])],
)
def test_all_are_powers_of_two_and_the_last(
    usable: Collection[int], expected: list[int]
) -> None:
    assert core_numbers(usable) == expected


def test_one_cpu_is_not_the_devices_alone() -> None:
    with pytest.raises(InputError, match="one CPU"):
        core_numbers([5])


def test_the_example_is_a_campaign() -> None:
    path = Path(__file__).parents[2] / "examples" / "scalability.yaml"
    loaded = load_campaign(path)
    assert [p.name for p in planned_testbeds(loaded)] == ["nft-nat44-1cores"]


@pytest.mark.parametrize("cpus", [(0, 31), (5,), (31, 32), (64, 3, 95), range(96)])
def test_a_mask_holds_all_its_cpus(cpus: tuple[int, ...]) -> None:
    assert cpus_of_mask(rps_mask(*cpus)) == sorted(cpus)


@pytest.mark.parametrize(
    ("usable", "expected"),
    [([0], []), ([0, 1], [1]), (range(4), [3]), (range(8), [7, 5, 4, 3, 2])],
)
def test_the_device_has_no_cpu_that_the_tester_needs(
    usable: list[int], expected: list[int]
) -> None:
    assert dut_cpus(plan_cpus(usable), usable) == expected


def test_labs_of_the_kernel_can_be_told() -> None:
    for name in ("linux-router", "nft-nat44"):
        command = lab.plan(name).hooks.set_cores
        assert command
        assert "{cores}" in command.command
