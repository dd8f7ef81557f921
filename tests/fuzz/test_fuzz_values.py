"""Whatever a flag or key is given, it is used or refused in words."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import pytest
from config_samples import TESTBED_YAML
from fuzzing import seeded
from hypothesis import given
from hypothesis import strategies as st

from dutperf.catalogue import PROCEDURES, ProcedureName
from dutperf.cli import app
from dutperf.cli.procedure_options import FLAGS, _field, procedure_spec
from dutperf.errors import InputError

PIECES = """
    64 0 -1 1e999 nan inf 1_000 0x10 ½ ² ٣ % %% : - , / .. random random: increasing:
    all auto throughput stop 1-65535 65535-1 0-0 198.18.0.1 ::1 2001:db8::/32 k M aag
"""
TEXTS = st.lists(
    st.sampled_from(
        [*PIECES.split(), "", " ", "\x00", "9" * 25, "9" * 5000, "-" * 3000]
    )
    | st.text(max_size=4),
    max_size=5,
).map("".join)
HOSTILE = ["", "9" * 5000, "nan", "\x1b[2J", "64," * 2000]


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_any_text_of_a_flag_is_at_most_refused(procedure: ProcedureName) -> None:
    keys = [k for k in FLAGS if (k != "stateful") and _has(k, procedure)]
    worded = [k for k in keys if FLAGS[k].kind in (str, list[str])]

    @seeded
    @given(st.dictionaries(st.sampled_from(worded), TEXTS, min_size=1, max_size=3))
    def check(texts: dict[str, str]) -> None:
        values: dict[str, Any] = {
            key: [text] if FLAGS[key].kind == list[str] else text
            for key, text in texts.items()
        }
        with contextlib.suppress(InputError):
            procedure_spec(procedure, values)

    check()


@pytest.mark.parametrize("procedure", PROCEDURES)
def test_any_number_of_a_flag_is_at_most_refused(procedure: ProcedureName) -> None:
    texts = (str, list[str])
    keys = [k for k in FLAGS if _has(k, procedure) and FLAGS[k].kind in texts]
    numbers = st.integers() | st.sampled_from([2**31, 2**63, 2**64, 10**30, -1])
    suffixes = st.sampled_from(["", "k", "M", "%", "e9", "fps"])

    @seeded
    @given(
        st.dictionaries(st.sampled_from(keys), numbers | st.floats(), max_size=3),
        suffixes,
    )
    def check(given_numbers: dict[str, float], suffix: str) -> None:
        values: dict[str, Any] = {}
        for key, number in given_numbers.items():
            listed = FLAGS[key].kind == list[str]
            values[key] = [f"{number}{suffix}"] if listed else f"{number}{suffix}"
        with contextlib.suppress(InputError):
            procedure_spec(procedure, values)

    check()


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize(
    "arguments",
    [
        ["throughput", "x.yaml", "--dry-run", "--repeats"],
        ["throughput", "x.yaml", "--dry-run", "--frame-size"],
        ["throughput", "x.yaml", "--dry-run", "--max-rate"],
        ["latency", "x.yaml", "--dry-run", "--rate"],
        ["throughput", "x.yaml", "--dry-run", "--source-ports"],
        ["throughput", "x.yaml", "--dry-run", "--flow-label"],
        ["throughput", "x.yaml", "--dry-run", "--timeout-sweep"],
        ["bench", "--entries"],
        ["selftest", "--stateful", "--cpus"],
    ],
    ids=" ".join,
)
def test_a_value_that_is_none_is_refused(
    arguments: list[str],
    value: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x.yaml").write_text(TESTBED_YAML, "utf-8")
    code = app.run([*arguments, value])
    error = capsys.readouterr().err
    assert "defect" not in error
    assert code == 2, error
    assert len(error) < 5000


def _has(key: str, procedure: ProcedureName) -> bool:
    return _field(key, procedure) is not None
