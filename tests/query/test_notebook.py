"""The notebook makes its figure of stored results, and is stored without outputs."""

from __future__ import annotations

import json
from pathlib import Path

import nbclient
import nbformat
import pytest
from many_runs import stored_run
from report_sample import throughput_cell

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebooks" / "throughput.ipynb"
ROWS = "import json; print(json.dumps(rows))"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs of the same cells; the newer one has a bound and an invalid one."""
    monkeypatch.setenv("DUTPERF_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    (tmp_path / "results").mkdir()
    for day, rate in ((1, 1e6), (2, 2e6)):
        cells = [
            throughput_cell(f"throughput-ip4-{size}-both", 4, size, [rate + size])
            for size in (64, 512, 1518)
        ]
        if day == 2:
            cells[1] = cells[1].model_copy(update={"bound": "lower"})
            cells[2] = cells[2].model_copy(update={"verdict": "invalid"})
        stored_run(tmp_path / "results" / str(day), cells, day)
    return tmp_path


@pytest.mark.filterwarnings("default")  # of Jupyter's own libraries
def test_the_notebook_draws_the_newest_valid_throughput_of_each_size(
    directory: Path,
) -> None:
    notebook = nbformat.read(NOTEBOOK, 4)  # type: ignore[no-untyped-call]
    rows = nbformat.v4.new_code_cell(ROWS)  # type: ignore[no-untyped-call]
    notebook.cells.append(rows)
    nbclient.NotebookClient(
        notebook,
        startup_timeout=600,  # on a busy machine
        timeout=600,
        resources={"metadata": {"path": str(directory)}},
    ).execute()
    assert json.loads(notebook.cells[-1].outputs[0]["text"]) == [
        ["bench, IPv4", 64, 2.000064, 2.000064, 2.000064, False],
        ["bench, IPv4", 512, 2.000512, 2.000512, 2.000512, True],
        ["bench, IPv4", 1518, 1.001518, 1.001518, 1.001518, False],
    ]
    assert (directory / "throughput.pdf").read_bytes().startswith(b"%PDF")


def test_it_is_stored_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, 4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert not any(cell.outputs or cell.execution_count for cell in code)
