"""``python -m dutperf``."""

from dutperf.cli.main import main

main()
