"""Procedures of RFC 9693 for stateful gateways: connections, tables, tear-down.

``establishing`` is the elementary test of all of them; ``phased`` puts phase 1 before
each trial of any other procedure.
"""
