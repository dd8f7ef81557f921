"""What a user reads when a configuration file is wrong, and that right ones load."""

from __future__ import annotations

from pathlib import Path

import pytest
from config_samples import CAMPAIGN_YAML, TESTBED_YAML, bench_data

from dutperf.config import Campaign, Testbed, from_data, load_campaign, load_testbed
from dutperf.errors import InputError
from dutperf.model.rate_specs import ThroughputSpec


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    path = tmp_path / "bench.yaml"
    path.write_text(TESTBED_YAML)
    return path


def refused(path: Path, text: str | bytes) -> InputError:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(InputError) as caught:
        load_testbed(path)
    return caught.value


def test_a_testbed_file_gives_the_testbed_that_it_describes(bench: Path) -> None:
    testbed = load_testbed(bench)
    assert testbed.left.ipv4 is not None
    assert testbed.left.ipv4.gateway == "198.18.1.1"
    assert testbed.ip_versions() == [4, 6]


def test_a_byte_order_mark_does_no_harm(bench: Path) -> None:
    bench.write_bytes(b"\xef\xbb\xbf" + TESTBED_YAML.encode())
    assert load_testbed(bench).name == "bench"


def test_merge_keys_and_aliases_work(bench: Path) -> None:
    shared = TESTBED_YAML.replace("  port:\n", "  port: &port\n", 1).replace(
        "port: {interface: tr}", "port: {<<: *port, interface: tr}"
    )
    bench.write_text(shared)
    assert load_testbed(bench) == Testbed.model_validate(
        {**bench_data(), "cores": [0, 1]}
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("mtu: 1500", "mtz: 1500", "7: left.port.mtz: unknown key; did you mean mtu?"),
        (
            "mtu: 1500",
            "colour: red",
            "7: left.port.colour: unknown key; known here: interface, driver, mtu",
        ),
        ("cores:", "xyz:", "3: xyz: unknown key; known here: schema_version, name,"),
        (
            "mtu: 1500",
            "mtu: '1500'",
            "7: left.port.mtu: must be a whole number, not '1500'",
        ),
        ("mtu: 1500", "mtu: 15e2", "7: left.port.mtu: must be a whole number, not 15"),
        ("mtu: 1500", "mtu: 9", "7: left.port.mtu: must be at least 68, not 9"),
        ("mtu: 1500", "mtu: 9999", "7: left.port.mtu: must be at most 9702, not 9999"),
        ("mtu: 1500", "mtu:", "7: left.port.mtu: must be a whole number, not empty"),
        (
            "mtu: 1500",
            "driver: dpdk",
            "7: left.port.driver: must be 'auto', 'af_xdp' or 'af_packet', not 'dpdk'",
        ),
        (
            "interface: tl",
            "interface: [tl]",
            "6: left.port.interface: must be a text, not a list",
        ),
        (
            "interface: tl",
            "interface: two words",
            "6: left.port.interface: must be the name of an interface",
        ),
        (
            "interface: tl",
            "pci: 03:00.0",
            "6: left.port.pci: must be a PCI address like 0000:03:00.1",
        ),
        (
            "interface: tl",
            "memif: ''",
            "6: left.port.memif: must not be empty",
        ),
        (
            "interface: tl",
            "pci: 0000:03:00.0\n    interface: tl",
            "5: left.port: needs exactly one of the keys interface, pci, memif, vdev",
        ),
        ("port: {interface: tr}", "port: {}", "13: right.port: needs exactly one of"),
        (
            "port: {interface: tr}",
            "port: tr",
            "13: right.port: needs exactly one of",
        ),
        (
            "port: {interface: tr}",
            "port: {ring: true}",
            "1: a ring joins both ports: give ring on both sides",
        ),
        (
            "interface: tr",
            "interface: tl",
            "1: left.port and right.port are the same port",
        ),
        (
            "address: 198.18.1.2",
            "address: 198.18.1.256",
            "9: left.ipv4.address: must be an IPv4 address, not '198.18.1.256'",
        ),
        (
            "address: 198.18.1.2",
            "address: 2001:2::2",
            "9: left.ipv4.address: must be an IPv4 address; 2001:2::2 is IPv6",
        ),
        (
            "address: 198.18.1.2",
            "address: 224.0.0.1",
            "9: left.ipv4.address: must be the unicast address of one host",
        ),
        (
            '"2001:2::2"',
            '"fe80::1%tl"',
            "11: left.ipv6.address: must be the unicast address of one host",
        ),
        ("    gateway: 198.18.1.1\n", "", "8: left.ipv4: gateway is missing"),
        (
            "    gateway: 198.18.1.1\n",
            "    gateway: 198.18.1.2\n",
            "8: left.ipv4: address and gateway are both 198.18.1.2",
        ),
        (
            "address: 198.19.1.2",
            "address: 198.18.1.2",
            "1: left.ipv4.address and right.ipv4.address are both 198.18.1.2",
        ),
        ("name: bench\n", "", "1: name: is missing"),
        ("name: bench", "name: a/b", "2: name: must be 1 to 64 letters, digits"),
        ("name: bench", "name: 5", "2: name: must be a text, not 5"),
        ("name: bench", "name: true", "2: name: must be a text, not true"),
        ("schema_version: 1", "schema_version: 2", "1: schema_version: must be 1,"),
        ("[0, 1]", "0", "3: cores: must be a list, not 0"),
        ("[0, 1]", "[]", "3: cores: must have at least 1 entry"),
        ("[0, 1]", "[1, 1]", "3: cores: must list different CPUs"),
        ("[0, 1]", "[0, -1]", "3: cores[1]: must be at least 0, not -1"),
        ("[0, 1]", "{a: 1}", "3: cores: must be a list, not a block of keys"),
        ("[0, 1]", "[2026-01-01]", "3: cores[0]: is a date, a set or a tagged value"),
        ("[0, 1]", "[!x 1]", "3: cores[0]: is a date, a set or a tagged value"),
        ("[0, 1]", "[0x" + "f" * 9000 + "]", "3: cores[0]: is a number out of all"),
        ("[0, 1]", "[.nan]", "3: cores[0]: is a number out of all bounds"),
        ("[0, 1]", "&c [*c]", "3: cores[0]: must be a whole number, not empty"),
        ("[0, 1]", "[&t true, *t]", "3: cores[0]: must be a whole number, not true"),
        ("name: bench", 'name: "\\e[31m"', "2: name: has a control character:"),
        ("name: bench", 'name: "\\ud800"', "2: name: has a control character:"),
        ("name: bench", "name: bench\n1: 2", "1: a key is 1, not a text"),
        ("name: bench", "name: bench\n? [1]\n: 2", "a key is compound, not a text"),
        ("name: bench", "? 0x" + "f" * 9000 + "\n: 2", "a key is a number out of"),
        ("name: bench", "name: bench\nname: x", "3: name: the key is given twice"),
        ("  port:\n", "\tport:\n", "5: not valid YAML: found character '\\t'"),
        ("[0, 1]", "[0, 1", "not valid YAML: "),
        ("name: bench", "name: a: b", "2: not valid YAML: "),
        ("name: bench", "name: 2001-99-99", "not valid YAML: 'month must be"),
        ("name: bench", "name: bench\n---\nname: x", "not valid YAML: but found"),
        ("[0, 1]", "[" * 1000, ": nested too deeply"),
        ("[0, 1]", "[" * 30 + "]" * 30, "3: cores[0][0]: is nested too deeply"),
        ("[0, 1]", "!!int x", "not valid YAML: "),
    ],
)
def test_a_wrong_key_is_named_with_file_line_and_reason(
    bench: Path, old: str, new: str, message: str
) -> None:
    assert old in TESTBED_YAML
    error = refused(bench, TESTBED_YAML.replace(old, new, 1))
    assert error.message.startswith(f"{bench}:")
    assert message in error.message
    assert len(error.message) < 600


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        ("name: bench\n", "", "add name: name of the testbed"),
        ("mtu:", "mtz:", "correct the key or remove it"),
        ("[0, 1]", "0", "write a list in brackets"),
        ("name: bench", "name: 5", "put the value in quotes"),
        ("  port:\n", "\tport:\n", "indent with spaces"),
        ("interface: tr", "", "interface for a kernel interface"),
        ("mtu: 1500", "mtu: '1500'", "no quotes"),
        ("[0, 1]", "[0, 1", "check indentation, colons and quotes"),
        ("name: bench", "name: bench\nname: x", "keep one of the two"),
    ],
)
def test_the_hint_says_what_to_do(bench: Path, old: str, new: str, hint: str) -> None:
    assert hint in refused(bench, TESTBED_YAML.replace(old, new, 1)).hint


