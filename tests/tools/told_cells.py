"""Made-up results: the cell of one, typed, from the settings that it is told with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from dutperf.catalogue import PROCEDURES, ProcedureName
from dutperf.model.cell import Cell
from dutperf.model.specs import SPECS, CapacitySearchKeys, ObservedKeys, TcpUseKeys
from dutperf.model.stateful_keys import Stateful
from dutperf.model.traffic import Traffic
from dutperf.results import CellResult

_CONNECTIONS = [n for n, p in PROCEDURES.items() if p.family == "connections"]
_TOLD_OTHERWISE = {"procedure", "traffic", "stateful", "ip", "flows", "repeats"}
_TOLD_OTHERWISE |= {"direction", "frame_size", "max_repeats", "interval_width"}
_NEEDED: dict[str, dict[str, object]] = {
    "back-to-back": {"throughput_fps": 1000},
    "latency": {"rate_fps": 1000, "first_tag_s": 0},
    "pdv": {"rate_fps": 1000},
    "ipdv": {"rate_fps": 1000},
    "system-recovery": {"throughput_fps": 1000},
    "outage": {"rate_fps": 1000},
    "power": {"rate_fps": 1000},
    "soak": {"rate_fps": 1000},
    "teardown-rate": {"rate_fps": 1000},
}


def cell_of(
    procedure: ProcedureName, told: Mapping[str, object], name: str = "cell"
) -> Cell:
    """The cell that ``told``, as results have it in ``parameters``, is of."""
    kind = SPECS[procedure]
    keys: dict[str, Any] = {"procedure": procedure} | _NEEDED.get(procedure, {})
    known = kind.model_fields.keys() & told.keys() - _TOLD_OTHERWISE
    keys |= {key: told[key] for key in known if told[key] is not None}
    if isinstance(keys.get("goals"), str):
        keys["goals"] = [keys["goals"]]
    if "stateful" in kind.model_fields and procedure in _CONNECTIONS:
        number = {"connections": told.get("connections", 1000)}
        keys["stateful"] = {} if issubclass(kind, ObservedKeys) else number
        if issubclass(kind, CapacitySearchKeys):
            keys["stateful"]["first"] = told.get("first", 1000)
        if issubclass(kind, TcpUseKeys):
            keys["stateful"]["phase1_rate"] = told.get("phase1_rate", 1000)
    ip = told.get("ip", 4)
    keys["ip"] = [int(str(ip)) if str(ip).isdigit() else ip]
    keys["traffic"] = [_traffic(told)]
    sizes = str(told.get("frame_sizes", told.get("frame_size", 64)))
    size = sizes.split("/", maxsplit=1)[0].split(" ", maxsplit=1)[0]
    cell: dict[str, Any] = {
        "id": name,
        "spec": keys,
        "frame_sizes": [int(size) if size.isdigit() else 64],
        "direction": told.get("direction", "both"),
        "stateful": _stateful(told),
        "seed": 0,
    }
    try:
        return Cell.model_validate(cell)
    except ValidationError:  # of what cannot be asked for together
        needed = ("procedure", "ip", "traffic", *_NEEDED.get(procedure, ()))
        plain = {key: keys[key] for key in needed}
        found = Cell.model_validate(cell | {"spec": plain})
        return found.with_keys(**{k: keys[k] for k in keys.keys() - plain.keys()})


def retyped(result: CellResult) -> CellResult:
    """``result`` with the cell that its settings tell."""
    cell = cell_of(result.procedure, result.parameters, result.id)
    return result.model_copy(update={"cell": cell})


def _traffic(told: Mapping[str, object]) -> Traffic:
    keys = {key: told[key] for key in Traffic.model_fields.keys() & told.keys()}
    for key in ("ports", "addresses", "networks", "load_shape"):
        keys.pop(key, None)
    mix, _, background = str(told.get("mix", "100/0")).partition(", background IPv")
    keys |= {"mix": mix, **({"background_ip": int(background)} if background else {})}
    if told.get("load_shape") and "burst_frames" not in keys:
        keys["load_shape"] = json.loads(str(told["load_shape"]))
    percent, _, kind = str(told.get("beside", "")).partition(" % ")
    if kind:
        key = kind.removesuffix(" frames").replace("-", "_") + "_percent"
        keys[key] = float(percent)
    for key in ("ipv6_headers", "ipv4_options"):
        if key in keys:
            keys[key] = str(keys[key]).split(", ")
    found = Traffic.model_validate(keys)
    label = told.get("profile", told.get("traffic"))
    named = bool(label) and label not in (found.label, found.own_label)
    update: dict[str, object] = {"name": label} if named else {}
    if told.get("frame_size", 64) is None:
        update["imix"] = str(told["frame_sizes"]).partition(":")[0]
    return found.model_copy(update=update)


def _stateful(told: Mapping[str, object]) -> Stateful | None:
    if not isinstance(told.get("connections"), int):
        return None
    keys = {key: told[key] for key in Stateful.model_fields.keys() & told.keys()}
    return Stateful.model_validate({"initiator": "left"} | keys)
