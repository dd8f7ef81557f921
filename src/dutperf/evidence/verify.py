"""Checks the evidence of a run: its sums, its journal, and all that was made of it.

    sums        no file was changed since it was packed
    signature   who signed the sums
    manifest    it says of the run what its files say
    journal     each trial once, every frame accounted for, every verdict earned
    environment the one that the trials began in, by its sums in the journal
    trials      those of the results are the journal's
    campaign    the cells are the campaign's
    replay      the run's own code makes the same of the journal: requests, results
    report      it is what the results make

A check never passes for want of something: what cannot be looked at is said.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dutperf import __version__
from dutperf.config import (
    Campaign,
    PlannedTestbed,
    Testbed,
    between,
    expand,
    load_campaign,
)
from dutperf.errors import InputError, SetupError
from dutperf.evidence.accounting import check_trials, contradictions, of_their_cells
from dutperf.evidence.pack import (
    MANIFEST,
    NEEDED,
    OWN,
    REPORT,
    SIGNATURE,
    SUMS,
    VERSION,
    BadSignatureError,
    files_of,
    manifest_of,
    opened,
    signer,
    wrong_sums,
)
from dutperf.evidence.replayed import (
    Replay,
    begins_in_order,
    check_environments,
    replayed,
)
from dutperf.model.cell import Cell
from dutperf.results import (
    TrialRecord,
    load_environments,
    load_journal,
    load_results,
)
from dutperf.results.directory import CAMPAIGN, RESULTS
from dutperf.results.journal import JOURNAL
from dutperf.results.storage import storing

Json = dict[str, Any]
Plan = Callable[[Campaign], list[PlannedTestbed]]
"""Where a campaign is measured; labs as they would be."""
WriteReport = Callable[[Path], Path]


@dataclass
class Check:
    """One of them: what it looked at, what is wrong, and what it cannot tell.

    ``looked``: whether it could look at all. ``unproven``: it should have, or found
    differences that another version of dutperf may explain: nobody knows.
    """

    name: str
    told: str
    wrong: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    looked: bool = True
    unproven: bool = False


@dataclass
class Verification:
    """All that was found, and what follows from it."""

    what: str
    checks: list[Check]

    @property
    def good(self) -> bool:
        """Whether nothing speaks against the evidence."""
        return not any(check.wrong for check in self.checks)

    @property
    def proven(self) -> bool:
        """Whether it is good, and nothing was left open that decides."""
        return self.good and not any(check.unproven for check in self.checks)


def verify(
    path: Path,
    plan: Plan,
    replay: Replay,
    write_report: WriteReport | None = None,
    allowed: Path | None = None,
) -> Verification:
    """Check an archive, or a results directory.

    Args:
        path: of either.
        plan: where a campaign is measured.
        replay: makes the results again, of the journal.
        write_report: makes report.html again; None: it is not looked at.
        allowed: whose signature is asked for; None: any, or none.

    Raises:
        InputError: it is neither, or so damaged that nothing can be told of it.
        SetupError: nothing is there to check the signature that is asked for.
    """
    if allowed and not allowed.is_file():
        raise InputError(
            f"{allowed} is no file", "--allowed-signers is one: see ssh-keygen(1)"
        )
    checks = []
    if path.is_dir():
        files = files_of(path)
        told = "a results directory has none; dutperf evidence packs one with them"
        checks.append(Check("sums", "none", unknown=[told], looked=False))
    else:
        files = opened(path)
        checks.append(_sums(files))
        _check_version(path, files)
    checks.append(_signature(files, allowed))
    missing = [name for name in NEEDED if name not in files]
    if missing:
        raise InputError(f"{path}: {' and '.join(missing)} missing", "pack it again")
    with _as_directory(files) as directory:
        try:
            return _verified(str(path), directory, checks, plan, replay, write_report)
        except InputError as error:
            message = error.message.replace(str(directory), str(path))
            if wrong := [told for check in checks for told in check.wrong]:
                message = "\n".join([*wrong, message])
            raise InputError(message, error.hint) from error


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """The files of an archive, or of a results directory, in a directory for a while.

    Raises:
        InputError: it is neither.
    """
    files = files_of(path) if path.is_dir() else opened(path)
    with _as_directory(files) as directory:
        yield directory


@contextmanager
def _as_directory(files: Mapping[str, bytes]) -> Iterator[Path]:
    """Files whose names were checked."""
    with tempfile.TemporaryDirectory(prefix="dutperf-verify-") as name:
        directory = Path(name) / "run"
        for file, content in files.items():
            target = directory / file
            with storing(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
        yield directory


def _sums(files: dict[str, bytes]) -> Check:
    count = len(files.keys() - {SUMS, SIGNATURE})
    return Check("sums", f"SHA-256 sums of {count} files", wrong_sums(files))


def _signature(files: Mapping[str, bytes], allowed: Path | None) -> Check:
    check = Check("signature", "none", looked=False)
    if SIGNATURE not in files:
        told = "it is not signed; dutperf evidence --sign does"
        (check.wrong if allowed else check.unknown).append(told)
        return check
    check.told = f"of {SUMS}"
    try:
        found = signer(files[SUMS], files[SIGNATURE], allowed)
    except BadSignatureError as error:
        check.wrong.append(str(error))
    except SetupError as error:
        if allowed:
            raise
        check.unknown.append(f"{error.message}: {error.hint}")
    else:
        check.looked = True
        check.told = f"signed by {found.key}"
        if found.identity:
            check.told = f"signed by {found.identity}, {found.key}"
        else:
            check.unknown.append("whose key that is, --allowed-signers FILE tells")
    return check


def _check_version(path: Path, files: dict[str, bytes]) -> None:
    try:
        version = json.loads(files[MANIFEST]).get("schema_version")
    except (ValueError, AttributeError) as error:
        raise InputError(
            f"{path}: {MANIFEST} is no JSON object", "pack it again"
        ) from error
    if not isinstance(version, int) or version > VERSION:
        raise InputError(
            f"{path}: {MANIFEST} has schema version {version}; this dutperf reads "
            f"up to version {VERSION}",
            "use the dutperf that packed it, or a newer one",
        )


def _verified(
    what: str,
    directory: Path,
    checks: list[Check],
    plan: Plan,
    replay: Replay,
    write_report: WriteReport | None,
) -> Verification:
    load_results(directory)  # refuses what is no run of dutperf, in sentences
    records = load_journal(directory).records
    load_environments(directory)
    results = json.loads((directory / RESULTS).read_bytes())
    header, *trials = _lines(directory / JOURNAL)
    if (directory / MANIFEST).exists():
        checks.append(_manifest(directory))
    checks += [
        _journal(trials, results["cells"]),
        _environment(directory, records),
        _same_trials(results, trials, header),
        _cells(directory, results, trials, plan),
        _replayed(directory, results, header, plan, replay),
    ]
    if write_report:
        checks.append(_report(directory, write_report, header))
    return Verification(what, checks)


def _lines(path: Path) -> list[Json]:
    """As they were written; the last, if it is torn, is none."""
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]]


def _manifest(directory: Path) -> Check:
    check = Check("manifest", "it says of the run what its files say")
    stored = json.loads((directory / MANIFEST).read_bytes())
    files = [file for file in directory.rglob("*") if file.is_file()]
    names = {file.relative_to(directory).as_posix() for file in files}
    made = manifest_of(directory) | {"files": sorted(names - OWN)}
    if stored.get("packed_by") != made["packed_by"]:
        check.unknown.append("another version of dutperf packed it")
        check.looked = False
        return check
    check.wrong = [
        f"{MANIFEST}: {key} is another one"
        for key in sorted({*stored, *made})
        if stored.get(key) != made.get(key)
    ]
    return check


# --- the journal


def _journal(trials: Sequence[Json], cells: Sequence[Json]) -> Check:
    told = f"{len(trials)} trials: frames, verdicts and numbers"
    wrong = [*check_trials(trials), *begins_in_order(trials)]
    wrong += contradictions(trials)
    return Check("journal", told, [*wrong, *of_their_cells(trials, cells)])


def _environment(directory: Path, records: Sequence[TrialRecord]) -> Check:
    told = "machine, versions and ports are those that the trials began in"
    wrong, unknown = check_environments(directory, records)
    left = bool(unknown)
    return Check("environment", told, wrong, unknown, looked=not left, unproven=left)


def _same_trials(results: Json, trials: Sequence[Json], header: Json) -> Check:
    """``results.json`` has a copy of the journal, which the report is made of."""
    check = Check("trials", "results.json has the trials of the journal")
    stored = results.get("trials", [])
    if len(stored) != len(trials):
        check.wrong.append(f"it has {len(stored)} trials, the journal {len(trials)}")
    for one, other in zip(stored, trials, strict=False):
        if one != other:
            where = next(iter(_differences(one, other, "")), "")
            check.wrong.append(f"trial {other['number']}: {where} is another one")
    for key, name in (("created_at", "created_at"), ("name", "campaign")):
        if results[key] != header[name]:
            check.wrong.append(f"{key}: {results[key]}, in the journal {header[name]}")
    return check


def _differences(one: Any, other: Any, place: str) -> Iterator[str]:  # noqa: ANN401 - JSON
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from _differences(one.get(key), other.get(key), f"{place}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (a, b) in enumerate(zip(one, other, strict=True)):
            yield from _differences(a, b, f"{place}[{number}]")
    elif one != other:
        yield place.removeprefix(".")


# --- the campaign


def _cells(directory: Path, results: Json, trials: Sequence[Json], plan: Plan) -> Check:
    """Each cell of the campaign once, and no other."""
    check = Check("campaign", "")
    try:
        campaign = load_campaign(directory / CAMPAIGN, stored=True)
        testbeds = [each.testbed for each in plan(campaign)]
        cells = expand(campaign, *testbeds)
        added = _added(results, cells, testbeds)
    except InputError as error:
        check.told = "its test cases are those of the campaign"
        _refuses(check, directory, error)
        return check
    more = f" and {len(added)} that sweeps added" if added else ""
    check.told = f"its {len(cells)} test cases{more} are those of the campaign"
    asked = {cell.id: cell for cell in cells}
    known = asked | added
    # Of a run that was interrupted in one that was added its replay tells.
    measured = [] if any(cell.grows for cell in cells) else [t["cell"] for t in trials]
    stored = [cell["id"] for cell in results["cells"]]
    absent = [cell["id"] for cell in results.get("not_measured", [])]
    check.wrong += [f"{name} is there twice" for name in _twice([*stored, *absent])]
    check.wrong += [
        f"{name} is no test case of the campaign"
        for name in dict.fromkeys([*stored, *absent, *measured])
        if name not in known
    ]
    if results["complete"]:
        missing = [name for name in asked if name not in {*stored, *absent}]
        check.wrong += [f"{name} of the campaign has no result" for name in missing]
    for cell in results["cells"]:
        if cell["id"] in known:
            check.wrong += _settings(cell, known[cell["id"]])
    return check


def _added(
    results: Json, cells: Sequence[Cell], testbeds: Sequence[Testbed]
) -> dict[str, Cell]:
    """Those that are another number of a sweep, made as the run made them."""
    asked = {cell.id for cell in cells}
    sweeps = {(cell.testbed, cell.series): cell for cell in cells if cell.grows}
    places = {testbed.name: testbed for testbed in testbeds}
    found: dict[str, Cell] = {}
    for result in results["cells"]:
        told = result["cell"]
        of = sweeps.get((told.get("testbed"), told.get("series")))
        if result["id"] in asked or of is None:
            continue
        with suppress(InputError, LookupError, TypeError, ValueError):
            cell = between(of, places[of.testbed or ""], _swept(told))
            found[cell.id] = cell
    return found


def _swept(cell: Json) -> int:
    (number,) = cell["spec"]["sweep"]["values"]
    return int(number)


def _twice(names: Sequence[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1})


_FOUND = {"max_load_fps", "max_load_is", "min_load_fps"}
"""Parameters that are no settings; ``rate_fps`` and phase 1's may be found, too."""


