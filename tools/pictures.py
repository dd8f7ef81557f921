"""The documents' pictures made anew: a command, and its report's first screen.

A command is recorded as asciinema does (asciicast v2: a line for each piece of output,
with its time), and its last lines are drawn as an SVG that loads nothing. Which version
made them is in ``docs/pictures/version``; a test refuses pictures of another one.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from dutperf import __version__
from dutperf.errors import SetupError

PICTURES = Path("docs/pictures")
VERSION = PICTURES / "version"
_COLUMNS, _LINES = 100, 30
_SCREEN = "1280,980"
_CHROMIUM = "chromium"
_FONTS = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)
_PLAIN = _FONTS.sub("", CONSOLE_SVG_FORMAT).replace(
    "Generated with Rich https://www.textualize.io", f"dutperf {__version__}"
)


def pictures() -> None:
    """Record the demo, draw its end, and take a picture of its report: needs root."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "demo"
        program = Path(sys.executable).with_name("dutperf")
        cast = PICTURES / "demo.cast"
        shown = "dutperf run examples/demo.yaml"
        record([str(program), *shown.split()[1:], "--output", str(run)], cast, shown)
        told = cast.read_text("utf-8").replace(str(run), "results/demo")
        cast.write_text(told, "utf-8")
        (PICTURES / "demo.svg").write_text(drawn(cast, "$ " + shown), "utf-8")
        screenshot(run / "report.html", Path("docs/report.png"))
    VERSION.write_text(f"{__version__}\n")


def record(words: list[str], cast: Path, title: str) -> None:
    """Run ``words`` on a terminal of its own, and write what it printed and when.

    Raises:
        SetupError: it failed.
    """
    header = {"version": 2, "width": _COLUMNS, "height": _LINES, "title": title}
    with cast.open("w", encoding="utf-8") as file:
        file.write(json.dumps(header) + "\n")
        for at_s, text in _output(words):
            file.write(json.dumps([round(at_s, 3), "o", text]) + "\n")


def _output(words: list[str]) -> Iterator[tuple[float, str]]:
    begin = time.monotonic()
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(
            COLUMNS=str(_COLUMNS), LINES=str(_LINES), TERM="xterm-256color"
        )
        os.execvp(words[0], words)  # noqa: S606 - our own program
    rest = b""
    while True:
        select.select([terminal], [], [])
        try:
            read = os.read(terminal, 65536)
        except OSError:  # a terminal that nobody has any more
            break
        if not read:
            break
        *whole, rest = re.split(rb"(?<=\n)", rest + read)
        for line in whole:
            yield time.monotonic() - begin, line.decode("utf-8", "replace")
    _, status = os.waitpid(child, 0)
    if os.waitstatus_to_exitcode(status):
        raise SetupError(f"{shlex.join(words)} failed", "run it by hand, and look")


def drawn(cast: Path, command: str) -> str:
    """What a recording ends with, bars and difference, below its command: an SVG."""
    _, *pieces = cast.read_text("utf-8").splitlines()
    text = "".join(json.loads(piece)[2] for piece in pieces)
    lines = [line.rsplit("\r")[-1] for line in text.replace("\r\n", "\n").split("\n")]
    starts = (n for n, line in enumerate(lines) if line.startswith("Throughput ("))
    bars = next(starts, 0)
    ends = (n for n, line in enumerate(lines) if n > bars and " against " in line)
    console = Console(record=True, width=_COLUMNS, file=StringIO(), force_terminal=True)
    console.print(Text(command, style="bold"))
    for line in lines[bars : next(ends, len(lines)) + 1]:
        console.print(Text.from_ansi(line))
    return console.export_svg(title="dutperf", code_format=_PLAIN, unique_id="demo")


def screenshot(page: Path, picture: Path) -> None:
    """What a browser shows of ``page`` first."""
    subprocess.run(
        [
            _CHROMIUM,
            *("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
            *("--virtual-time-budget=8000", f"--window-size={_SCREEN}"),
            f"--screenshot={picture.resolve()}",
            page.resolve().as_uri(),
        ],
        check=True,
        capture_output=True,
    )
