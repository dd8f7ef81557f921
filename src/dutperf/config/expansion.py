"""A campaign at its testbeds as independent cells, checked before the first frame."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import Field, ValidationError

from dutperf.config.campaign import Campaign, LabKeys
from dutperf.config.cell_checks import (
    captured_sizes,
    check_captured,
    check_hooks,
    check_log,
    check_management,
    check_routing,
    check_tunnels,
    empties_table,
)
from dutperf.config.flows import directions, own_hosts
from dutperf.config.paths import check_paths, path_flows
from dutperf.config.phase2 import check_stateful
from dutperf.config.rate_sources import check_load, check_load_over_time, with_source
from dutperf.config.sizes import (
    check_fragmented,
    check_sizes,
    default_versions,
    frame_versions,
    given_sizes,
    largest_mtu,
    most_header_bytes,
    query_size,
    smallest_size,
    standard_sizes,
    syn_size,
)
from dutperf.config.testbed import CORES, Testbed
from dutperf.errors import InputError
from dutperf.model.cell import Cell
from dutperf.model.fields import (
    CampaignError,
    KeyedError,
    Keys,
    Problem,
    Strict,
    repeated,
)
from dutperf.model.frames import IpVersions
from dutperf.model.procedure_keys import Direction, StreamKeys, Sweep
from dutperf.model.rate_specs import FrameLossSpec, QueryKeys, RateSearchKeys
from dutperf.model.specs import (
    OVERLOAD_PERCENT,
    CapacitySearchKeys,
    EstablishmentKeys,
    LatencySpec,
    ProcedureSpec,
    SystemRecoverySpec,
)
from dutperf.model.stateful_keys import Stateful
from dutperf.model.traffic import Traffic, check_beside
from dutperf.protocol.base import DirectionName
from dutperf.visible import without_cores

# One procedure of a campaign at one testbed, and how to say what is wrong with it.


@dataclass(frozen=True)
class Entry:
    """``at``, the testbed's name, is empty if the campaign has no other."""

    campaign: Campaign
    index: int
    testbed: Testbed
    at: str

    @property
    def asked(self) -> ProcedureSpec:
        """The procedure as it was given."""
        return self.campaign.procedures[self.index]

    @property
    def spec(self) -> ProcedureSpec:
        """The procedure, the numbers of its sweep listed."""
        return self.asked.spread

    @property
    def ending(self) -> str:
        """Of the ids of its cells."""
        return f"@{self.at}" if self.at else ""

    @contextmanager
    def blamed(self, profile: Traffic | None = None) -> Iterator[None]:
        """Tell of what is refused inside at which key and testbed that was.

        Args:
            profile: the one that it is about.

        Raises:
            CampaignError: instead of an InputError.
        """
        try:
            yield
        except CampaignError:
            raise
        except KeyedError as error:
            keys = self._of_profile(error.keys, profile)
            raise self._refusal(keys, error.what, error.hint) from None
        except InputError as error:
            raise self._refusal((), error.message, error.hint) from None

    def _of_profile(self, keys: Keys, profile: Traffic | None) -> Keys:
        """With the number of the profile, if there are several."""
        if profile is None or keys[0] != "traffic" or len(self.asked.traffic) == 1:
            return keys
        each = len(self.spec.profiles) // len(self.asked.traffic)
        number = self.spec.profiles.index(profile) // each
        return ("traffic", number, *keys[1:])

    def _refusal(self, keys: Keys, what: str, hint: str) -> CampaignError:
        at = f"at {self.at}: " if self.at else ""
        problem = Problem(("procedures", self.index, *keys), f"{at}{what}", hint)
        return CampaignError(self.campaign.name, problem)


# Where cells are to be measured: a testbed that stands, or a lab to be made.