def test_several_errors_are_listed_in_the_order_of_their_lines(bench: Path) -> None:
    text = TESTBED_YAML.replace("bench", "a/b").replace("1500", "5")
    lines = refused(bench, text.replace("[0, 1]", "7")).message.splitlines()
    assert [line.split(": ")[1] for line in lines] == ["name", "cores", "left.port.mtu"]


def test_no_more_than_ten_errors_are_listed(bench: Path) -> None:
    keys = "".join(f"k{n}: 0\n" for n in range(13))
    lines = refused(bench, TESTBED_YAML + keys).message.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "... and 3 more"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"# only a comment\n", "the file is empty"),
        (b"- a\n- b\n", "1: must be a block of keys ('name: ...'), not a list"),
        (b"hello", "1: must be a block of keys ('name: ...'), not a single value"),
        (b"\x7fELF\xff\xfe\x00", "not a text file (UTF-8)"),
        (b"name: a\nx: \x00", "2: not a text file: it has a control character"),
        (b"#" * 100_001, "larger than 100000 bytes"),
        (b"a: &a [0,0,0,0,0,0,0,0,0,0]\n", "name: is missing"),
    ],
)
def test_a_file_that_is_no_configuration_is_refused(
    bench: Path, content: bytes, message: str
) -> None:
    error = refused(bench, content)
    assert str(bench) in error.message
    assert message in error.message
    assert error.hint


