"""The report in a real browser, without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, sync_playwright
from report_sample import sample_environment, sample_results, store

from dutperf.report import write_report

CHROMIUM = Path("/usr/bin/chromium")
SWITCHES = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(not CHROMIUM.exists(), reason="Debian's chromium is missing"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("report") / "r"
    store(directory, sample_results(), sample_environment())
    return write_report(directory)


class Visit:
    """One page view: what it asked for and what went wrong."""

    def __init__(self, browser: Browser, report: Path, width: int, scheme: str) -> None:
        self.requests: list[str] = []
        self.troubles: list[str] = []
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        self.page: Page = context.new_page()
        self.page.route("**/*", self._only_files)
        self.page.on("pageerror", lambda error: self.troubles.append(str(error)))
        self.page.on(
            "console",
            lambda said: (
                self.troubles.append(said.text)
                if said.type in {"error", "warning"}
                else None
            ),
        )
        self.page.goto(report.as_uri())
        self.page.wait_for_selector(".chart .main-svg")

    def _only_files(self, route: Route) -> None:
        self.requests.append(route.request.url)
        if route.request.url.startswith("file:"):
            route.continue_()
        else:
            route.abort()

    def points(self, chart: str) -> int:
        found: int = self.page.locator(f"#{chart} .scatterlayer .point").count()
        return found


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_draws_every_chart_without_a_word_of_trouble(
    browser: Browser, report: Path, width: int, scheme: str
) -> None:
    visit = Visit(browser, report, width, scheme)
    results = sample_results()
    for number, cell in enumerate(results.cells[:2], 1):
        trials = sum(t.cell == cell.id for t in results.trials)
        assert visit.points(f"search-{number}") == trials
    assert visit.points("frame-loss") == sum(len(c.points) for c in results.cells)
    assert visit.troubles == []
    assert visit.requests == [report.as_uri()]


def test_a_narrow_screen_does_not_scroll_sideways(
    browser: Browser, report: Path
) -> None:
    page = Visit(browser, report, 400, "light").page
    wide = page.evaluate(
        "document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
    )
    assert wide <= 0


def test_the_key_numbers_can_be_seen(browser: Browser, report: Path) -> None:
    page = Visit(browser, report, 1280, "light").page
    for cell in sample_results().cells[:2]:
        assert page.get_by_text(f"{cell.median:,.0f}").first.is_visible()