class PlannedTestbed(Strict):
    """A testbed as it will be: of a lab the one that it would have on this machine."""

    lab: LabKeys | None = Field(
        default=None, description="the lab that is brought up; none: it stands already"
    )
    testbed: Testbed
    cores: int | None = Field(
        default=None, description="how many of the device's are active; none: as it is"
    )

    @property
    def name(self) -> str:
        """The name of the lab or testbed, by which testbeds are told apart."""
        base = self.lab.testbed_name if self.lab else self.testbed.name
        return base if self.cores is None else f"{base}-{self.cores}cores"

    def with_cores(self, number: int) -> PlannedTestbed:
        """The same with so many active cores: of a testbed that stands, another one.

        Raises:
            InputError: nothing sets them.
        """
        chosen = self.model_copy(update={"cores": number})
        asked = chosen.as_asked(self.testbed)
        return PlannedTestbed(
            lab=self.lab, testbed=asked, cores=number if self.lab else None
        )

    def as_asked(self, testbed: Testbed) -> Testbed:
        """``testbed``, which stands, with as many active cores as are asked for.

        Raises:
            InputError: nothing sets them.
        """
        if self.cores is None:
            return testbed
        command = testbed.hooks.set_cores
        if command is None:
            raise InputError(
                f"{testbed.name} has no hook set_cores, which sets the active cores",
                "add it to the testbed's hooks, or take the key cores out",
            )
        number = str(self.cores)
        words = [
            word.replace(CORES, number) if isinstance(word, str) else word
            for word in command.command
        ]
        set_now = command.model_copy(update={"command": words})
        hooks = testbed.hooks.model_copy(
            update={
                "before_campaign": [set_now, *testbed.hooks.before_campaign],
                "set_cores": None,
            }
        )
        device = testbed.device.model_copy(update={"cores": number})
        cores = "1 active core" if self.cores == 1 else f"{number} active cores"
        told = f"set to {cores} before the first trial"
        return testbed.model_copy(
            update={
                "name": self.name,
                "description": ", ".join(filter(None, [testbed.description, told])),
                "hooks": hooks,
                "device": device,
            }
        )


def check_testbeds(campaign: Campaign, names: Sequence[str]) -> None:
    """Each testbed is there once, procedures name no others, and all have work.

    Raises:
        CampaignError: they do not.
    """
    for problem in _problems(campaign, names):
        raise CampaignError(campaign.name, problem)


def _problems(campaign: Campaign, names: Sequence[str]) -> Iterator[Problem]:
    key = "lab" if campaign.testbed is None else "testbed"
    twice = repeated(names)
    if twice is not None:
        yield Problem(
            (key, twice),
            f"{names[twice]} is listed twice: testbeds are told apart by their names",
            "take one out; of a testbed, or change its key name",
        )
    known_names = {*names, *map(without_cores, names)}
    for index, spec in enumerate(campaign.procedures):
        for number, name in enumerate(spec.testbeds):
            if name not in known_names:
                near = difflib.get_close_matches(name, names, n=1)
                listed = ", ".join(names)
                known = f"did you mean {near[0]}?" if near else f"it has {listed}"
                yield Problem(
                    ("procedures", index, "testbeds", number),
                    f"{name} is no testbed of this campaign; {known}",
                    f"correct it, or add it to the campaign's {key}",
                )
    for number, name in enumerate(names):
        if not any(spec.is_for(name) for spec in campaign.procedures):
            yield Problem(
                (key, number),
                f"{name} is in the testbeds of no procedure",
                "take it out, or add it to the testbeds of a procedure",
            )


def expand(campaign: Campaign, *testbeds: Testbed) -> list[Cell]:
    """The cells of ``campaign`` in the order in which they are to be measured.

    Those of one testbed stand together. With several testbeds, a cell's id ends in
    ``@`` and the name of its testbed.

    Raises:
        CampaignError: a cell cannot be measured where it should, or is listed twice.
    """
    check_testbeds(campaign, [testbed.name for testbed in testbeds])
    cells: dict[str, Cell] = {}
    for testbed in testbeds:
        for entry in _entries(campaign, testbed, several=len(testbeds) > 1):
            with entry.blamed():
                for cell in _cells(entry):
                    if cell.id in cells:
                        raise InputError(
                            f"{cell.id} is listed twice",
                            "take it out here; to measure more than once use repeats, "
                            "and for other traffic give it a traffic.name",
                        )
                    cells[cell.id] = with_source(cell, cells.values())
    return list(cells.values())


def resolved(campaign: Campaign, *testbeds: Testbed) -> dict[str, Any]:
    """``campaign`` with all defaults filled in, as plain data for ``campaign.yaml``.

    ``load_campaign`` accepts it again, and with ``testbeds`` it gives the same cells.

    Raises:
        CampaignError: as ``expand``.
    """
    key, where = "lab", [_as_given(lab) for lab in campaign.lab or []]
    if campaign.lab is None:
        stored = [testbed.stored for testbed in testbeds]
        key, where = "testbed", [t.model_dump(exclude_none=True) for t in stored]
    # A testbed has its own set already, by a hook; a lab is made again.
    numbers = _numbers(testbeds) if campaign.cores == "all" else campaign.cores
    cores = {"cores": numbers} if numbers and campaign.lab else {}
    return {
        "schema_version": campaign.schema_version,
        "name": campaign.name,
        "seed": campaign.seed,
        key: where if len(where) > 1 else where[0],
        **cores,
        **({"require": campaign.require} if campaign.require else {}),
        "procedures": _procedures(expand(campaign, *testbeds)),
    }


