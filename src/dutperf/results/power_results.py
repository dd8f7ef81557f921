"""What is stored of a device's power: each reading of the meter, and watts by load."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from dutperf.results.units import Stored, about

Lasting = Literal["idle", "trial"]
"""What is metered: a device without frames, or a trial."""
MOST_W = 1e9
"""No device takes more."""


class PowerReading(Stored):
    """One answer of the meter: watts, or joules of a counter; or why it has none."""

    asked_ns: int = Field(description="since 1970 by the clock of who asked")
    answered_ns: int = Field(description="likewise")
    watts: Annotated[float, Field(gt=0, le=MOST_W)] | None = None
    joules: Annotated[float, Field(ge=0, le=1e18)] | None = Field(
        default=None, description="since the meter was opened, wraps undone"
    )
    stamp: str | None = Field(
        default=None, description="the meter's own time stamp, if it prints one"
    )
    failed: str = Field(default="", description="why it is no reading; empty: it is")


class Metered(Stored):
    """The readings while something lasted, and what the testbed says of the meter."""

    of: Lasting
    begin_ns: int | None = Field(
        description="since 1970; of a trial when the first frame was due; null: unknown"
    )
    end_ns: int | None = Field(description="likewise, when the last one was")
    clock_set: bool = Field(description="the clock was set meanwhile")
    meter: str = Field(description="in words")
    accuracy_percent: Annotated[float, Field(gt=0, lt=100)] = Field(
        description="of a reading"
    )
    accuracy_w: float = Field(description="and beside that")
    averaging_s: float = Field(description="over which the meter averages")
    readings: list[PowerReading]


class Watts(Stored):
    """A mean, and how far it may be wrong by the meter and by the readings."""

    watts: float
    systematic_w: float = Field(description="by the meter's accuracy: a limit")
    random_w: float = Field(
        description="half of the 95 % interval of the mean, of readings that may be "
        "like those before; from 6 repeats on not less than that of the repeats"
    )
    readings: int

    @property
    def bound_w(self) -> float:
        """Both, added: a limit is no deviation that another one could make up for."""
        return self.systematic_w + self.random_w


class Energy(Stored):
    """What frames cost that the device forwards, with bounds by those of the watts."""

    packet_nj: float
    packet_bound_nj: float
    bit_nj: float = Field(description="a bit of a frame, FCS included")
    bit_bound_nj: float


class PowerPoint(Stored):
    """Watts at one load; all directions together but for ``load_fps``."""

    load_percent: float = Field(description="0: idle, links up and no frames")
    load_fps: int = Field(description="per direction")
    forwarded_fps: float | None = Field(description="null: no trial was valid")
    forwarded_bps: float | None = Field(description="bits of frames, FCS included")
    lost_percent: float | None = Field(description="null: likewise, or idle")
    watts: Watts | None = Field(description="null: cannot tell")
    why: str = Field(default="", description="why that cannot be told")
    total: Energy | None = Field(
        default=None, description="of all watts; null: cannot tell, or none forwarded"
    )
    marginal: Energy | None = Field(
        default=None, description="of the watts above those of an idle device"
    )


class Power(Stored):
    """What a device takes without a load and with each."""

    meter: str = Field(description="in words, with its accuracy; empty: nobody knows")
    points: list[PowerPoint] = Field(description="idle, then by rising load")

    @property
    def idle(self) -> PowerPoint:
        """Without frames."""
        return self.points[0]

    @property
    def full(self) -> PowerPoint:
        """At 100 %."""
        return self.points[-1]

    @property
    def words(self) -> str:
        """Watts at full load, and idle; empty: cannot tell."""
        full, idle = self.full.watts, self.idle.watts
        if full is None:
            return ""
        told = f"{about(full.watts, 4)} W, give or take {about(full.bound_w)} W"
        return f"{told}; idle {about(idle.watts, 4)} W" if idle else told
