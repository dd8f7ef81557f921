"""The messages between plan and engine: the one source of both languages' view.

JSON-RPC 2.0, one message a line, over a Unix socket. The JSON schemas in
``protocol/schema`` are generated from these models (``python -m
dutperf.reference``), the golden messages in ``protocol/golden`` are parsed
by tests in Python and in C++. Ranges are those of ``engine/src/control/messages.cc``.

Conventions: names are RFC 1242/2285 terms, units stand last (``_ns``, ``_fps``). Frame
sizes include the 4-byte FCS (RFC 1242 3.5). "forward" is left to right. Rates and
counts are per direction. Unknown keys are errors on both sides, and so are values of
another JSON type: no number in a string, no 1 for true.
"""
