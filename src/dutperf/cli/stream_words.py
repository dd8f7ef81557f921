"""A stream in lines that stay: one for each piece, and a few at its end."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from dutperf.cli.dry_run import span
from dutperf.cli.stream_view import judgement, rate_words
from dutperf.cli.trial_words import STYLES
from dutperf.results.units import duration
from dutperf.run.stream_counts import DirectionCounts, StreamCounts

_DIGITS = 3
_SHOWN_RATES = 8


def piece_line(elapsed_s: float, counts: StreamCounts) -> Text:
    """The last piece: its verdict, and what became of each direction."""
    record = counts.last
    assert record  # noqa: S101 - there is one
    kind, why = judgement(record)
    told = "; ".join(map(_direction_words, counts.of_last))
    because = f" ({why})" if kind == "invalid" else ""
    return Text.assemble(
        f"{elapsed_s:7.1f} s  {record.load_fps:,} fps: ",
        (kind, STYLES[kind]),
        f"{because}; {told}",
    )


def _direction_words(counts: DirectionCounts) -> str:
    return f"{_frame_words(counts)}, delays {_delay_words(counts)}"


def _frame_words(counts: DirectionCounts) -> str:
    words = f"{counts.name} {counts.sent:,} sent, {counts.lost:,} lost"
    if counts.tester_dropped:
        words += f", {counts.tester_dropped:,} by the tester"
    if counts.damaged:
        words += f", {counts.damaged:,} damaged"
    if counts.foreign:
        words += f", {counts.foreign:,} foreign"
    if counts.icmp:
        told = ", ".join(f"{n:,} {name}" for name, n in counts.icmp.most_common())
        words += f" (of these {told})"
    return words


def _delay_words(counts: DirectionCounts) -> str:
    """Least, median, 99.9 % and greatest."""
    delays = counts.delays
    if delays is None:
        return "none"
    return " / ".join(duration(each_ns, _DIGITS) for each_ns in delays.each)


def summary_lines(name: str, lasted_s: float, counts: StreamCounts) -> Iterator[Text]:
    """The whole stream, whatever was cleared on the way."""
    yield Text(
        f"stream {name}: sent for {span(counts.sending_s)} of {span(lasted_s)}, in "
        f"{counts.pieces:,} piece{'' if counts.pieces == 1 else 's'}"
    )
    for each in counts.all.values():
        yield from (Text(line) for line in _direction_lines(each, counts))
    yield from _rate_lines(counts)
    if counts.invalid:
        codes = ", ".join(code.replace("_", " ") for code in counts.reasons)
        yield Text(
            f"  the tester cannot vouch for {counts.invalid:,} of {counts.pieces:,} "
            f"pieces: {codes}",
            "red",
        )


def _direction_lines(each: DirectionCounts, counts: StreamCounts) -> Iterator[str]:
    yield f"  {_frame_words(each)}"
    yield f"    delays {_delay_words(each)} (least, median, 99.9 %, greatest)"
    silence = counts.silences[each.name]
    least = ">= " if silence.open else ""
    longest = duration(silence.longest_ns, _DIGITS)
    told = f"longest silence {least}{longest}, " if silence.longest_ns else ""
    yield f"    {told}sender's lag at most {duration(each.lag_ns, _DIGITS)}"


def _rate_lines(counts: StreamCounts) -> Iterator[Text]:
    left_out = len(counts.rates) - _SHOWN_RATES
    for used in counts.rates[-_SHOWN_RATES:]:
        yield Text(f"  {rate_words(used)}")
    if left_out > 0:
        yield Text(f"  and {left_out} rates before; --json has all")
