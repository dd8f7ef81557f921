"""Of the site: files that stand beside ``docs``, and links between both.

On the site ``docs/page.md`` is ``page.md``, and what stands outside of ``docs`` keeps
its path. Links are written for the repository; here they are made those of the site.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
OUTSIDE = (
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "engine/fuzz/README.md",
    "examples/**/*.*",
)
LINK = re.compile(r"\]\((?!\w+:)([^)\s#]+)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what pages link to outside of ``docs``."""
    for path in sorted(path for pattern in OUTSIDE for path in ROOT.glob(pattern)):
        name = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, name, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_more: object) -> str:
    """Turn each link to a file or directory of the repository into one of the site."""
    here = page.file.src_uri
    source = here if page.file.generated_by else f"docs/{here}"

    def translated(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
        for there in (path, f"{path}/README.md"):
            target = there.removeprefix("docs/")
            found = files.get_file_from_path(target)
            if found and (found.generated_by is None) == there.startswith("docs/"):
                return f"]({posixpath.relpath(target, posixpath.dirname(here) or '.')}"
        return link[0]  # mkdocs will say that it leads nowhere

    return LINK.sub(translated, markdown)
