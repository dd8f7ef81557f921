"""What a cell's result says about how it was made."""

from __future__ import annotations

from dutperf.config import deviations
from dutperf.config.campaign import Cell
from dutperf.procedures.limits import MaxRate
from dutperf.results.model import Deviation

Parameters = dict[str, str | int | float | bool | None]

_NOT_PARAMETERS = {"id", "procedure", "load_percent", "max_rate_fps"}


def cell_parameters(cell: Cell, limit: MaxRate) -> Parameters:
    """The cell's settings and the rate that 100 % stands for."""
    settings: Parameters = cell.model_dump(exclude=_NOT_PARAMETERS)
    return settings | {"max_load_fps": limit.rate_fps, "max_load_is": limit.kind}


def cell_deviations(cell: Cell) -> list[Deviation]:
    """In what the cell's settings do less than the standard asks for."""
    return [
        Deviation(rfc=rfc, requirement=requirement, actual=actual)
        for rfc, requirement, actual in deviations(cell)
    ]
