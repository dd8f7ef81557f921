"""A program that reads runs for another process.

``python -m dutperf.query.index.reader PLACE`` takes a batch on each line of its
standard input, and answers with a line when it is read. It ends with its input.
"""

from __future__ import annotations

import gc
import sys

from dutperf.query.index.lines import as_line, batch_of
from dutperf.query.index.places import place_of
from dutperf.query.index.reading import read_batch


def _main() -> None:
    place = place_of(sys.argv[1])
    gc.disable()  # a tenth of the time, and there are no circles to be found
    for line in sys.stdin:
        sys.stdout.write(as_line(read_batch(place, batch_of(line))))
        sys.stdout.flush()
        gc.collect()


if __name__ == "__main__":
    _main()
