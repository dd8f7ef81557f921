"""Reads report.html as a reader without scripts does."""

from __future__ import annotations

import base64
import gzip
import json
from html.parser import HTMLParser
from typing import Any

_LOADING = {"src", "href", "srcset", "data", "poster", "action", "xlink:href"}
_UNSEEN = {"script", "style", "title"}


class Page(HTMLParser):
    """The visible text, and every address that an element would load."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.tags: list[str] = []
        self.ids: set[str] = set()
        self.style = ""
        self.figures: dict[str, Any] = {}
        self._words: list[str] = []
        self._sections: dict[str, list[str]] = {}
        self._open_section = ""
        self._within = ("", "")
        self.feed(html)

    @property
    def text(self) -> str:
        """All visible words, each blank between them a single space."""
        return " ".join(self._words)

    def section(self, name: str) -> str:
        """Visible words of one section."""
        return " ".join(self._sections[name])

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.tags.append(tag)
        self.loads += [value for name, value in found.items() if name in _LOADING]
        self.style += found.get("style", "")
        self.ids |= {found["id"]} if "id" in found else set()
        if tag == "section":
            self._open_section = found["id"]
        if tag in _UNSEEN:
            self._within = (tag, found.get("id", ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "section":
            self._open_section = ""
        if tag in _UNSEEN:
            self._within = ("", "")

    def handle_data(self, data: str) -> None:
        if self._within == ("script", "figures"):
            text = gzip.decompress(base64.b64decode(data)).decode("utf-8")
            self.figures = json.loads(text)["figures"]
        elif self._within[0] == "style":
            self.style += data
        elif not self._within[0]:
            self._words += data.split()
            self._sections.setdefault(self._open_section, []).extend(data.split())