def _settings(stored: Json, cell: Cell) -> Iterator[str]:
    """That it was measured as the campaign says, key by key."""
    asked = cell.spec.model_dump(mode="json", exclude_none=True)
    asked |= {"ip": cell.ip, "direction": cell.direction, "seed": cell.seed}
    asked["procedure"] = cell.procedure
    told = stored["parameters"] | {"procedure": stored["procedure"]}
    for key, value in told.items():
        if key in _FOUND or key not in asked or isinstance(asked[key], list | dict):
            continue
        same = asked[key] == value or str(asked[key]) == str(value)
        if key in ("rate_fps", "repeats") and isinstance(asked[key], str):
            continue  # what was found, or how often until it was settled
        if not same:
            yield f"{stored['id']}: {key} is {value}, in the campaign {asked[key]}"


# --- the replay


def _replayed(
    directory: Path, results: Json, header: Json, plan: Plan, replay: Replay
) -> Check:
    """The run once more, answered from its journal."""
    check = Check("replay", "the run's own code makes the same results of the journal")
    try:
        campaign = load_campaign(directory / CAMPAIGN, stored=True)
        planned = plan(campaign)
    except InputError as error:
        _refuses(check, directory, error)
        return check
    check.wrong, check.unknown = replayed(directory, results, campaign, planned, replay)
    _only_of_today(check, header)
    return check


