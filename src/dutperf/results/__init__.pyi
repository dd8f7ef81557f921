from .bounds import limit_words, overall, valued
from .closing_words import Words, closing
from .delay_results import DelayRecord, Figure, FrameCount, Measure
from .directory import (
    ResultsDirectory,
    how_to_go_on,
    load_campaign,
    load_environment,
    load_environments,
    load_results,
    stored_campaign,
)
from .environment import Environment, PortRecord, collect_environment
from .following import JournalFollower, is_running
from .journal import JournalContents, JournalHeader, load_journal
from .model import (
    RESULTS_SCHEMA_VERSION,
    CellResult,
    NotMeasured,
    ResultsFile,
    Scalability,
    ScalabilityPoint,
)
from .points import highest_clean
from .rate_results import (
    Bound,
    BoundCause,
    DirectionLoss,
    Finding,
    GoalResult,
    LoadPoint,
    Media,
    RepeatResult,
    Settlement,
    Spread,
    SpreadFigure,
    TimeoutLoss,
    ValueGroup,
    Withdrawal,
)
from .settled import settled_words, withdrawn_words
from .spread import spread_of
from .trial_record import HookRun, TrialRecord
from .verdict_words import result_word

__all__ = [
    "RESULTS_SCHEMA_VERSION",
    "Bound",
    "BoundCause",
    "CellResult",
    "DelayRecord",
    "DirectionLoss",
    "Environment",
    "Figure",
    "Finding",
    "FrameCount",
    "GoalResult",
    "HookRun",
    "JournalContents",
    "JournalFollower",
    "JournalHeader",
    "LoadPoint",
    "Measure",
    "Media",
    "NotMeasured",
    "PortRecord",
    "RepeatResult",
    "ResultsDirectory",
    "ResultsFile",
    "Scalability",
    "ScalabilityPoint",
    "Settlement",
    "Spread",
    "SpreadFigure",
    "TimeoutLoss",
    "TrialRecord",
    "ValueGroup",
    "Withdrawal",
    "Words",
    "closing",
    "collect_environment",
    "highest_clean",
    "how_to_go_on",
    "is_running",
    "limit_words",
    "load_campaign",
    "load_environment",
    "load_environments",
    "load_journal",
    "load_results",
    "overall",
    "result_word",
    "settled_words",
    "spread_of",
    "stored_campaign",
    "valued",
    "withdrawn_words",
]
