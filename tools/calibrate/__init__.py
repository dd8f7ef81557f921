"""The tester calibrated: what it finds of a device whose answer is known.

A grid of behaviours of the known-answer device is measured by the ordinary procedures
(``grid``, ``measuring``). The reference is the device's own account of every trial, not
what it was told (``truth``); what is off by more than the target is MISSED, and nothing
is left out (``judging``). docs/calibration.md has the figures.
"""
