"""Runs to be served, without a browser: directories, and a client that asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from report_sample import store
from starlette.testclient import TestClient
from stored_samples import results_file

from dutperf.model.cell import Cell
from dutperf.results import ResultsDirectory, ResultsFile, TrialRecord
from dutperf.serve.app import make_app

COMPARED = "<!doctype html><title>compared</title>"


def compare(directories: Sequence[Path]) -> str:
    return COMPARED + " ".join(path.name for path in directories)


def client(
    root: Path,
    *,
    token: str | None = None,
    hosts: frozenset[str] = frozenset(),
    planned: Callable[[Path], Sequence[Cell]] = lambda _path: (),
) -> TestClient:
    app = make_app(root.resolve(), compare, planned, token=token, hosts=hosts)
    return TestClient(app, base_url="http://127.0.0.1:8219", follow_redirects=False)


def stored_run(path: Path, **changes: object) -> ResultsFile:
    """A finished run of one trial; ``changes``: of its results."""
    path.parent.mkdir(parents=True, exist_ok=True)
    results = results_file().model_copy(update=changes)
    store(path, results).close()
    return results


def open_run(path: Path, records: Sequence[TrialRecord] = ()) -> ResultsDirectory:
    """A run that goes on, until it is closed."""
    directory = ResultsDirectory.create(path, "going-on")
    directory.write_campaign({"lab": [{"name": "linux-router"}]})
    for record in records:
        directory.append(record)
    return directory
