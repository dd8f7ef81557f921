"""Golden messages mean the same in Python as in C++ (see messages_test.cc)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from protocol_files import (
    GOLDEN,
    Json,
    body,
    borders,
    changed,
    golden,
    model,
    names,
    schema_name,
)
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from dutperf.engine.client import Notification, Response
from dutperf.protocol.base import Message
from dutperf.protocol.methods import METHODS
from dutperf.protocol.result_messages import Damage, Inspected

REQUESTS = names("params")
ANSWERS = [*names("result"), *names("error")]
COMPLETE = [n for n in [*REQUESTS, *ANSWERS, *names("progress")] if "-minimal" not in n]
MINIMAL = [n for n in REQUESTS if "-minimal" in n]
BORDERS = borders()

Path = tuple[str | int, ...]


def case_name(case: Json) -> str:
    value = "removed" if case.get("remove") else json.dumps(case["value"])
    return f"{case['request']}:{case['path']}:{value}"


def dumped(message: Message) -> Json:
    data: Json = json.loads(message.model_dump_json())
    return data


def test_every_method_has_golden_params_and_result() -> None:
    expected = {f"{m}.{kind}" for m in METHODS for kind in ("params", "result")}
    assert expected <= {schema_name(n) for n in [*REQUESTS, *ANSWERS]}


def test_every_file_is_tested() -> None:
    tested = {*REQUESTS, *ANSWERS, *names("progress"), "borders"}
    assert {path.stem for path in GOLDEN.iterdir()} == tested


@pytest.mark.parametrize("name", COMPLETE)
def test_a_message_survives_parsing_and_writing(name: str) -> None:
    data = body(golden(name))
    assert dumped(model(name).model_validate(data)) == data


@pytest.mark.parametrize("name", COMPLETE)
def test_a_message_read_from_text_is_the_same(name: str) -> None:
    data = body(golden(name))
    parsed = model(name).model_validate_json(json.dumps(data))
    assert parsed == model(name).model_validate(data)


@pytest.mark.parametrize("name", MINIMAL)
def test_a_minimal_request_means_the_complete_one(name: str) -> None:
    complete = name.replace("-minimal", "")
    short = model(name).model_validate(body(golden(name)))
    assert dumped(short) == body(golden(complete))
    assert short.model_dump(exclude_unset=True) == body(golden(name))


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_is_json_rpc(name: str) -> None:
    message = golden(name)
    assert set(message) == {"jsonrpc", "id", "method", "params"}
    assert message["jsonrpc"] == "2.0"
    assert message["method"] == schema_name(name).rpartition(".")[0]


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_is_json_rpc(name: str) -> None:
    response = Response.model_validate(golden(name))
    assert (response.result is None) == (response.error is not None)


@pytest.mark.parametrize("name", names("result"))
def test_a_result_answers_its_request(name: str) -> None:
    request = {
        "trial.run-invalid": "trial.run-ipv6",
        "trial.run-stopped": "trial.run-traffic",
    }
    method = name.removesuffix(".result")
    asked = golden(f"{request.get(method, method)}.params")
    assert golden(name)["id"] == asked["id"]


def test_progress_is_a_notification() -> None:
    assert Notification.model_validate(golden("trial.progress")).method == (
        "trial.progress"
    )


def test_verdicts_of_all_kinds_are_among_them() -> None:
    trials = [n for n in names("result") if n.startswith("trial.run")]
    kinds = {body(golden(n))["verdict"]["kind"] for n in trials}
    assert kinds == {"pass", "fail", "invalid"}


@pytest.mark.parametrize(
    "case", [c for c in BORDERS if c["refused"] is None], ids=case_name
)
def test_the_last_good_value_is_accepted(case: Json) -> None:
    model(f"{case['request']}.params").model_validate(changed(case))


@pytest.mark.parametrize("case", [c for c in BORDERS if c["refused"]], ids=case_name)
def test_the_first_bad_value_is_refused(case: Json) -> None:
    with pytest.raises(ValidationError) as refusal:
        model(f"{case['request']}.params").model_validate(changed(case))
    assert any(_is_about(error, case["refused"]) for error in refusal.value.errors())


def _is_about(error: ErrorDetails, where: str) -> bool:
    """Both languages blame the same place; rules between keys blame what holds them."""
    path = "".join(f"[{k}]" if isinstance(k, int) else f".{k}" for k in error["loc"])
    blamed = path.removeprefix(".")
    return blamed == where or (
        error["type"] == "value_error" and where.startswith(blamed)
    )


@pytest.mark.parametrize("name", COMPLETE)
def test_an_unknown_key_is_refused_everywhere(name: str) -> None:
    data = body(golden(name))
    for path in _objects(data):
        with pytest.raises(ValidationError, match="further"):
            model(name).model_validate(_with(data, path, "further", 1))


@pytest.mark.parametrize("name", [*names("result"), *names("progress")])
def test_no_key_of_a_result_may_be_missing_or_of_another_type(name: str) -> None:
    data = body(golden(name))
    may_be_missing = {"reasons", "hint", "ended_early", "survival", "table"}
    may_be_missing |= {"connections"}
    may_be_missing |= {"in_flight_frames", "port_full_ns"}
    may_be_missing |= {"ring_full", "stalls", "shadows"}  # of older journals
    may_be_missing |= {"beside", "untranslated"}
    may_be_missing |= {"lost_in_shadow", "late_in_shadow"}
    may_be_missing |= {"longest_loss", "last_loss", "longest_silence"}
    may_be_missing |= {"shaded_delay_ns", "shaded_ipdv_ns", "shaded"}
    may_be_missing |= {"damaged", *Damage.model_fields}
    may_be_missing |= {"inspected", *Inspected.model_fields} - {"frames"}
    may_be_missing |= {"kernel", "pauses"}
    may_be_missing |= {"interface_drops", "send_drops", "damaged_on_wire"}
    may_be_missing |= {"input_queues", "input_queue_drops"}
    may_be_missing |= {"vlan", "tpid", "pcp", "last_id", "other_vlan"}
    may_be_missing |= {
        "mpls",
        "tc",
        "number",
        "encapsulation",
        "copies",
        "received_end",
    }
    may_be_missing |= {"begin_unix_ns", "source_example", "neighbour_conflicts"}
    may_be_missing |= {"icmp", "answers", "announced"}
    may_be_missing |= {"reassembled", "incomplete", "tap", "slow_path"}
    may_be_missing |= {"shares", "one_share_because", "handed_over", "not_taken_over"}
    may_be_missing |= {"by_share", "tcp", "dns", "told"}
    for path in _objects(data):
        for key in list(_at(data, path)):
            with pytest.raises(ValidationError):
                model(name).model_validate(_with(data, path, key, {"no": "such"}))
            if key not in may_be_missing:
                with pytest.raises(ValidationError):
                    model(name).model_validate(_without(data, path, key))


def _objects(node: object, path: Path = ()) -> list[Path]:
    """Return the paths of all objects in ``node``."""
    if isinstance(node, dict):
        inner = [p for k, v in node.items() for p in _objects(v, (*path, k))]
        return [path, *inner]
    if isinstance(node, list):
        return [p for i, v in enumerate(node) for p in _objects(v, (*path, i))]
    return []


def _at(data: Json, path: Path) -> Json:
    node: Any = data
    for key in path:
        node = node[key]
    found: Json = node
    return found


def _with(data: Json, path: Path, key: str, value: object) -> Json:
    copied: Json = json.loads(json.dumps(data))
    _at(copied, path)[key] = value
    return copied


def _without(data: Json, path: Path, key: str) -> Json:
    copied: Json = json.loads(json.dumps(data))
    del _at(copied, path)[key]
    return copied


def test_an_outer_ipv4_source_is_the_last_32_bits_of_its_field() -> None:
    outer = {"kind": "ip", "local": "10.0.0.1", "remote": "10.0.0.2"}
    name = "trial.run-stateful.params"
    data = _with(body(golden(name)), ("directions", 0), "encapsulation", outer)
    place: Path = ("directions", 0, "streams", 0, "copies", 0)
    model(name).model_validate(_with(data, place, "offset", 96))
    with pytest.raises(ValidationError, match="before its last 32"):
        model(name).model_validate(_with(data, place, "offset", 95))