def test_aliases_that_multiply_a_small_file_are_refused(bench: Path) -> None:
    tens = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)]
    text = "a0: &a0 [0, 0, 0, 0, 0, 0, 0, 0, 0, 0]\n" + "".join(tens)
    assert "repeated too often" in refused(bench, text).message


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.yaml: no such file"):
        load_testbed(tmp_path / "nowhere.yaml")


def test_a_campaign_on_a_lab_loads(tmp_path: Path) -> None:
    path = tmp_path / "campaign.yaml"
    path.write_text(CAMPAIGN_YAML)
    campaign = load_campaign(path)
    assert campaign.lab == ["linux-router"]
    assert campaign.procedures[0].trial_duration_s == 60


def test_a_testbed_path_is_relative_to_the_campaign_file(bench: Path) -> None:
    folder = bench.parent / "campaigns"
    folder.mkdir()
    path = folder / "c.yaml"
    path.write_text(
        CAMPAIGN_YAML.replace("lab: linux-router", "testbed: ../bench.yaml")
    )
    assert load_campaign(path).testbeds == [load_testbed(bench)]


@pytest.mark.parametrize("name", ["nowhere.yaml", ".", "''"])
def test_a_testbed_that_a_campaign_names_wrongly_is_shown_with_both_places(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(CAMPAIGN_YAML.replace("lab: linux-router", f"testbed: {name}"))
    with pytest.raises(InputError) as caught:
        load_campaign(path)
    first, second = caught.value.message.splitlines()
    assert first.startswith(f"{path}:2: testbed: ")
    assert str(tmp_path) in second


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("lab: linux-router\n", "", "1: give exactly one of the keys lab and testbed"),
        (
            "lab: linux-router",
            "testbed: {name: x, cores: [a]}",
            "2: testbed.cores[0]: must be a whole number, not 'a'",
        ),
        (
            "lab: linux-router",
            "testbed: {name: x, left: {port: {interface: a, mtuu: 3}}}",
            "testbed.left.port.mtuu: unknown key; did you mean mtu?",
        ),
        (
            "lab: linux-router",
            "testbed: 5",
            "2: testbed: must be a block of keys, not 5",
        ),
        (
            "[4]",
            "[4, 5]",
            "5: procedures[0].ip[1]: must be 4, 6, '6-4' or",
        ),
        ("[4]", "[4, 4]", "5: procedures[0].ip: must not list 4 twice"),
        (
            "[4]",
            "[4]\n    frame_size: [20]",
            "6: procedures[0].frame_size[0]: must be at least 64, not 20",
        ),
        (
            "[4]",
            "[4]\n    load_percent: [50]",
            "6: procedures[0].load_percent: unknown key: it is of frame-loss",
        ),
        ("[4]", "[4]\n    colour: 5", "procedures[0].colour: unknown key; known here"),
        ("5%", "0", "6: procedures[0].resolution: must be above 0"),
        ("5%", "0.000%", "6: procedures[0].resolution: must be above 0"),
        ("5%", "100%", "6: procedures[0].resolution: must be below 100%"),
        ("5%", "fine", "6: procedures[0].resolution: must be a percentage"),
        ("5%", "-1", "6: procedures[0].resolution: must be a percentage"),
        ("5%", "2.5", "6: procedures[0].resolution: must be a percentage"),
        ("quick", "quick\nseed: -1", "2: seed: must be at least 0, not -1"),
        (
            "throughput",
            "through",
            "4: procedures[0].procedure: must be one of throughput, multicast-",
        ),
        ("5%", "5%\n    trial_duration_s: 60 s", "trial_duration_s: must be a number,"),
    ],
)
def test_a_wrong_campaign_is_refused_with_its_line(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in CAMPAIGN_YAML
    path = tmp_path / "c.yaml"
    path.write_text(CAMPAIGN_YAML.replace(old, new, 1))
    with pytest.raises(InputError) as caught:
        load_campaign(path)
    assert message in caught.value.message


@pytest.mark.parametrize(("text", "value"), [("1000", "1000"), ("0.1%", "0.1%")])
def test_a_resolution_needs_no_quotes(tmp_path: Path, text: str, value: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(CAMPAIGN_YAML.replace("5%", text))
    (spec,) = load_campaign(path).procedures[:1]
    assert isinstance(spec, ThroughputSpec)
    assert spec.resolution == value


def test_data_from_elsewhere_is_checked_alike_without_lines() -> None:
    with pytest.raises(InputError) as caught:
        from_data(Campaign, {"name": "x", "lab": "l", "procedures": []}, "--procedure")
    assert caught.value.message == "--procedure: procedures: must have at least 1 entry"


def test_long_values_are_cut_in_messages(bench: Path) -> None:
    error = refused(bench, TESTBED_YAML.replace("name: bench", f"name: {'x' * 5000}"))
    assert len(error.message) < 500
    error = refused(bench, TESTBED_YAML + f"{'y' * 5000}: 1\n")
    assert len(error.message) < 500


def test_a_file_of_another_kind_is_named_with_what_takes_it(
    tmp_path: Path, bench: Path
) -> None:
    campaign = tmp_path / "campaign.yaml"
    campaign.write_text(CAMPAIGN_YAML)
    results = tmp_path / "results.json"
    results.write_text('{"schema_version": 3, "cells": []}')
    for load, path, what, takes in (
        (load_campaign, bench, "a testbed, not a campaign", "dutperf throughput FILE"),
        (load_testbed, campaign, "a campaign, not a testbed", "dutperf run FILE"),
        (load_testbed, results, "of results, not a testbed", "dutperf report DIR"),
        (load_campaign, results, "of results, not a campaign", "dutperf report DIR"),
        (load_campaign, tmp_path, "is a directory", "name a file in it"),
    ):
        with pytest.raises(InputError, match=what) as caught:
            load(path)
        assert str(path) in caught.value.message
        assert takes in caught.value.hint
