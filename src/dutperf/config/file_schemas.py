"""JSON schemas of the configuration files, for editors that complete and check."""

from __future__ import annotations

from typing import Any

from dutperf.config.campaign import Campaign
from dutperf.config.testbed import Testbed

_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schemas() -> dict[str, dict[str, Any]]:
    """Schemas of ``testbed.yaml`` and ``campaign.yaml``: ``testbed``, ``campaign``."""
    return {
        name: {"$schema": _DIALECT, **model.model_json_schema()}
        for name, model in (("testbed", Testbed), ("campaign", Campaign))
    }
