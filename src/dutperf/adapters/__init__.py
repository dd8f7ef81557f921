"""dutperf behind other people's interfaces (docs/python.md).

An adapter calls ``dutperf.api``, and describes frames by the engine's messages. What
its interface asks for and dutperf cannot do exactly is an error that names it.
"""
