"""Whatever stands in a file, only InputError comes out of the loader."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import pytest
from config_samples import CAMPAIGN_YAML, TESTBED_YAML
from fuzzing import seeded
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from dutperf.config import from_data, load_campaign, load_testbed
from dutperf.config.campaign import Campaign
from dutperf.config.testbed import Testbed
from dutperf.errors import InputError

WORDS = """
    name lab testbed procedures procedure ip frame_size left right port interface pci
    memif ring mtu ipv4 ipv6 address gateway cores seed schema_version resolution
    load_percent namespace direction
"""
KEYS = st.sampled_from(WORDS.split())
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["throughput", "frame-loss", "198.18.1.1", "::", "5%", "eth0"])
)
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(KEYS | st.text(max_size=3), inner, max_size=6)
    ),
    max_leaves=25,
)
MARKS = """
    &a *a <<: - ? : [ ] { } | > ! !!int !!set !!binary !!omap %YAML --- ... 0x 1e999
    .nan 2001-99-99 12:30:45 ' " \\ # , = ~ @ `
"""
TOKENS = st.sampled_from(
    [
        *MARKS.split(),
        *[" ", "\n", "\n  ", "\t", "\x00", "\ud800", "\x85", "\u2028"],
        "9" * 5000,
    ]
)


def only_refused(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.yaml"
        path.write_bytes(content)
        for load in (load_testbed, load_campaign):
            with contextlib.suppress(InputError):
                load(path)


@seeded
@given(st.binary(max_size=200))
def test_any_bytes_are_at_most_refused(content: bytes) -> None:
    only_refused(content)


@seeded
@given(st.lists(TOKENS | KEYS | st.text(max_size=5), max_size=30))
def test_any_yaml_like_text_is_at_most_refused(parts: list[str]) -> None:
    only_refused("".join(parts).encode("utf-8", "surrogatepass"))


@seeded
@given(
    st.sampled_from([TESTBED_YAML, CAMPAIGN_YAML]),
    st.integers(0, 400),
    st.integers(0, 30),
    TOKENS | st.text(max_size=5),
)
def test_any_damage_to_a_good_file_is_at_most_refused(
    text: str, at: int, gone: int, new: str
) -> None:
    only_refused((text[:at] + new + text[at + gone :]).encode("utf-8", "surrogatepass"))


@seeded
@given(TREES)
def test_any_tree_is_at_most_refused(tree: object) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.yaml"
        with path.open("w", encoding="utf-8", errors="surrogatepass") as file:
            YAML(typ="safe", pure=True).dump(tree, file)
        only_refused(path.read_bytes())


@seeded
@given(st.dictionaries(KEYS | st.text(max_size=3), TREES, max_size=8))
def test_any_data_is_at_most_refused(data: dict[str, Any]) -> None:
    for model in (Testbed, Campaign):
        with contextlib.suppress(InputError):
            from_data(model, data, "command line")


@seeded
@given(st.sampled_from(["name", "left", "cores", "right.port"]), TREES)
def test_any_value_of_a_known_key_is_at_most_refused(key: str, value: object) -> None:
    outer, _, inner = key.partition(".")
    data = {outer: {inner: value} if inner else value}
    with pytest.raises(InputError) as caught:
        from_data(Testbed, data, "command line")
    assert "pydantic" not in caught.value.message
    assert "Input should" not in caught.value.message


@pytest.mark.parametrize("bracket", ["{", "[", "{a: ", "[{", "a: [", "? {"])
def test_brackets_without_end_do_not_keep_the_reader_busy(
    tmp_path: Path, bracket: str
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(bracket * (90_000 // len(bracket)))
    with pytest.raises(InputError, match="nested too deeply"):
        load_campaign(path)


@pytest.mark.parametrize("depth", [1, 20, 190])
@pytest.mark.parametrize(("left", "right"), [("{", "}"), ("? ", "x"), ("[{[", "]}]")])
def test_keys_that_are_blocks_are_refused_at_once(
    tmp_path: Path, left: str, right: str, depth: int
) -> None:
    """A few dozen bytes of these once kept it busy for hours."""
    path = tmp_path / "x.yaml"
    path.write_text(f"name: x\na:\n  {left * (depth // len(left) + 2)}{right * 99}")
    with pytest.raises(InputError, match=r"x\.yaml:3"):
        load_campaign(path)


def test_brackets_side_by_side_are_no_nesting(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(CAMPAIGN_YAML + "# see [1], {2} and so on ]]]\n" * 500)
    with contextlib.suppress(InputError):
        load_campaign(path)
    path.write_text("x: [[1], {a: [2]}]\n" * 1)
    with pytest.raises(InputError, match="unknown key"):
        load_testbed(path)
