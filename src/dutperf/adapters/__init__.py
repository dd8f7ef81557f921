"""dutperf behind other people's interfaces (docs/python.md).

An adapter calls ``dutperf.api`` and nothing beside it. What its interface asks for and
dutperf cannot do exactly is an error that names it.
"""
