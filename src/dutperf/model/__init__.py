"""What is measured, as types: the ground floor, which knows the engine's messages only.

A ``Cell`` is one thing to measure: a procedure's spec, its traffic and connections.
Campaigns are expanded to cells, a run measures them, results hold them whole, and all
who show or compare results read them.
"""
