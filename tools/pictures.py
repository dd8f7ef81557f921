"""The documents' pictures made anew: a command, and its report's first screen.

A command is recorded as asciinema does (asciicast v2: a line for each piece of output,
with its time), and its last lines are drawn as an SVG that loads nothing: each one of
``docs/questions.md`` that has a picture below it. Which version made them is in
``docs/pictures/version``; a test refuses pictures of another one.
"""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import shutil
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
QUESTIONS = Path("docs/questions.md")
ANSWER = re.compile(r"```sh\n(dutperf .*)\n```\n\n!\[.*\]\(pictures/(.*)\.svg\)")
"""A command, and the name of the picture below it."""
VERSION = PICTURES / "version"
_COLUMNS, _LINES = 100, 30
_SCREEN = "1280,980"
_CHROMIUM = "chromium"
_ERASED = "\x1b[2K"
"""What a live view ends with."""
_FONTS = re.compile(r"@font-face \{\{.*?\}\}", re.DOTALL)
_PLAIN = _FONTS.sub("", CONSOLE_SVG_FORMAT).replace(
    "Generated with Rich https://www.textualize.io", f"dutperf {__version__}"
)


def pictures() -> None:
    """Record what documents show, draw its end; a report's first screen: needs root."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        for command, name in ANSWER.findall(QUESTIONS.read_text("utf-8")):
            sys.stdout.write(f"{command}\n")
            sys.stdout.flush()
            cast, run = Path(place) / f"{name}.cast", Path(place) / name
            record(command, run, cast)
            (PICTURES / f"{name}.svg").write_text(drawn(cast, f"$ {command}"), "utf-8")
        shutil.copy(Path(place) / "demo.cast", PICTURES)
        screenshot(Path(place) / "demo" / "report.html", Path("docs/report.png"))
    VERSION.write_text(f"{__version__}\n")


def record(command: str, run: Path, cast: Path) -> None:
    """Run ``command`` on a terminal of its own, and write what it printed and when.

    Its results are in ``run``; the recording names the place that a reader has them at.

    Raises:
        SetupError: it failed.
    """
    header = {"version": 2, "width": _COLUMNS, "height": _LINES, "title": command}
    program = Path(sys.executable).with_name("dutperf")
    words = [str(program), *shlex.split(command)[1:], "--output", str(run)]
    with cast.open("w", encoding="utf-8") as file:
        file.write(json.dumps(header) + "\n")
        for at_s, text in _output(words):
            told = text.replace(str(run), f"results/{run.name}")
            file.write(json.dumps([round(at_s, 3), "o", told]) + "\n")


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
    """What a recording ends with below its command, as an SVG.

    Bars and difference of several devices, or the tables and sentences of one.
    """
    _, *pieces = cast.read_text("utf-8").splitlines()
    text = "".join(json.loads(piece)[2] for piece in pieces).rpartition(_ERASED)[2]
    lines = text.replace("\r\n", "\n").rstrip("\n").split("\n")
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
