"""The command line: thin; what it does is elsewhere.

``main`` is the entry, ``app`` lists the commands, ``options`` the options of the
procedures; ``measuring`` runs a campaign and shows it (``terminal`` while it lasts,
``summary`` at its end).
"""

INVALID = 1
WORSE = 4
UNPROVEN = 5
INTERRUPTED = 130
EXIT_CODES = """
0 measured; 1 measured but invalid, or nothing that a gate could judge; 2 bad input;
3 environment, or a defect in dutperf (``dutperf.errors``); 4 worse than a baseline by
more than was allowed, or than ``--require`` asks; 5 evidence that cannot be judged;
130 interrupted.
"""
"""How a command ends; documents and scripts rely on these."""
