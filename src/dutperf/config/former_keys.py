"""Files of earlier versions: keys with other names, and of all procedures for all.

A key that is called otherwise now is read by its old name, too, with a notice.
A key that its procedure never had a use for is left out: without a word where it said
what it says by default, as stored campaigns do, and with a notice where somebody meant
something by it. All other keys that a procedure does not have are refused as unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from dutperf.config.problem import Keys, Problem
from dutperf.config.specs import SPECS, EstablishmentKeys
from dutperf.config.validate import models_in

_SAID_NOTHING: Mapping[str, Any] = {
    "load_percent": [],
    "legacy": False,
    "timeout_sweep_ms": [],
    "loss_tolerance_percent": 0,
    "flows": [],
    "error": 1,
    "beta": 0.1,
    "gamma": 0.5,
    "expiry": False,
    "responder_order": "random",
}
"""Defaults of keys that procedures had without having a use for them."""
_RENAMED = {
    "places": "testbeds",
    "legacy": "rfc2544_latency",
    "hopeless_loss_percent": "max_verify_loss_percent",
}
_HAD_NO_EFFECT = {"resolution", "trial_duration_s", "residual_wait_s"}
_WAYS = {"left": "forward", "right": "reverse"}


def modernised(campaign: Mapping[str, Any]) -> tuple[dict[str, Any], list[Problem]]:
    """``campaign``, as it was written, in the keys of this version.

    Returns:
        Plain data, and what its writer should know of it.
    """
    procedures = campaign.get("procedures")
    if not isinstance(procedures, list):
        return dict(campaign), []
    told: list[Problem] = []
    found = [
        _without_former(data, ("procedures", number), told)
        for number, data in enumerate(procedures)
    ]
    return {**campaign, "procedures": found}, told


def _without_former(data: Any, where: Keys, told: list[Problem]) -> Any:  # noqa: ANN401
    name = data.get("procedure") if isinstance(data, dict) else None
    spec = SPECS.get(name) if isinstance(name, str) else None
    if spec is None:
        return data
    kept = dict(_kept(data, spec, where, told))
    stateful = kept.get("stateful")
    if isinstance(stateful, dict):
        if issubclass(spec, EstablishmentKeys):
            way = _WAYS.get(str(stateful.get("initiator", "left")))
            if kept.get("direction") in ("both", ["both"], way, [way]):
                del kept["direction"]
        (model,) = models_in(spec.model_fields["stateful"].annotation)
        kept["stateful"] = dict(_kept(stateful, model, (*where, "stateful"), told))
    return kept


def _kept(
    data: Mapping[str, Any], model: type[BaseModel], where: Keys, told: list[Problem]
) -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        name = _RENAMED.get(key)
        if name in model.model_fields and name not in data:
            told.append(Problem((*where, key), f"is called {name} now: rename it"))
            yield name, value
        elif key in model.model_fields or not _is_former(key, value):
            yield key, value
        elif key in _HAD_NO_EFFECT:
            what = "has no effect here and is left out: take it out"
            told.append(Problem((*where, key), what))


def _is_former(key: str, value: Any) -> bool:  # noqa: ANN401 - raw YAML
    if key in _HAD_NO_EFFECT:
        return True
    return key in _SAID_NOTHING and value == _SAID_NOTHING[key]
