"""Stored results: the directory of a run, its files, and how to read them again."""

from dutperf.results.bounds import limit_words, overall, valued
from dutperf.results.closing import Words, closing
from dutperf.results.delay_results import DelayRecord, Figure, FrameCount, Measure
from dutperf.results.directory import (
    ResultsDirectory,
    how_to_go_on,
    load_campaign,
    load_environment,
    load_environments,
    load_results,
    stored_campaign,
)
from dutperf.results.environment import Environment, PortRecord, collect_environment
from dutperf.results.journal import JournalContents, JournalHeader, load_journal
from dutperf.results.model import (
    RESULTS_SCHEMA_VERSION,
    CellResult,
    NotMeasured,
    ResultsFile,
    Scalability,
    ScalabilityPoint,
)
from dutperf.results.points import highest_clean
from dutperf.results.rate_results import (
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
from dutperf.results.scalability import scalability
from dutperf.results.settled import settled_words, withdrawn_words
from dutperf.results.spread import spread_of
from dutperf.results.trial_record import HookRun, TrialRecord
from dutperf.results.verdict_words import result_word

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
    "limit_words",
    "load_campaign",
    "load_environment",
    "load_environments",
    "load_journal",
    "load_results",
    "overall",
    "result_word",
    "scalability",
    "settled_words",
    "spread_of",
    "stored_campaign",
    "valued",
    "withdrawn_words",
]
