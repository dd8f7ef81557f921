"""Which RFC a result conforms to, how far, and if not, why: RFC 2544 5.

Unconditionally: every MUST and SHOULD is met. Conditionally: every MUST is. A result
that is defined otherwise (a tolerated loss, a frame timeout) is another measure, and
neither. What is measured in haste, or only bounded, is a look: nobody should quote it
as the RFC's result, whatever its recommendations allow. What an RFC says in its plain
text counts as a SHOULD here, because nobody who leaves it out would call that
unconditional.

Only what one cell can know is judged. How the device was set up, whether enough sizes,
modifiers and both kinds of address are tested, is in the hands of who runs campaigns.
"""

from __future__ import annotations

from collections.abc import Sequence

from dutperf.catalogue import PROCEDURES
from dutperf.config.cell import Cell
from dutperf.config.deviating import hasty, is_rfc2544_latency, of_further_goals
from dutperf.config.sizes import cell_versions
from dutperf.config.specs import ConnectionRateSpec, LatencySpec
from dutperf.config.versions import translates
from dutperf.standards import Conformance, Deviation

_PHASE2 = "4.7"
"""Of RFC 9693: a procedure of another RFC on connections that were opened."""
_BUILT_ON: dict[str, tuple[str, ...]] = {
    "RFC 2544": ("RFC 1242", "RFC 2544"),
    "RFC 5180": ("RFC 1242", "RFC 2544", "RFC 5180"),
    "RFC 8219": ("RFC 1242", "RFC 2544", "RFC 5180", "RFC 8219"),
    "RFC 6201": ("RFC 1242", "RFC 2544", "RFC 6201"),
    "RFC 9004": ("RFC 1242", "RFC 2544", "RFC 9004"),
    "RFC 9693": ("RFC 9693",),
}
"""Requirements of these count; that of RFC 4814 for random ports is its own."""


def conformance_of(
    cell: Cell, found: Sequence[Deviation], *, valid: bool, bound: bool = False
) -> Conformance:
    """What may be said of a result of ``cell``.

    Args:
        cell: what was measured.
        found: ``deviations(cell)``, and what else turned out.
        valid: whether the tester vouches for the result.
        bound: whether that is only a lower bound.
    """
    rfc = _rfc(cell)
    section = PROCEDURES[cell.procedure].sections.get(rfc, _PHASE2)
    if isinstance(cell.spec, ConnectionRateSpec) and cell.spec.stateful.alpha:
        section = "4.6"
    built_on = _BUILT_ON[rfc]
    if cell.phase2:
        built_on += _BUILT_ON["RFC 8219"]
    name = f"{rfc} {section}"
    others = of_further_goals(cell)
    counted = [
        s for s in found if s not in others and any(r in s.rfc for r in built_on)
    ]
    defined = [s for s in counted if s.level == "definition"]
    broken = [s for s in counted if s.level == "MUST"]
    if defined:
        told = _listed([s.actual for s in defined])
        of_it = ", of which this is a lower bound" if bound else ""
        said = f"another measure than that of {name}{of_it}: {told}"
        return Conformance(rfc, section, "other_measure", said)
    if not valid:
        said = f"not compliant with {name}: the tester cannot vouch for the result"
        return Conformance(rfc, section, "none", said)
    if looks := [*hasty(cell), *(["a lower bound"] if bound else [])]:
        said = f"a look, not a result of {name}: {', '.join(looks)}"
        return Conformance(rfc, section, "none", said)
    if broken:
        told = _listed([f"{s.requirement} ({s.rfc}, MUST): {s.actual}" for s in broken])
        return Conformance(rfc, section, "none", f"not compliant with {name}: {told}")
    if counted:
        sections = _listed(list(dict.fromkeys(s.rfc for s in counted)))
        said = (
            f"conditionally compliant with {name}: every MUST is met, not every "
            f"recommendation ({sections})"
        )
        return Conformance(rfc, section, "conditional", said)
    said = f"unconditionally compliant with {name}"
    return Conformance(rfc, section, "unconditional", said)


def _rfc(cell: Cell) -> str:
    """Whose procedure it is: of a translator, of IPv6 frames, or the one of 1999."""
    if cell.stateful:
        return "RFC 9693"
    sections = PROCEDURES[cell.procedure].sections
    replaced = "RFC 9004" in sections or "RFC 6201" in sections
    if "RFC 2544" not in sections or replaced:
        return next(iter(sections))
    if isinstance(cell.spec, LatencySpec) and not cell.spec.rfc2544_latency:
        return "RFC 8219"
    if translates(cell.ip) and not is_rfc2544_latency(cell):
        return "RFC 8219"
    if 6 in cell_versions(cell) and not translates(cell.ip):
        return "RFC 5180"
    return "RFC 2544"


def _listed(texts: Sequence[str]) -> str:
    return "; ".join(texts)
