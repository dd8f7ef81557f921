"""The files of ``docs/reference`` that are made, and README.md below a mark."""

from __future__ import annotations

import json
from pathlib import Path

from dutperf.reference.commands import command_page
from dutperf.reference.schemas import schemas
from dutperf.reference.tables import key_tables

DEFAULT_DIRECTORY = Path("docs/reference")
COMMANDS = "commands.md"
MARK = "<!-- From here on made by: python -m dutperf.reference -->\n"


def schema_files() -> dict[str, str]:
    """File name -> text, the same on every machine."""
    return {
        f"{name}.json": json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
        for name, schema in schemas().items()
    }


def tables() -> str:
    """The keys of the files that people write."""
    made = schemas()
    campaign = key_tables(
        "campaign.yaml", made["campaign"], elsewhere={"Testbed": "a testbed's keys"}
    )
    testbed = key_tables("testbed.yaml", made["testbed"])
    return f"\n## Keys of a campaign\n\n{campaign}\n## Keys of a testbed\n\n{testbed}"


def write_reference(directory: Path) -> list[Path]:
    """Write all of them below ``directory``, which may exist; return their paths."""
    texts = {directory / "schema" / name: text for name, text in schema_files().items()}
    readme = directory / "README.md"
    above = readme.read_text("utf-8").partition(MARK)[0] if readme.exists() else ""
    texts[readme] = above + MARK + tables()
    texts[directory / COMMANDS] = command_page()
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return list(texts)
