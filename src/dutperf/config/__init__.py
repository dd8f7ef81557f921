"""Configuration: ``testbed.yaml`` and ``campaign.yaml`` as strict models.

Everything that can be known to be wrong before the first frame is refused here, with
file, line, key and remedy.
"""

from dutperf.config.campaign import Campaign
from dutperf.config.cell import Cell
from dutperf.config.conformance import conformance_of
from dutperf.config.deviations import deviations
from dutperf.config.document import located
from dutperf.config.expand import expand, resolved, resolved_again
from dutperf.config.file_schemas import json_schemas
from dutperf.config.loader import from_data, load_campaign, load_testbed, spec_from
from dutperf.config.notices import notices
from dutperf.config.planned_testbed import PlannedTestbed
from dutperf.config.presets import Preset, preset_keys, with_preset
from dutperf.config.problem import CampaignError
from dutperf.config.rate_sources import with_sources
from dutperf.config.specs import ProcedureSpec
from dutperf.config.standard_sizes import size_notices
from dutperf.config.testbed import Testbed

__all__ = [
    "Campaign",
    "CampaignError",
    "Cell",
    "PlannedTestbed",
    "Preset",
    "ProcedureSpec",
    "Testbed",
    "conformance_of",
    "deviations",
    "expand",
    "from_data",
    "json_schemas",
    "load_campaign",
    "load_testbed",
    "located",
    "notices",
    "preset_keys",
    "resolved",
    "resolved_again",
    "size_notices",
    "spec_from",
    "with_preset",
    "with_sources",
]
