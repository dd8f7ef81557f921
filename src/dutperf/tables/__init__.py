"""Tables of results, made once: the terminal and the report only render them."""

from dutperf.tables.subject import (
    DOUBTS,
    Subject,
    full_length,
    subjects,
)
from dutperf.tables.table_model import (
    Column,
    Entry,
    Row,
    Span,
    State,
    Style,
    Table,
    Value,
    Verdict,
    state_word,
)

__all__ = [
    "DOUBTS",
    "Column",
    "Entry",
    "Row",
    "Span",
    "State",
    "Style",
    "Subject",
    "Table",
    "Value",
    "Verdict",
    "full_length",
    "state_word",
    "subjects",
]
