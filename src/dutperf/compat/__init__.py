"""For users of siitperf: its files, commands and output, on dutperf's engine.

``conf`` reads siitperf.conf, ``command_line`` a command and what it prints for scripts;
``requests`` makes trials of both. docs/siitperf.md has the differences.
"""
