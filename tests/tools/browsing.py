"""One reader's look at a page: in a real browser that reaches nothing but that page.

A test takes the fixture ``browser`` and is marked ``NEEDS_BROWSER``: one Chromium at a
time, for all tests of a file, and what a test opened is closed after it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect, sync_playwright

PATIENCE_MS = 60_000
NEEDS_BROWSER = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
_CHROMIUM = Path("/usr/bin/chromium")
_SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

_SERIOUS = """async (rules) => {
  const found = await axe.run({ resultTypes: ["violations"],
    ...(rules.length ? { runOnly: { type: "rule", values: rules } } : {}) });
  return found.violations
    .filter(({ impact }) => ["serious", "critical"].includes(impact))
    .map(({ id, nodes }) => [id, nodes.map(({ html }) => html.slice(0, 200))]);
}"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's; without it the test is skipped."""
    if not _CHROMIUM.exists():
        pytest.skip("Debian's chromium is missing")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=_CHROMIUM, args=_SWITCHES)
        yield browser
        browser.close()


class Visit:
    """A window of its own, what it asked for and what went wrong.

    Args:
        browser: what the fixture gives.
        within: how an address begins that may be reached; ``data:`` and ``blob:`` may.
        width: of the window, in pixels.
        scheme: light or dark.
    """

    def __init__(self, browser: Browser, within: str, width: int, scheme: str) -> None:
        self.requests: list[str] = []
        self.elsewhere: list[str] = []
        self.troubles: list[str] = []
        self._within = (within, "data:", "blob:")
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.route("**/*", self._only_here)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on(
            "console",
            lambda said: (
                self.troubles.append(said.text)
                if said.type in {"error", "warning"}
                else None
            ),
        )

    def _only_here(self, route: Route) -> None:
        self.requests.append(route.request.url)
        if route.request.url.startswith(self._within):
            route.continue_()
        else:
            self.elsewhere.append(route.request.url)
            route.abort()

    def serious(self, *rules: str) -> list[list[object]]:
        """What axe finds of the page as it is now: rule and elements.

        ``rules``: axe's names of those to look at; none: all.
        """
        axe = files("axe_playwright_python") / "axe.min.js"
        self.page.evaluate(axe.read_text("utf-8"))
        found: list[list[object]] = self.page.evaluate(_SERIOUS, rules)
        return found
