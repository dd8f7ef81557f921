"""A worker's side of the conversation, and what it does with a ticket."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from remote_hosts import campaign_of, write_testbed

from dutperf import lab
from dutperf.config import PlannedTestbed, load_campaign, load_testbed
from dutperf.config.campaign import LabKeys
from dutperf.config.expansion import expand
from dutperf.config.testbed import Hooks
from dutperf.remote.messages import Begun, Ticket, Told, envelopes_of
from dutperf.remote.task import (
    GONE_AFTER_S,
    Post,
    RunGoneError,
    Workshop,
    measure_ticket,
)
from dutperf.run import Job
from dutperf.run.local_executor import Surroundings


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class LoopedPost(Post):
    """With a loop of its own, in which a test fetches."""

    def __init__(self, runner: asyncio.Runner) -> None:
        super().__init__()
        self._runner = runner
        self.use(runner.get_loop())

    def fetched(self, run: str, answers: dict[int, str]) -> list[object]:
        text = self._runner.run(self.fetch(run, answers))
        return [each.message for each in envelopes_of(text, "it")]


@pytest.fixture
def post() -> Iterator[LoopedPost]:
    with asyncio.Runner() as runner:
        yield LoopedPost(runner)


def test_messages_come_in_their_order_to_their_run(post: LoopedPost) -> None:
    post.tell("one", "a", Told(text="first"))
    post.tell("two", "b", Told(text="other"))
    post.tell("one", "a", Told(text="second"))
    assert post.fetched("one", {}) == [Told(text="first"), Told(text="second")]
    assert post.fetched("two", {}) == [Told(text="other")]


def test_who_asks_gets_the_answer_to_the_question(post: LoopedPost) -> None:
    told: list[str] = []
    asking = threading.Thread(target=lambda: told.append(post.ask("one", "a", Begun())))
    asking.start()
    messages: list[object] = []
    while not messages:
        messages = post.fetched("one", {})
    assert messages == [Begun()]
    post.tell("one", "b", Told(text="so that it is fetched at once"))
    post.fetched("one", {1: "the answer"})
    asking.join(60)
    assert told == ["the answer"]


def test_a_run_that_is_silent_for_long_has_gone() -> None:
    clock = Clock()
    post = Post(clock)
    post.tell("one", "a", Told(text="first"))
    clock.now_s = GONE_AFTER_S - 1
    post.alive("one")
    clock.now_s += GONE_AFTER_S - 1
    post.tell("one", "a", Told(text="second"))
    clock.now_s += 2
    with pytest.raises(RunGoneError):
        post.tell("one", "a", Told(text="third"))
    with pytest.raises(RunGoneError):
        post.ask("one", "a", Begun())


def test_a_ticket_that_is_unwanted_says_no_more(post: LoopedPost) -> None:
    post.stop(["a"])
    with pytest.raises(RunGoneError):
        post.tell("one", "a", Told(text="late"))
    post.tell("one", "b", Told(text="another ticket"))


def test_a_worker_refuses_what_it_cannot_measure(post: LoopedPost) -> None:
    around = Surroundings(lambda *_: pytest.fail("opened"), lambda path: path)
    workshop = Workshop(post, around, [], ["linux-router"])
    told = measure_ticket(workshop, '{"version": 99, "dutperf_version": "9.9"}')
    assert "the run sent jobs of version 99 (dutperf 9.9)" in told
    assert "install the same dutperf on all hosts" in told


def test_a_run_cannot_have_other_commands_executed(
    post: LoopedPost, tmp_path: Path
) -> None:
    """As its hooks or its lab's: the worker executes those of its own testbed alone."""
    around = Surroundings(lambda *_: pytest.fail("opened"), lambda path: path)
    own = load_testbed(write_testbed(tmp_path, "a"))
    workshop = Workshop(post, around, [own], ["linux-router"], is_simulated=True)
    hooks = Hooks.model_validate({"before_trial": [{"command": ["id"]}]})
    cells = expand(load_campaign(campaign_of(tmp_path, "a")), own)
    linux = lab.plan("linux-router")
    for planned in (
        PlannedTestbed(testbed=own.model_copy(update={"hooks": hooks})),
        PlannedTestbed(
            lab=LabKeys(name="linux-router"),
            testbed=linux.model_copy(update={"hooks": hooks}),
        ),
    ):
        job = Job(campaign="many", planned=planned, cell=cells[0])
        ticket = Ticket(
            run="run", key="a", testbed=planned.name, before=0, count=1, jobs=[job]
        )
        told = measure_ticket(workshop, ticket.model_dump_json())
        assert "hooks" in told
        assert "install the same" in told or "give both the same file" in told
