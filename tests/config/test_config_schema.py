"""The schemas that editors use agree with the loader and describe every key."""

from __future__ import annotations

from typing import Any

import pytest
from config_samples import CAMPAIGN_YAML, TESTBED_YAML, bench_data
from jsonschema import Draft202012Validator
from ruamel.yaml import YAML

from dutperf.config import json_schemas

SAMPLES = {"testbed": TESTBED_YAML, "campaign": CAMPAIGN_YAML}


def errors(name: str, data: object) -> list[Any]:
    schema = json_schemas()[name]
    Draft202012Validator.check_schema(schema)
    return list(Draft202012Validator(schema).iter_errors(data))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_good_file_fits_its_schema(name: str) -> None:
    assert errors(name, YAML(typ="safe", pure=True).load(SAMPLES[name])) == []


@pytest.mark.parametrize(
    "change",
    [{"nmae": "x"}, {"name": "a/b"}, {"cores": []}, {"memory_mb": "512"}],
)
def test_a_wrong_testbed_does_not_fit(change: dict[str, Any]) -> None:
    assert errors("testbed", {**bench_data(), **change})


@pytest.mark.parametrize("resolution", ["5%", "1000", 1000])
def test_both_ways_to_write_a_resolution_fit(resolution: str | int) -> None:
    spec = {"procedure": "throughput", "resolution": resolution}
    assert errors("campaign", {"name": "x", "lab": "l", "procedures": [spec]}) == []


@pytest.mark.parametrize("name", SAMPLES)
def test_every_key_is_described(name: str) -> None:
    schema = json_schemas()[name]
    models = [schema, *schema["$defs"].values()]
    bare = [
        key
        for model in models
        for key, value in model.get("properties", {}).items()
        if not value.get("description")
    ]
    assert bare == []
