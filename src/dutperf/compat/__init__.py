"""For users of siitperf: its files, commands and output, on dutperf's engine.

``conf`` reads siitperf.conf, ``arguments`` a command line; ``requests`` makes trials of
both, ``output`` the lines that scripts read. docs/siitperf.md has the differences.
"""
