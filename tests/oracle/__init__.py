"""Every result once more, from the journal alone: a second implementation.

Whoever doubts a figure of ``results.json`` can read here, from top to bottom, how it
follows from the counts of the trials. Nothing of what measured is used, neither its
searches nor its statistics (``tests/evidence/test_oracle.py`` sees to that), so a
mistake there is not made again here. It is held against every run that a test makes
(``tests/conftest.py``).

    formulas     each formula of the RFCs, once
    records      what a trial says, by the keys of the file
    searches     where a search ended, by its trials; MLRsearch
    phases       which trials of phase 2 count
    cells        throughput, frame loss, back-to-back frames
    delays       latency, PDV, IPDV
    recovery     system recovery
    outage       outages
    power        watts and energy
    soak         loads that last for hours
    connections  connection rate, table capacity, tear-down
    beside       media, loads that another cell found
    scalability  what more flows cost (RFC 8219 10.2)
    shifts       how surely the repeats of two cells differ
    passports    the share of what the tester can do without a device
    comparison   what is stored beside what was derived
    whole        all of a run

What is derived has the shape of a stored cell, with those keys only that are known; a
figure that has none here cannot be derived, and ``comparison`` says so.
"""

from oracle.beside import Source
from oracle.cells import derived_cell
from oracle.comparison import Compared, compare_cell
from oracle.whole import compared_run

__all__ = ["Compared", "Source", "compare_cell", "compared_run", "derived_cell"]
