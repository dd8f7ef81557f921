"""The tester measured: a whole path and where its time goes, and its own limits.

Nothing of it is a result about a device; the commands that show it are in ``cli``.
"""
