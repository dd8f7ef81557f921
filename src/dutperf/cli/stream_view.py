"""A stream on a terminal: each direction's counters and delays, and whose loss it is.

All in the table is of pieces that have ended, and exact. Of the piece that runs the
engine tells how many frames of both directions were sent and received so far, and no
more. What the tester may have dropped itself, and a piece that it cannot vouch for, is
red; what the device lost is yellow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from textwrap import wrap

from rich.text import Text

from dutperf.cli.live_view import STYLES, WIDTH, span
from dutperf.cli.stream_keys import HELP, SHORT_HELP
from dutperf.procedures.max_rate import MaxRate
from dutperf.protocol.base import DirectionName
from dutperf.protocol.result_messages import VerdictKind
from dutperf.protocol.trial_messages import TrialProgress
from dutperf.results.trial_record import TrialRecord
from dutperf.results.units import about, duration, whole
from dutperf.run.stream_counts import DirectionCounts, RateUsed, StreamCounts, sending_s
from dutperf.visible import visible

LOST_BY_TESTER, LOST_BY_DEVICE = "red", "yellow"
_LABEL, _COLUMN = 15, 15
_RATES_FROM, _RATES_WIDTH = 120, 44
"""The rates that were used stand beside the table of a terminal as wide as this."""
_SHOWN_RATES = 14
_ROOMY = 24
_DIGITS = 3
_REASON_LINES = 2
_NOT_YET = "-"
_WAYS: dict[DirectionName, str] = {
    "forward": "forward, left to right",
    "reverse": "reverse, right to left",
}


@dataclass(frozen=True)
class Screen:
    """What is shown beside the counters.

    frames, place: what is sent, and where.
    rate_fps: of the next piece; ``running_fps``: of the one that runs, None: none does.
    duration_s: when the stream ends; None: when somebody ends it.
    typed: a rate that is being typed; None: none is.
    said: an answer to the last key.
    """

    frames: str
    place: str
    limit: MaxRate
    rate_fps: int
    running_fps: int | None
    running_s: float
    elapsed_s: float
    duration_s: float | None = None
    progress: TrialProgress | None = None
    paused: bool = False
    ending: bool = False
    typed: str | None = None
    said: str = ""
    helps: bool = False


def lines(
    screen: Screen, counts: StreamCounts, columns: int, rows: int = _ROOMY
) -> Iterator[Text]:
    """None is longer than ``columns``; of ``rows`` the table takes what is left."""
    width = min(columns, WIDTH)
    above = [_title(screen, width), _rate(screen)]
    table = _beside(_help() if screen.helps else _table(counts), counts, columns)
    below = [*_whose(counts, width), _running(screen), _answer(screen)]
    left = max(rows - len(above) - len(below), 0)
    for line in (*above, *islice(table, left), *below):
        line.truncate(columns, overflow="crop")
        line.no_wrap = True
        yield line


def _title(screen: Screen, width: int) -> Text:
    of = f" of {span(screen.duration_s)}" if screen.duration_s else ""
    lasts = f"{span(screen.elapsed_s)}{of}"
    name = f"stream {visible(screen.frames)} at {visible(screen.place)}"
    room = max(width - len(lasts), 0)
    return Text(f"{name[: room - 1]:<{room}}{lasts}", "bold")


def _rate(screen: Screen) -> Text:
    told = Text.assemble(
        (f"{screen.rate_fps:,} fps", "bold"),
        " in each direction",
        ""
        if screen.running_fps in {None, screen.rate_fps}
        else ", from the next piece",
        (f" (at most {whole(screen.limit.rate_fps)})", "dim"),
    )
    if screen.paused:
        told.append("  PAUSED", "bold yellow")
    elif screen.ending:
        told.append("  ENDING", "bold yellow")
    return told


def _table(counts: StreamCounts) -> Iterator[Text]:
    """Two columns for each direction: the last piece, and all since the last clear."""
    if not counts.of_last:
        yield Text("the first piece runs; its counters come at its end", "dim")
        return
    totals = [counts.shown.get(each.name) for each in counts.of_last]
    pairs = list(zip(counts.of_last, totals, strict=True))
    yield Text.assemble(
        " " * _LABEL, *(f"{_WAYS[last.name]:>{2 * _COLUMN}}" for last, _ in pairs)
    )
    last_s = sending_s(counts.last) if counts.last else 0.0
    heads = f"{f'last {about(last_s, _DIGITS)} s':>{_COLUMN}}{'total':>{_COLUMN}}"
    yield Text.assemble(" " * _LABEL, heads * len(pairs), style="dim")
    for label, style, value in _ROWS:
        cells = [_NOT_YET if c is None else value(c) for pair in pairs for c in pair]
        if label in _RARE and set(cells) <= _NOTHING:
            continue
        if label in _RATES_OF_LAST:
            cells[1::2] = [""] * len(pairs)
        told = style if any(cell not in _NOTHING for cell in cells[::2]) else ""
        yield Text.assemble(
            f"{label:<{_LABEL}}",
            *((f"{cell:>{_COLUMN}}", told) for cell in cells),
        )


def _delay(place: int) -> Callable[[DirectionCounts], str]:
    def told(counts: DirectionCounts) -> str:
        found = counts.delays
        return duration(found.each[place], _DIGITS) if found else _NOT_YET

    return told


_NOTHING = {"0", "", _NOT_YET}
_RARE = {" came late"}
_RATES_OF_LAST = {"intended fps", "offered fps"}
_ROWS: Sequence[tuple[str, str, Callable[[DirectionCounts], str]]] = (
    ("intended fps", "", lambda c: f"{c.intended_fps:,}"),
    ("offered fps", "", lambda c: whole(c.offered_fps)),
    ("sent", "", lambda c: f"{c.sent:,}"),
    ("received", "", lambda c: f"{c.received:,}"),
    ("lost", LOST_BY_DEVICE, lambda c: f"{c.lost:,}"),
    (" by the tester", LOST_BY_TESTER, lambda c: f"{c.tester_dropped:,}"),
    (" damaged", LOST_BY_DEVICE, lambda c: f"{c.damaged:,}"),
    (" came late", LOST_BY_DEVICE, lambda c: f"{c.stale:,}"),
    ("foreign frames", "", lambda c: f"{c.foreign:,}"),
    ("delay, least", "", _delay(0)),
    (" median", "", _delay(1)),
    (" 99.9 %", "", _delay(2)),
    (" greatest", "", _delay(3)),
    ("sender's lag", "", lambda c: duration(c.lag_ns, _DIGITS)),
)


def _help() -> Iterator[Text]:
    for keys, does in HELP:
        yield Text.assemble((f"  {keys:<9}", "bold"), does)


def _beside(
    table: Iterator[Text], counts: StreamCounts, columns: int
) -> Iterator[Text]:
    """``table``, and the rates that were used, if there is room."""
    if columns < _RATES_FROM:
        yield from table
        return
    for left, right in zip_longest(table, _rates(counts.rates)):
        line = left or Text()
        line.pad_right(max(WIDTH + 2 - line.cell_len, 0))
        yield line.append_text(right or Text())


def _rates(used: Sequence[RateUsed]) -> Iterator[Text]:
    if not used:
        return
    yield Text("rates so far, the last one first", "dim")
    for each in used[: -_SHOWN_RATES - 1 : -1]:
        yield Text(rate_words(each))


def rate_words(used: RateUsed) -> str:
    """How long a rate was sent, and what became of it, in a few words."""
    share = about(used.lost * 100 / used.sent, _DIGITS) if used.sent else "0"
    invalid = f", {used.invalid} of {used.pieces} invalid" if used.invalid else ""
    return f"{used.rate_fps:,} fps {span(used.sending_s)}: lost {share} %{invalid}"


def _whose(counts: StreamCounts, width: int) -> Iterator[Text]:
    """Who loses, by the last piece."""
    record = counts.last
    if record is None:
        return
    kind, why = judgement(record)
    lost = [
        f"{c.name} {about(c.by_device * 100 / c.sent, _DIGITS)} %"
        for c in counts.of_last
        if c.sent and c.by_device
    ]
    yield Text.assemble(
        "device: ",
        (f"loses {', '.join(lost)}", LOST_BY_DEVICE)
        if lost
        else ("loses nothing", "green"),
        " - if the tester is right" if lost and kind == "invalid" else "",
    )
    if kind == "invalid":
        yield from _tester_words(visible(why), width)
        return
    lag_ns = max(c.lag_ns for c in counts.of_last)
    earlier = f"; {counts.invalid} of {counts.pieces} pieces were invalid"
    yield Text.assemble(
        "tester: ",
        ("keeps up", "green"),
        f", at most {duration(lag_ns, _DIGITS)} late",
        earlier if counts.invalid else "",
    )


def _tester_words(why: str, width: int) -> Iterator[Text]:
    """In two lines at most."""
    begin = "tester: "
    room = max(width - len(begin), 1)
    for line in wrap(why, room, max_lines=_REASON_LINES, placeholder=" ..."):
        yield Text.assemble(begin, (line, LOST_BY_TESTER))
        begin = " " * len(begin)


def judgement(record: TrialRecord) -> tuple[VerdictKind, str]:
    """The verdict on a piece, and the first reason for it."""
    verdict = record.result.verdict
    return verdict.kind, next((reason.message for reason in verdict.reasons), "")


def _running(screen: Screen) -> Text:
    if screen.running_fps is None:
        return Text("nothing is sent", "dim")
    told = f"this piece: {screen.running_fps:,} fps for {about(screen.running_s)} s"
    progress = screen.progress
    if progress:
        told += (
            f"; after {progress.elapsed_ns / 1e9:.1f} s {progress.sent:,} sent, "
            f"{progress.received:,} back"
        )
    return Text(told, "dim")


def _answer(screen: Screen) -> Text:
    """To the last key; if there is none, which keys there are."""
    if screen.typed is not None:
        typed = f"{visible(screen.typed)}_"
        return Text.assemble(("rate: ", "bold"), typed, ("  Enter, or Esc", "dim"))
    if screen.said:
        return Text(visible(screen.said), "yellow")
    return Text(SHORT_HELP, "dim")


# A stream in lines that stay: one for each piece, and a few at its end.


_SUMMED_RATES = 8


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
    left_out = len(counts.rates) - _SUMMED_RATES
    for used in counts.rates[-_SUMMED_RATES:]:
        yield Text(f"  {rate_words(used)}")
    if left_out > 0:
        yield Text(f"  and {left_out} rates before; --json has all")
