"""The command line: thin; what it does is elsewhere.

``main`` is the entry, ``app`` lists the commands, ``options`` the options of the
procedures; ``measuring`` runs a campaign and shows it (``terminal`` while it lasts,
``summary`` at its end).
"""
