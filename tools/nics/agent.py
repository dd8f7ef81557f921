"""What the guest runs: the host's commands, by a serial line.

Each way a line of JSON. It has the guest's Python only, and is the first process.
"""

import json
import subprocess
import sys
import tty
from io import FileIO
from pathlib import Path


def serve(line: str) -> None:
    """Until the host is gone."""
    with Path(line).open("r+b", buffering=0) as port:
        tty.setraw(port.fileno())
        asked = b""
        _answer(port, {"ready": True})
        while True:
            asked += port.read(4096)
            *whole, asked = asked.split(b"\n")
            for each in whole:
                _answer(port, _run(**json.loads(each)))


def _answer(port: FileIO, told: dict[str, object]) -> None:
    left = json.dumps(told).encode() + b"\n"
    while left:
        left = left[port.write(left) :]


def _run(number: int, command: str, timeout_s: float) -> dict[str, object]:
    words = ["timeout", "--kill-after=5", str(timeout_s), "sh", "-c", command]
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    out, err = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
    return {"number": number, "code": done.returncode, "out": out, "err": err}


if __name__ == "__main__":
    serve(sys.argv[1])
