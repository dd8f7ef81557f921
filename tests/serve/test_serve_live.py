"""A run that goes on, followed by its journal."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile import NASTY, hostile_results
from planning import TESTBED, campaign, spec
from report_page import Page
from report_sample import MAXIMUM_FPS, search, trial
from served import client, open_run, stored_run
from stored_samples import results_file

from dutperf.config import expand
from dutperf.serve import app
from dutperf.serve.live import Following, LivePage

CELL = "throughput-ip4-64-both"
CAPACITY = 306_700


@pytest.fixture(autouse=True)
def _without_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_POLL_S", 0.01)


def seen(path: Path) -> LivePage:
    following = Following(path)
    while following.read_on():
        pass
    view = following.view
    assert view
    return view


def test_before_the_first_trial_there_is_nothing_to_tell(tmp_path: Path) -> None:
    with open_run(tmp_path / "r"):
        following = Following(tmp_path / "r")
        assert not following.read_on()
        assert following.view is None


def test_the_interval_is_what_verdicts_leave_at_every_trial(tmp_path: Path) -> None:
    records = search(1, CELL, CAPACITY)
    with open_run(tmp_path / "r") as directory:
        following = Following(tmp_path / "r")
        lower, upper = 0, MAXIMUM_FPS
        for record in records:
            directory.append(record)
            assert following.read_on()
            kind = record.result.verdict.kind
            lower = record.load_fps if kind == "pass" else lower
            upper = record.load_fps if kind == "fail" else upper
            view = following.view
            assert view
            assert view.interval
            mark = view.interval.steps[-1]
            assert (mark.lower, mark.upper) == (
                lower / MAXIMUM_FPS,
                upper / MAXIMUM_FPS,
            )
            assert mark.tried == record.load_fps / MAXIMUM_FPS
            assert mark.kind == kind
            assert f"failed from {upper:,} fps" in view.interval.words
    assert lower <= CAPACITY < upper
    final = seen(tmp_path / "r").interval
    assert final
    assert f"passed up to {lower:,} fps, " in final.words


def test_each_repeat_and_each_cell_begins_anew(tmp_path: Path) -> None:
    records = search(1, CELL, CAPACITY)
    again = search(len(records) + 1, CELL, CAPACITY, repeat=2)[:1]
    other = [trial(len(records) + 2, "frame-loss-x", 5, "fail", procedure="frame-loss")]
    with open_run(tmp_path / "r", [*records, *again]) as directory:
        view = seen(tmp_path / "r")
        assert view.repeat == "repeat 2"
        assert view.interval
        assert len(view.interval.steps) == 1
        assert view.interval.words.startswith("none passed yet")
        directory.append(other[0])
        view = seen(tmp_path / "r")
        assert (view.cell, view.place, view.interval) == ("frame-loss-x", 2, None)


def test_a_search_that_has_only_passed_says_so(tmp_path: Path) -> None:
    with open_run(tmp_path / "r", [trial(1, CELL, 1000, "pass")]):
        interval = seen(tmp_path / "r").interval
        assert interval
        assert interval.words == "passed up to 1,000 fps, none failed yet"


def test_the_last_trials_are_told_newest_first_with_verdict_and_loss(
    tmp_path: Path,
) -> None:
    records = [
        trial(1, CELL, 400_000, "fail", lost=40_000),
        trial(2, CELL, 200_000, "pass"),
        trial(3, CELL, 300_000, "invalid"),
    ]
    with open_run(tmp_path / "r", records):
        last = seen(tmp_path / "r").last
    assert [line.number for line in last] == [3, 2, 1]
    assert [line.verdict for line in last] == ["invalid", "pass", "fail"]
    assert [line.tried for line in last] == ["300,000", "200,000", "400,000"]
    assert last[1].loss == "none"
    assert last[2].loss.startswith("40,000 frames (5")
    assert "behind" in last[0].why


def test_a_long_run_is_kept_only_where_it_is_shown(tmp_path: Path) -> None:
    records = [trial(n, f"cell-{n // 5}", 1000, "pass") for n in range(1, 301)]
    with open_run(tmp_path / "r", records):
        following = Following(tmp_path / "r")
        pieces = 0
        while following.read_on():
            pieces += 1
        view = following.view
        assert view
        assert pieces == 3
        assert (view.trials, len(view.last)) == (300, 12)
        assert len(following._own) <= 5


def test_progress_is_told_where_the_plan_is_known(tmp_path: Path) -> None:
    cells = expand(campaign(spec(frame_size=[64, 128, 256], repeats=3)), TESTBED)
    record = trial(1, cells[1].id, 1000, "pass", repeat=2)
    with open_run(tmp_path / "r", [record]):
        following = Following(tmp_path / "r", cells)
        following.read_on()
        view = following.view
        assert view
        assert (view.place, view.of, view.repeat) == (2, 3, "repeat 2 of 3")


# --- as server-sent events


def events(text: str) -> list[tuple[str, str]]:
    found = re.findall(r"event: (\w+)\ndata: (.*)\n\n", text)
    assert "".join(f"event: {k}\ndata: {v}\n\n" for k, v in found) == text
    return [(kind, json.loads(data)) for kind, data in found]


def test_the_stream_of_a_run_that_has_ended_tells_it_all_and_ends(
    tmp_path: Path,
) -> None:
    stored_run(tmp_path / "r")
    answer = client(tmp_path).get("/events?run=r")
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    *panels, end = events(answer.text)
    assert end == ("end", "")
    assert "1 trial so far" in Page(panels[-1][1]).text


def test_the_stream_follows_until_the_run_ends(tmp_path: Path) -> None:
    records = search(1, CELL, CAPACITY)
    directory = open_run(tmp_path / "r", records[:1])

    def go_on() -> Iterator[None]:
        for record in records[1:]:
            directory.append(record)
            yield
        directory.write_results(results_file())
        directory.close()

    steps = go_on()
    ending = threading.Timer(0.05, lambda: list(steps))
    ending.start()
    *panels, end = events(client(tmp_path).get("/events?run=r").text)
    assert end == ("end", "")
    assert {kind for kind, _ in panels} == {"panel"}
    assert f"{len(records)} trials so far" in Page(panels[-1][1]).text


def test_a_torn_last_line_is_not_told(tmp_path: Path) -> None:
    open_run(tmp_path / "r", search(1, CELL, CAPACITY)[:3]).close()
    journal = tmp_path / "r" / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    *panels, end = events(client(tmp_path).get("/events?run=r").text)
    assert end == ("end", "")
    assert "2 trials so far" in Page(panels[-1][1]).text


def test_a_damaged_journal_ends_the_stream_with_the_reason(tmp_path: Path) -> None:
    open_run(tmp_path / "r", search(1, CELL, CAPACITY)[:1]).close()
    with (tmp_path / "r" / "journal.jsonl").open("a") as file:
        file.write("{}\n")
    problem, end = events(client(tmp_path).get("/events?run=r").text)
    assert problem[0] == "problem"
    assert "journal.jsonl:3" in problem[1]
    assert end == ("end", "")


def test_hostile_cells_stay_text_on_one_line(tmp_path: Path) -> None:
    open_run(tmp_path / "r", hostile_results().trials).close()
    (_, panel), _end = events(client(tmp_path).get("/events?run=r").text)
    page = Page(panel)
    assert not {"img", "script"} & set(page.tags)
    assert NASTY not in panel
    assert "window.owned=1" in page.text


def test_a_reader_who_leaves_ends_the_stream(tmp_path: Path) -> None:
    async def read_one_event() -> list[dict[str, Any]]:
        left = asyncio.Event()
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:  # noqa: ANN401 - ASGI
            sent.append(message)
            if message.get("body"):
                left.set()

        scope = {
            "type": "http",
            "method": "GET",
            "path": "/events",
            "raw_path": b"/events",
            "root_path": "",
            "query_string": b"run=r",
            "headers": [],
            "asgi": {"spec_version": "2.3"},
        }
        await asyncio.wait_for(client(tmp_path).app(scope, receive, send), 60)
        return sent

    with open_run(tmp_path / "r", search(1, CELL, CAPACITY)[:1]):
        sent = asyncio.run(read_one_event())
    assert not any(message.get("more_body") is False for message in sent)
    assert len(sent) < 10
