"""Keys of procedures that count losses: a frame that is too late may be one.

A frame timeout changes what throughput and frame loss mean, and every result says so
(paper 004).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Self

from pydantic import AfterValidator, Field, field_validator, model_validator

from dutperf.config.fields import distinct
from dutperf.config.problem import KeyedError
from dutperf.config.specs.procedure_keys import TimedStreamKeys
from dutperf.protocol import MAX_TIMEOUTS


def scaled(value: float, digits: int) -> Decimal:
    """``value`` as it was written, times 10^digits, exactly."""
    return Decimal(str(value)).scaleb(digits)


def whole(value: float, digits: int, unit: str) -> float:
    """``value``, of which 10^digits make a whole number of ``unit``.

    Raises:
        ValueError: they do not.
    """
    if not scaled(value, digits).is_finite():
        raise ValueError("must be a finite number")
    if scaled(value, digits) % 1:
        raise ValueError(f"must be whole {unit}, not {value!r}")
    return value


def _check_ms(value: float) -> float:
    return whole(value, 6, "nanoseconds")


Milliseconds = Annotated[float, Field(gt=0, le=86_400_000), AfterValidator(_check_ms)]


class LossKeys(TimedStreamKeys):
    """What throughput and frame loss have in common."""

    frame_timeout_ms: Milliseconds | None = Field(
        default=None,
        description="frames slower than this count as lost; in milliseconds, and "
        "not RFC 2544's measure",
    )
    timeout_sweep_ms: list[Milliseconds] = Field(
        default=[],
        max_length=MAX_TIMEOUTS,
        description="what each of these frame timeouts would lose, too; from the "
        "same trials, in milliseconds",
    )

    @field_validator("timeout_sweep_ms")
    @classmethod
    def _each_once(cls, values: list[float]) -> list[float]:
        return distinct(values)

    @model_validator(mode="after")
    def _seen_to_the_end(self) -> Self:
        """After the last frame only the residual wait is left to be late in."""
        given = {
            "frame_timeout_ms": self.frame_timeout_ms or 0,
            "timeout_sweep_ms": max(self.timeout_sweep_ms, default=0),
        }
        for key, longest_ms in given.items():
            if longest_ms and longest_ms >= self.residual_wait_s * 1000:
                raise KeyedError(
                    (key,),
                    f"{longest_ms:g} ms is not below the wait for late frames, "
                    f"{self.residual_wait_s:g} s: raise residual_wait_s, or frames "
                    "that are late would be taken for lost",
                )
        return self

    takes_bursts = True

    @property
    def up_to_maximum(self) -> bool:
        """Whether the highest load is as much as the ports can offer."""
        return True

    @property
    def frame_timeout_ns(self) -> int | None:
        """The frame timeout, exactly."""
        given_ms = self.frame_timeout_ms
        return None if given_ms is None else int(scaled(given_ms, 6))

    @property
    def timeout_sweep_ns(self) -> list[int]:
        """Further timeouts to tell the loss by, rising."""
        return sorted(int(scaled(each_ms, 6)) for each_ms in self.timeout_sweep_ms)
