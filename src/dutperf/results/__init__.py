"""Stored results: the directory of a run, its files, and how to read them again."""

from dutperf.results.directory import (
    ResultsDirectory,
    load_campaign,
    load_environment,
    load_results,
)
from dutperf.results.environment import Environment, PortRecord, collect_environment
from dutperf.results.journal import JournalContents, JournalHeader, load_journal
from dutperf.results.model import (
    RESULTS_SCHEMA_VERSION,
    CellResult,
    DelayRecord,
    Deviation,
    Figure,
    Finding,
    FrameCount,
    GoalResult,
    HookRun,
    LoadPoint,
    Measure,
    RepeatResult,
    ResultsFile,
    Settlement,
    Spread,
    TimeoutLoss,
    TrialRecord,
    ValueGroup,
)
from dutperf.results.spread import spread_of

__all__ = [
    "RESULTS_SCHEMA_VERSION",
    "CellResult",
    "DelayRecord",
    "Deviation",
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
    "PortRecord",
    "RepeatResult",
    "ResultsDirectory",
    "ResultsFile",
    "Settlement",
    "Spread",
    "TimeoutLoss",
    "TrialRecord",
    "ValueGroup",
    "collect_environment",
    "load_campaign",
    "load_environment",
    "load_journal",
    "load_results",
    "spread_of",
]