def _numbers(testbeds: Sequence[Testbed]) -> list[int]:
    """How many active cores they have, of those whose names say it."""
    return [
        *dict.fromkeys(
            int(each.device.cores or 0)
            for each in testbeds
            if without_cores(each.name) != each.name
        )
    ]


def _procedures(cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """One for each cell; of cells that differ in their testbeds alone, one for all.

    Of hundreds of testbeds the file would have tens of thousands otherwise.
    """
    plain = [cell.spec.model_dump(exclude_none=True) for cell in cells]
    at = [spec.pop("testbeds", []) for spec in plain]
    names = [repr(spec) for spec in plain]
    place = {name: n for n, name in enumerate(dict.fromkeys(names))}
    found = {name: (spec, list[str]()) for name, spec in zip(names, plain, strict=True)}
    last: dict[str | None, int] = {}
    for cell, name, where in zip(cells, names, at, strict=True):
        if place[name] <= last.get(cell.testbed, -1):  # another order there
            return [
                s | {"testbeds": w} if w else s for s, w in zip(plain, at, strict=True)
            ]
        last[cell.testbed] = place[name]
        found[name][1].extend(where)
    return [
        spec | {"testbeds": where} if where else spec for spec, where in found.values()
    ]


def resolved_again(stored: dict[str, Any], *testbeds: Testbed) -> dict[str, Any]:
    """A campaign that an earlier version resolved, as this one would.

    ``stored`` itself if it is no campaign, or cannot be at ``testbeds``.
    """
    try:
        return resolved(Campaign.model_validate(stored, strict=True), *testbeds)
    except (ValidationError, InputError):
        return stored


def _as_given(lab: str | LabKeys) -> Any:  # noqa: ANN401 - plain data
    return lab if isinstance(lab, str) else lab.model_dump(exclude_none=True)


def _entries(campaign: Campaign, testbed: Testbed, *, several: bool) -> Iterator[Entry]:
    for index, spec in enumerate(campaign.procedures):
        if spec.is_for(testbed.name):
            yield Entry(campaign, index, testbed, testbed.name if several else "")


class _Choice(NamedTuple):
    """One of all that a procedure lists."""

    ip: IpVersions
    sizes: list[int]
    traffic: Traffic
    direction: Direction
    stateful: Stateful | None
    shares: tuple[int, int] | None


def _cells(entry: Entry) -> Iterator[Cell]:
    spec, testbed = entry.spec, entry.testbed
    same = _settled(spec) | {"max_rate_fps": _max_rate(spec, testbed)}
    for of in _matrix(spec, testbed):
        own: dict[str, Any] = {
            "testbeds": [entry.at] if entry.at else [],
            "ip": [of.ip],
            "frame_size": [] if _size(of) else of.sizes,
            "traffic": [of.traffic],
        }
        if isinstance(spec, StreamKeys):
            own |= {"direction": [of.direction], "flows": []}
        if of.shares:
            cached, aaaa = of.shares
            own |= {"cached_percent": [cached], "aaaa_percent": [aaaa]}
        if spec.stateful and of.stateful:
            number = {"connections": [of.stateful.connections]}
            own["stateful"] = spec.stateful.model_copy(update=number)
        if spec.sweep:
            own["sweep"] = spec.sweep.of(_number(spec.sweep, of))
        cell = Cell(
            id=_name(entry, of),
            testbed=testbed.name,
            series=_series(entry, of),
            spec=spec.model_copy(update=same | own),
            frame_sizes=of.sizes,
            direction=of.direction,
            stateful=_on(testbed, of.stateful),
            pairs=testbed.pairs,
            seed=entry.campaign.seed,
        )
        with entry.blamed(of.traffic):
            _check(testbed, cell)
        yield cell


def _settled(spec: ProcedureSpec) -> dict[str, Any]:
    """Keys that say what others leave open: each load, each goal's duration."""
    match spec:
        case RateSearchKeys():
            return {"goals": spec.timed_goals}
        case FrameLossSpec():
            return {"load_percent": spec.loads_percent, "load_step_percent": None}
    return {}


def _matrix(spec: ProcedureSpec, testbed: Testbed) -> Iterator[_Choice]:
    """Every combination; an IMIX has sizes of its own."""
    for ip in _versions(spec, testbed):
        for traffic in spec.profiles:
            for sizes in _sizes(spec, traffic, ip, testbed):
                for direction in spec.direction:
                    for stateful in _connections(spec, traffic):
                        for shares in _shares(spec):
                            yield _Choice(
                                ip, sizes, traffic, direction, stateful, shares
                            )


def _shares(spec: ProcedureSpec) -> Sequence[tuple[int, int] | None]:
    return spec.shares if isinstance(spec, QueryKeys) else [None]


def _on(testbed: Testbed, stateful: Stateful | None) -> Stateful | None:
    """With what the testbed says of its device."""
    if stateful is None:
        return None
    told = {
        "translates": testbed.translates,
        "is_emptied": empties_table(testbed),
        "untold": testbed.device.missing,
    }
    return stateful.model_copy(update=told)


def _connections(spec: ProcedureSpec, traffic: Traffic) -> Sequence[Stateful | None]:
    return spec.stateful.each(traffic.addresses) if spec.stateful else [None]


def between(cell: Cell, testbed: Testbed, number: int) -> Cell:
    """The cell of the same sweep that has another ``number``.

    Raises:
        CampaignError: it cannot be measured.
    """
    assert cell.spec.sweep  # noqa: S101 - it is of one
    spec = cell.spec.model_copy(update={"sweep": cell.spec.sweep.of(number)})
    campaign = Campaign.model_construct(
        name=cell.id, seed=cell.seed, procedures=[spec], testbed=[testbed]
    )
    entry = Entry(campaign, 0, testbed, "".join(spec.testbeds))
    with entry.blamed():
        (found,) = _cells(entry)
    return found


def _number(sweep: Sweep, of: _Choice) -> int:
    """What the choice has of what is swept."""
    traffic = of.traffic
    match sweep.key:
        case "addresses":
            return traffic.addresses.count("left")
        case "ports":
            least, most = traffic.ports.source.bounds
            return most - least + 1
        case "networks":
            return traffic.networks.left
        case "flows":
            return traffic.flows or 1
        case "connections":
            return of.stateful.connections if of.stateful else 1
        case "frame_size":
            return of.sizes[0]


def _name(entry: Entry, of: _Choice) -> str:
    size, label = _size(of) or str(of.sizes[0]), of.traffic.label
    sweep = entry.spec.sweep
    if sweep and sweep.is_of_traffic:
        own = sweep.without(of.traffic).label
        label = "-".join(filter(None, (own, f"{_number(sweep, of)}{sweep.key}")))
    parts = _parts(entry.spec, of, size, label)
    return "-".join(parts) + entry.ending


def _series(entry: Entry, of: _Choice) -> str | None:
    """The name without frame size and number of flows (RFC 8219 10), or of a sweep."""
    sweep, traffic = entry.spec.sweep, of.traffic
    if traffic.flows is None and sweep is None:
        return None
    if sweep and sweep.is_of_traffic:
        traffic = sweep.without(traffic)
    if sweep and sweep.key == "connections":
        of = of._replace(stateful=None)
    parts = _parts(entry.spec, of, _size(of), traffic.series_label)
    swept = [f"over-{sweep.key}"] if sweep and sweep.key != "flows" else []
    return "-".join([*parts, *swept]) + entry.ending


def _size(of: _Choice) -> str:
    """A size that is no number."""
    if of.traffic.pcap:
        return of.traffic.pcap.label
    return f"imix-{of.traffic.imix.sequence}" if of.traffic.imix else ""


def _parts(spec: ProcedureSpec, of: _Choice, size: str, label: str) -> list[str]:
    parts = [spec.procedure, f"ip{of.ip}", size, of.direction]
    parts += [*_opened(spec, of.stateful), *_asked(of.shares), *_judged(spec), label]
    return [part for part in parts if part]


def _opened(spec: ProcedureSpec, stateful: Stateful | None) -> Iterator[str]:
    """What tells cells apart that open connections."""
    if stateful is None:
        return
    up_to = "upto" if isinstance(spec, CapacitySearchKeys) else ""
    kind = "" if stateful.transport == "udp" else stateful.transport
    yield f"{up_to}{stateful.connections}{kind}connections"
    if stateful.alpha is not None and not up_to:
        yield "validated"
    if stateful.expiry:
        yield "expiry"


def _asked(shares: tuple[int, int] | None) -> Iterator[str]:
    """What tells cells of queries apart."""
    for name, percent in zip(("cached", "aaaa"), shares or (), strict=False):
        if percent:
            yield f"{name}-{percent}percent"


def _judged(spec: ProcedureSpec) -> Iterator[str]:
    """What tells cells apart that send the same frames."""
    if isinstance(spec, RateSearchKeys) and spec.search != "narrowed":
        yield spec.search
    if isinstance(spec, SystemRecoverySpec):
        if spec.overload_percent != OVERLOAD_PERCENT:
            yield f"overload-{spec.overload_percent:.12g}percent"
    elif spec.rate_reference and spec.reference_use != "correction":
        named = str(spec.rate_reference).replace("%", "percent")
        yield f"at-{named.replace(' ', '-')}"
    elif spec.rate_per_flow_fps:
        yield f"at-{spec.rate_per_flow_fps}fps-per-flow"
    elif spec.given_rate_fps and not isinstance(spec, EstablishmentKeys):
        yield f"{spec.given_rate_fps}fps"
    if isinstance(spec, LatencySpec) and spec.rfc2544_latency:
        yield "legacy"
    if spec.tcp and spec.tcp.retransmit:
        yield f"retransmit-{spec.tcp.retransmit}"
    criterion = spec.loss_criterion
    if criterion.frame_timeout_ms is not None:
        yield f"within-{criterion.frame_timeout_ms:.12g}ms"
    if criterion.tolerance_percent:
        yield f"tolerating-{criterion.tolerance_percent:.12g}percent"


def _versions(spec: ProcedureSpec, testbed: Testbed) -> list[IpVersions]:
    versions = spec.ip or default_versions(testbed, spec.stateful)
    if not versions:
        raise InputError(
            f"testbed {testbed.name} has no IP version on both sides",
            "add the keys left.ipv4 and right.ipv4, or left.ipv6 and right.ipv6; for a "
            "translator also virtual addresses",
        )
    return versions


def _sizes(
    spec: ProcedureSpec, traffic: Traffic, ip: IpVersions, testbed: Testbed
) -> list[list[int]]:
    """The sizes of each cell: one, or the sequence of an IMIX."""
    versions = frame_versions(ip, traffic)
    if spec.tcp:
        return [[syn_size(versions)]]
    if spec.dns:
        return [[query_size(versions)]]
    mtu = largest_mtu(testbed, traffic, spec.direction)
    if traffic.imix:
        return [traffic.imix.frame_sizes(mtu, ipv6=6 in versions)]
    if traffic.pcap:
        return [captured_sizes(traffic.pcap, ip)]
    extra = most_header_bytes(traffic, ip, spec.stateful)
    if spec.size_range:
        least, most = spec.size_range
        fit = standard_sizes(mtu, versions, extra).fit
        if not (within := [[size] for size in fit if least <= size <= most]):
            sizes = ", ".join(map(str, fit))
            what = f"no size of the RFCs is from {least} to {most}"
            raise KeyedError(("frame_size",), what, f"those of this link: {sizes}")
        return within
    if not spec.frame_size:
        return [[smallest_size(versions, extra)]]
    return [[size] for size in given_sizes(spec, traffic, ip, testbed)]


def _max_rate(spec: ProcedureSpec, testbed: Testbed) -> int | None:
    limit_fps = testbed.max_rate_fps
    if spec.max_rate_fps is None or limit_fps is None:
        return spec.max_rate_fps or limit_fps
    if spec.max_rate_fps > limit_fps:
        raise KeyedError(
            ("max_rate_fps",),
            f"{spec.max_rate_fps} is more than testbed "
            f"{testbed.name} allows, {limit_fps}",
            "lower it, or raise max_rate_fps of the testbed",
        )
    return spec.max_rate_fps


def _check(testbed: Testbed, cell: Cell) -> None:
    """Find out now what would otherwise stop the cell when its turn has come."""
    check_paths(testbed, cell)
    for direction in _ways(cell):
        path_flows(testbed, cell, direction)
    for side in testbed.sides:
        list(own_hosts(testbed, cell, side))
    check_captured(testbed, cell)
    check_beside(cell)
    check_fragmented(cell)
    check_tunnels(testbed, cell)
    check_sizes(testbed, cell)
    check_routing(testbed, cell)
    check_management(testbed, cell)
    _check_plain(cell)
    check_load(cell)
    check_load_over_time(cell)
    check_hooks(testbed, cell)
    check_log(testbed, cell)
    check_stateful(testbed, cell)


def _check_plain(cell: Cell) -> None:
    """Learned four-tuples are those of frames whose UDP follows the IP header."""
    for key in ("ipv6_headers", "ipv4_options"):
        if cell.stateful and getattr(cell.traffic, key):
            raise KeyedError(
                ("traffic", key),
                "are not for stateful tests, which learn where UDP follows IP",
                "leave them out, or measure without connections",
            )


def _ways(cell: Cell) -> list[DirectionName]:
    """Where frames go; a connection that is used, or validated, lets some back."""
    found = directions(cell)
    stateful = cell.stateful
    if stateful and (cell.phase2 or stateful.alpha is not None):
        found = [*found, stateful.responder_direction]
    return list(dict.fromkeys(found))
