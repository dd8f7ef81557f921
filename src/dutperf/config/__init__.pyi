from .campaign import Campaign
from .cell import Cell
from .conformance import conformance_of
from .deviating import deviations
from .document import located
from .expansion import expand, resolved, resolved_again
from .file_schemas import json_schemas
from .loader import from_data, load_campaign, load_testbed, spec_from
from .noticing import notices
from .planned_testbed import PlannedTestbed
from .presets import Preset, preset_keys, with_preset
from .problem import CampaignError
from .rate_sources import with_sources
from .specs import ProcedureSpec
from .standard_sizes import size_notices
from .testbed import Testbed

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