def _refuses(check: Check, directory: Path, error: InputError) -> None:
    """Nothing can be made of the campaign: of a newer version, or of other machines."""
    told = error.message.replace(f"{directory}/", "")
    check.unknown.append(f"campaign.yaml is none of today's: {told}")
    check.looked, check.unproven = False, True


def _only_of_today(check: Check, header: Json) -> None:
    """What another dutperf made may be another thing, and not for being changed."""
    version = header.get("dutperf_version")
    if check.wrong and version != __version__:
        check.unknown.append(
            f"dutperf {version} made it, and this is {__version__}: use that version "
            f"to prove more; first of {len(check.wrong)} found: {check.wrong[0]}"
        )
        check.wrong, check.looked, check.unproven = [], False, True


# --- the report


def _report(directory: Path, write_report: WriteReport, header: Json) -> Check:
    check = Check("report", "report.html is what the results make")
    path = directory / REPORT
    if not path.exists():
        check.unknown.append("there is none")
        check.looked = False
        return check
    stored = path.read_bytes()
    try:
        made = write_report(directory).read_bytes()
    except InputError as error:
        check.wrong.append(f"the results make none: {error.message}")
        return check
    if stored != made:
        check.wrong.append(
            "it is not what this dutperf makes of the results: it was changed, or "
            "another dutperf made it; make it anew: dutperf report DIR"
        )
    _only_of_today(check, header)
    return check
