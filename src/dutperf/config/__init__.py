"""Configuration: ``testbed.yaml`` and ``campaign.yaml`` as strict models.

Everything that can be known to be wrong before the first frame is refused here, with
file, line, key and remedy.
"""

from dutperf.config.campaign import Campaign, Cell, ProcedureSpec
from dutperf.config.compliance import Compliance, compliance
from dutperf.config.conformance import Shortfall, deviations
from dutperf.config.document import CampaignError, located
from dutperf.config.expand import expand, resolved
from dutperf.config.loader import from_data, load_campaign, load_testbed
from dutperf.config.loads import with_sources
from dutperf.config.media import media_rate_fps
from dutperf.config.notices import notices
from dutperf.config.place import Place
from dutperf.config.presets import Preset, preset_keys, with_preset
from dutperf.config.schema import json_schemas
from dutperf.config.standard_sizes import size_notices
from dutperf.config.testbed import Testbed

__all__ = [
    "Campaign",
    "CampaignError",
    "Cell",
    "Compliance",
    "Place",
    "Preset",
    "ProcedureSpec",
    "Shortfall",
    "Testbed",
    "compliance",
    "deviations",
    "expand",
    "from_data",
    "json_schemas",
    "load_campaign",
    "load_testbed",
    "located",
    "media_rate_fps",
    "notices",
    "preset_keys",
    "resolved",
    "size_notices",
    "with_preset",
    "with_sources",
]
