"""dutperf in other people's tests: the fixture of pytest, keywords of Robot Framework.

Both are a ``dutperf.Tester`` (docs/automation.md).
"""
