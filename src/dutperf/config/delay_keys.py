"""Keys about delays: fixed loads, tagged frames, frame timeouts, tolerated loss.

The defaults of latency, PDV and IPDV are those of RFC 8219; a frame timeout or a
tolerated loss changes what throughput means, and every result says so (paper 004).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, field_validator

from dutperf.config.fields import Strict
from dutperf.config.rate_reference import FixedRate, FoundRate, parse_found_rate
from dutperf.config.stateful_keys import StatefulKeys
from dutperf.protocol import MAX_TIMEOUTS

Procedure = Literal[
    "throughput",
    "frame-loss",
    "latency",
    "pdv",
    "ipdv",
    "connection-rate",
    "table-capacity",
    "teardown-rate",
]

FIXED_LOAD: frozenset[Procedure] = frozenset({"latency", "pdv", "ipdv"})
"""Procedures at a load that is given, not searched."""

NEEDS_CONNECTIONS: frozenset[Procedure] = frozenset(
    {"connection-rate", "table-capacity", "teardown-rate"}
)
"""Procedures about connections themselves: only phase 1, and what follows from it."""

PHASE2: frozenset[Procedure] = FIXED_LOAD | {"throughput", "frame-loss"}
"""Procedures that may be measured on open connections (RFC 9693 4.7)."""

_OF_PHASE2 = {"phase1_rate", "phase2_after_ms", "responder_order"}
_CAPACITY: frozenset[Procedure] = frozenset({"table-capacity"})

ONLY_FOR: dict[str, frozenset[Procedure]] = {
    "resolution": frozenset({"throughput", "connection-rate", "table-capacity"}),
    "stateful": NEEDS_CONNECTIONS | PHASE2,
    **{
        f"stateful.{key}": PHASE2 if key in _OF_PHASE2 else NEEDS_CONNECTIONS | PHASE2
        for key in StatefulKeys.model_fields
    },
    "stateful.alpha": frozenset({"connection-rate", "table-capacity"}),
    "stateful.first": _CAPACITY,
    "stateful.error": _CAPACITY,
    "stateful.beta": _CAPACITY,
    "stateful.gamma": _CAPACITY,
    "stateful.expiry": frozenset({"teardown-rate"}),
    "load_percent": frozenset({"frame-loss"}),
    "load_step_percent": frozenset({"frame-loss"}),
    "rate_fps": FIXED_LOAD | {"teardown-rate", "frame-loss"},
    "tags": frozenset({"latency"}),
    "first_tag_s": frozenset({"latency"}),
    "legacy": frozenset({"latency"}),
    "frame_timeout_ms": frozenset({"throughput", "frame-loss"}),
    "timeout_sweep_ms": frozenset({"throughput", "frame-loss"}),
    "loss_tolerance_percent": frozenset({"throughput"}),
    "search": frozenset({"throughput"}),
    "verify_trials": frozenset({"throughput"}),
    "hopeless_loss_percent": frozenset({"throughput"}),
    "goals": frozenset({"throughput"}),
    "early_stop": frozenset({"throughput"}),
    "interval_width": frozenset({"throughput"}),
    "max_repeats": frozenset({"throughput"}),
}
"""Keys that make sense for some procedures only."""

_DEFAULTS: dict[Procedure, dict[str, Any]] = {
    "latency": {
        "trial_duration_s": 120.0,
        "repeats": 20,
        "tags": 50_000,
        "first_tag_s": 60.0,
    },
    "pdv": {"repeats": 20},
    "ipdv": {"repeats": 20},
    "table-capacity": {"resolution": "5%"},
    "teardown-rate": {"repeats": 3},
}


def procedure_defaults(procedure: object, *, legacy: bool) -> Mapping[str, Any]:
    """Keys of a procedure whose defaults are not those of all (RFC 8219 7.2, 7.3).

    Args:
        procedure: its name; of anything else there are none.
        legacy: latency as of RFC 2544 26.2, with one tag.
    """
    for name, defaults in _DEFAULTS.items():
        if name == procedure:
            return defaults | ({"tags": 1} if legacy and "tags" in defaults else {})
    return {}


def _whole(value: float, digits: int, unit: str) -> float:
    if not scaled(value, digits).is_finite():
        raise ValueError("must be a finite number")
    if scaled(value, digits) % 1:
        raise ValueError(f"must be whole {unit}, not {value!r}")
    return value


def scaled(value: float, digits: int) -> Decimal:
    """``value`` as it was written, times 10^digits, exactly."""
    return Decimal(str(value)).scaleb(digits)


def _check_ms(value: float) -> float:
    return _whole(value, 6, "nanoseconds")


def _check_percent(value: float) -> float:
    return _whole(value, 7, "parts per billion")


Milliseconds = Annotated[float, Field(gt=0, le=86_400_000), AfterValidator(_check_ms)]


class DelaySettings(Strict):
    """Keys of the procedures that measure delays, or judge by them."""

    rate_fps: FixedRate | None = Field(
        default=None,
        description="latency, pdv, ipdv: the load in frames per second of each "
        "direction, or throughput: the one that the campaign finds before (RFC 8219 "
        "7.2), throughput p25: a lower quantile of its repeats, 90% of throughput; "
        "frame-loss: throughput, which is 100 % then; teardown-rate: new connections "
        "per second, a number",
    )
    tags: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None,
        description="latency: tagged frames of each direction, whose delays are kept "
        "exactly (RFC 8219 7.2: at least 500)",
    )
    first_tag_s: Annotated[float, Field(ge=0, le=86400)] | None = Field(
        default=None,
        description="latency: how far into the trial the first frame is tagged "
        "(RFC 8219 7.2: 60 s)",
    )
    legacy: bool = Field(
        default=False,
        description="latency: one tagged frame a trial, and the average over the "
        "trials (RFC 2544 26.2)",
    )
    frame_timeout_ms: Milliseconds | None = Field(
        default=None,
        description="throughput, frame-loss: frames slower than this count as lost, "
        "which is not RFC 2544's measure; in milliseconds",
    )
    timeout_sweep_ms: list[Milliseconds] = Field(
        default=[],
        max_length=MAX_TIMEOUTS,
        description="throughput, frame-loss: tell also what would be lost by each of "
        "these frame timeouts, from the same trials; in milliseconds",
    )
    loss_tolerance_percent: Annotated[
        float, Field(ge=0, lt=100), AfterValidator(_check_percent)
    ] = Field(
        default=0,
        description="throughput: how much of a direction's frames may be lost, in "
        "percent; above 0 it is not RFC 2544's throughput",
    )

    @property
    def found_rate(self) -> FoundRate | None:
        """The load, if it is known only when the throughput was found."""
        rate_fps = self.rate_fps
        return parse_found_rate(rate_fps) if isinstance(rate_fps, str) else None

    @property
    def frame_timeout_ns(self) -> int | None:
        """The frame timeout, exactly."""
        given_ms = self.frame_timeout_ms
        return None if given_ms is None else int(scaled(given_ms, 6))

    @property
    def timeout_sweep_ns(self) -> list[int]:
        """The timeouts of the sweep, rising."""
        return sorted(int(scaled(each_ms, 6)) for each_ms in self.timeout_sweep_ms)

    @property
    def loss_tolerance_ppb(self) -> int:
        """The tolerated loss in parts per billion, exactly."""
        return int(scaled(self.loss_tolerance_percent, 7))

    @field_validator("timeout_sweep_ms")
    @classmethod
    def _each_once(cls, values: list[float]) -> list[float]:
        twice = [v for n, v in enumerate(values) if v in values[:n]]
        if twice:
            raise ValueError(f"must not list {twice[0]:g} twice")
        return values

    def delay_troubles(
        self, procedure: Procedure, duration_s: float, residual_wait_s: float
    ) -> Iterator[str]:
        """What of these keys does not fit the procedure and its times."""
        yield from self._misplaced(procedure)
        if procedure in FIXED_LOAD and self.rate_fps is None:
            yield (
                f"rate_fps: is missing: {procedure} is measured at a load that is "
                "given, in frames per second of each direction, or throughput: at the "
                "one that the campaign finds before (RFC 8219 7.2)"
            )
        if procedure == "frame-loss" and isinstance(self.rate_fps, int):
            yield (
                "rate_fps: must be throughput, or left out: the loads of frame-loss "
                "are percentages (load_percent, --load), of the throughput or of the "
                "maximum rate"
            )
        if procedure == "teardown-rate" and not isinstance(self.rate_fps, int):
            yield (
                "rate_fps: must be a number: teardown-rate opens so many connections "
                "per second (--rate), fewer than connection-rate finds"
            )
        if self.legacy and self.tags != 1:
            yield "tags: must be 1, or left out, with legacy (RFC 2544 26.2)"
        if self.first_tag_s is not None and self.first_tag_s >= duration_s:
            yield (
                f"first_tag_s: {self.first_tag_s:g} s is not before the end of the "
                f"trial, {duration_s:g} s (trial_duration_s)"
            )
        yield from self._too_long(residual_wait_s)

    def _misplaced(self, procedure: Procedure) -> Iterator[str]:
        for key, field in DelaySettings.model_fields.items():
            wanted = ONLY_FOR[key]
            if getattr(self, key) != field.default and procedure not in wanted:
                names = " and ".join(sorted(wanted))
                yield f"{key}: belongs to {names}, not to {procedure}"

    def _too_long(self, residual_wait_s: float) -> Iterator[str]:
        """After the last frame only the residual wait is left to be late in."""
        given: dict[str, list[float]] = {
            "frame_timeout_ms": [self.frame_timeout_ms]
            if self.frame_timeout_ms
            else [],
            "timeout_sweep_ms": self.timeout_sweep_ms,
        }
        for key, timeouts_ms in given.items():
            longest_ms = max(timeouts_ms, default=0)
            if longest_ms and longest_ms >= residual_wait_s * 1000:
                yield (
                    f"{key}: {longest_ms:g} ms is not below the wait for late frames, "
                    f"{residual_wait_s:g} s: raise residual_wait_s, or frames that "
                    "are late would be taken for lost"
                )
