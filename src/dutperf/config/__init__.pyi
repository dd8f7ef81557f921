from .campaign import Campaign, Preset, filled, with_preset
from .deviations import deviations
from .document import located
from .expansion import PlannedTestbed, between, expand, resolved, resolved_again
from .loader import from_data, json_schemas, load_campaign, load_testbed, spec_from
from .rate_sources import with_sources
from .sizes import size_notices
from .testbed import Testbed
from .warnings import conformance_of, notices

__all__ = [
    "Campaign",
    "PlannedTestbed",
    "Preset",
    "Testbed",
    "between",
    "conformance_of",
    "deviations",
    "expand",
    "filled",
    "from_data",
    "json_schemas",
    "load_campaign",
    "load_testbed",
    "located",
    "notices",
    "resolved",
    "resolved_again",
    "size_notices",
    "spec_from",
    "with_preset",
    "with_sources",
]
