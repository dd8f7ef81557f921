"""Every number and word of a small run, changed alike in journal and results.

Each is found by ``verify``, or on the list of those that nothing follows from.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planning import TESTBED, Run, campaign, spec

from dutperf.config import PlannedTestbed
from dutperf.errors import InputError
from dutperf.evidence import verify
from dutperf.run.results_again import results_again
from dutperf.simulation.fake_engine import FakeEngine, buffered

Json = dict[str, Any]
Place = tuple[str | int, ...]
_STREAM = r"result\.directions\.\*\.streams\.\*\."
UNPROVEN = {
    r"result\.ports\.\*\..*": "counters of a port are not held to the verdict",
    r"result\.input_queue_drops": "as those of a port",
    _STREAM + r"(id|late|reordered|unplaced|lost_in_shadow)": "no figure is made of it",
    _STREAM + r"inspected\..*": "what was seen in single frames: no figure",
    _STREAM + r"(last|longest)_loss\..*": "no figure here: it is read of an outage",
    _STREAM + r"series\.interval_ns": "no figure here: it is read by charts",
    r"result\.directions\.\*\.(delay_bound|delay_floor|port_full|sending)_ns": (
        "the tester's own times: no figure in a trial without delays"
    ),
    r"result\.directions\.\*\.(offered_rate_fps|ring_full|tx_full)": (
        "what the tester reached is not held to the verdict"
    ),
    r"result\.(overhead_ns|total_ns|generator|ended_early)": (
        "what the engine says of itself"
    ),
    r"result\.verdict\.reasons\.\*\.(hint|message)": "words; the code is checked",
    r"delays_recorded": "nothing was recorded here that it could contradict",
    r"place": "the cell has it, too, and counts",
}
"""Places in a trial, as a pattern, and why a change of them is not found."""


def test_each_value_of_a_trial_is_held_to_others(tmp_path: Path) -> None:
    path = tmp_path / "run"
    Run(path, FakeEngine(buffered(999, 200_000)))(
        campaign(spec(resolution="20%", repeats=2, trial_duration_s=1))
    )
    header, *lines = (path / "journal.jsonl").read_text().splitlines()
    results = json.loads((path / "results.json").read_text())
    draw = random.Random(7)  # noqa: S311 - test data
    found: dict[str, list[tuple[int, Place]]] = {}
    for number, line in enumerate(lines):
        for place in _leaves(json.loads(line)):
            found.setdefault(_kind(place), []).append((number, place))
    missed = set()
    for kind, places in found.items():
        number, place = draw.choice(places)
        trials = [json.loads(line) for line in lines]
        _change(trials[number], place)
        text = "\n".join([header, *map(json.dumps, trials)]) + "\n"
        (path / "journal.jsonl").write_text(text)
        (path / "results.json").write_text(json.dumps(results | {"trials": trials}))
        if _is_good(path):
            missed.add(kind)
    assert len(found) > 100
    unlisted = {k for k in missed if not any(re.fullmatch(p, k) for p in UNPROVEN)}
    assert unlisted == set()
    assert len(missed) <= 66
    unused = {p for p in UNPROVEN if not any(re.fullmatch(p, k) for k in missed)}
    assert unused == set()


def _is_good(path: Path) -> bool:
    try:
        found = verify(
            path, lambda _c: [PlannedTestbed(testbed=TESTBED)], None, results_again
        )
    except InputError:
        return False
    return found.good


def _leaves(value: Any) -> Iterator[Place]:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from ((key, *rest) for rest in _leaves(inner))
    elif isinstance(value, list):
        for key, inner in enumerate(value):
            yield from ((key, *rest) for rest in _leaves(inner))
    elif value is not None:
        yield ()


def _kind(place: Place) -> str:
    return ".".join("*" if isinstance(step, int) else step for step in place)


def _change(trial: Json, place: Place) -> None:
    holder: Any = trial
    for step in place[:-1]:
        holder = holder[step]
    old = holder[place[-1]]
    if isinstance(old, bool):
        holder[place[-1]] = not old
    else:
        holder[place[-1]] = f"{old}x" if isinstance(old, str) else old + 1
