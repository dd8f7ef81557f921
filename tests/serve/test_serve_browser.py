"""The pages in a real browser, which may reach nothing but them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import NEEDS_BROWSER, Visit
from hostile import SHOWN, hostile_environment, hostile_results
from playwright.sync_api import Browser, Page, expect
from report_sample import sample_environment, sample_results, search, store
from served import open_run, stored_run
from serving import serving

from dutperf.report import write_report

STUB = "<!doctype html><title>t</title><h1>{}</h1>"
CELL = "throughput-ip4-64-both"

pytestmark = NEEDS_BROWSER

RUNS = (
    "first",
    "second",
    "harm",
    "<img src=x onerror=window.owned=1>\u202e",
    "damaged",
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs, two whose names mean harm, a damaged one."""
    root = tmp_path_factory.mktemp("served") / "runs"
    first, second, harm, image, damaged = (root / name for name in RUNS)
    root.mkdir()
    store(first, sample_results(), sample_environment()).close()
    write_report(first)
    store(second, sample_results(), sample_environment()).close()
    (second / "report.html").write_text(STUB.format("the second"))
    store(harm, hostile_results(), hostile_environment()).close()
    write_report(harm)
    stored_run(image)
    damaged.mkdir()
    (damaged / "results.json").write_text("{")
    return root


@pytest.fixture(scope="module")
def address(root: Path) -> Iterator[str]:
    with serving(root, "--port", "0") as served:
        yield served.address


class Reader(Visit):
    """Who goes from page to page of one address."""

    def __init__(self, browser: Browser, address: str, width: int, scheme: str) -> None:
        super().__init__(browser, address, width, scheme)
        self.address = address

    def open(self, path: str = "") -> Page:
        self.page.goto(self.address + path)
        return self.page

    def excess(self) -> int:
        found: int = self.page.evaluate(
            "document.documentElement.scrollWidth"
            " - document.documentElement.clientWidth"
        )
        return found

    def check(self) -> None:
        self.page.wait_for_load_state()  # its style sheet, too
        assert self.troubles == []
        assert self.elsewhere == []
        assert self.excess() <= 0


LOOKS = [(width, scheme) for width in (400, 800, 1280) for scheme in ("light", "dark")]


@pytest.mark.parametrize(("width", "scheme"), LOOKS)
def test_the_way_from_the_list_to_a_report_and_back(
    browser: Browser, address: str, width: int, scheme: str
) -> None:
    visit = Reader(browser, address, width, scheme)
    page = visit.open()
    runs = page.locator(".list > li").count()
    assert runs >= len(RUNS)
    visit.check()
    page.locator("a[href='/run?run=second']").click()
    expect(page.frame_locator("iframe").locator("h1")).to_have_text("the second")
    visit.check()
    page.get_by_text("all runs").click()
    expect(page.locator(".list > li")).to_have_count(runs)
    visit.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(
    "path",
    [
        "",
        "?with=first",
        "run?run=second",
        "run?run=damaged",
        "compare?run=first&run=second",
        "comparison?run=first&run=second",
    ],
)
def test_axe_finds_nothing_serious(
    browser: Browser, address: str, path: str, scheme: str
) -> None:
    reader = Reader(browser, address, 800, scheme)
    reader.open(path)
    assert reader.serious() == []


def test_axe_finds_nothing_serious_while_a_run_is_followed(
    browser: Browser, tmp_path: Path
) -> None:
    records = search(1, CELL, 306_700)
    with (
        contextlib.closing(open_run(tmp_path / "r", records[:4])),
        serving(tmp_path, "--port", "0") as served,
    ):
        reader = Reader(browser, served.address, 800, "light")
        reader.open("run?run=r").get_by_text("4 trials so far").wait_for()
        assert reader.serious() == []


def test_a_report_draws_its_charts_in_the_sandbox(
    browser: Browser, address: str
) -> None:
    visit = Reader(browser, address, 1280, "light")
    report = visit.open("run?run=first").frame_locator("iframe")
    report.locator(".chart").first.scroll_into_view_if_needed()
    report.locator(".chart .main-svg").first.wait_for(state="attached")
    expect(report.locator("h1")).to_have_text(sample_results().name)
    visit.check()


def test_the_page_is_dark_where_the_reader_wants_it(
    browser: Browser, address: str
) -> None:
    grounds = {
        Reader(browser, address, 800, scheme)
        .open()
        .evaluate("getComputedStyle(document.body).backgroundColor")
        for scheme in ("light", "dark")
    }
    assert len(grounds) == 2


@pytest.mark.parametrize(("width", "scheme"), LOOKS[::5])
def test_two_runs_are_compared_by_clicking(
    browser: Browser, address: str, width: int, scheme: str
) -> None:
    visit = Reader(browser, address, width, scheme)
    page = visit.open()
    page.locator("li", has=page.locator("a[href='/run?run=first']")).get_by_text(
        "compare"
    ).click()
    expect(page.locator("#chosen h2")).to_contain_text("first")
    visit.check()
    page.locator("a[href$='run=second']", has_text="compare with this").click()
    compared = page.frame_locator("iframe").locator("body.comparison")
    compared.wait_for()
    expect(compared.locator("header")).to_contain_text(sample_results().name)
    visit.check()


def test_a_run_is_followed_until_it_ends_in_its_report(
    browser: Browser, tmp_path: Path
) -> None:
    records = search(1, CELL, 306_700)
    directory = open_run(tmp_path / "r", records[:2])
    with serving(tmp_path, "--port", "0") as served:
        visit = Reader(browser, served.address, 400, "dark")
        page = visit.open("run?run=r")
        for number, record in enumerate(records[2:6], 3):
            directory.append(record)
            page.get_by_text(f"{number} trials so far").wait_for()
            expect(page.locator("svg.closing-in circle")).to_have_count(number)
            first = page.locator("#last tbody tr").first
            expect(first).to_contain_text(f"{record.load_fps:,}")
            expect(first).to_contain_text(record.result.verdict.kind)
        expect(page.locator("#state")).to_have_text("running")
        visit.check()
        directory.write_results(sample_results())
        (directory.path / "report.html").write_text(STUB.format("at its end"))
        directory.close()
        report = page.frame_locator("iframe")
        expect(report.locator("h1")).to_have_text("at its end")
        visit.check()


def test_the_list_follows_runs_that_begin_and_end(
    browser: Browser, tmp_path: Path
) -> None:
    directory = open_run(tmp_path / "first", search(1, CELL, 306_700)[:2])
    with serving(tmp_path, "--port", "0") as served:
        visit = Reader(browser, served.address, 400, "light")
        page = visit.open()
        state = page.locator(".card .badge")
        expect(state).to_have_text(["running"])
        link = page.locator("a[href='/run?run=first']")
        link.focus()
        stored_run(tmp_path / "second")
        expect(page.locator(".list > li")).to_have_count(2)
        expect(page.locator("header .facts")).to_contain_text("2, newest first")
        expect(link).to_be_focused()
        directory.write_results(sample_results())
        directory.close()
        expect(page.locator(".badge", has_text="running")).to_have_count(0)
        expect(page.locator(".badge", has_text="complete")).to_have_count(2)
        visit.check()


def test_hostile_names_are_read_and_not_run(browser: Browser, address: str) -> None:
    visit = Reader(browser, address, 800, "light")
    page = visit.open()
    assert page.get_by_text(SHOWN, exact=True).count() == 1
    assert page.get_by_text(r"onerror=window.owned=1>\u202e").count() == 1
    assert page.locator("img, iframe, body script").count() == 0
    visit.check()
    page.locator("a[href='/run?run=harm']").click()
    report = page.frame_locator("iframe")
    expect(report.locator("h1")).to_have_text(SHOWN)
    assert page.title().startswith(SHOWN)
    visit.check()
    live = visit.open("events?run=harm")
    for frame in live.frames:
        assert frame.evaluate("window.owned") is None


def test_a_report_reaches_neither_the_page_around_it_nor_the_network(
    browser: Browser, address: str, root: Path
) -> None:
    """Also if its file is not what dutperf wrote."""
    stored_run(root / "evil")
    (root / "evil" / "report.html").write_text(
        """<!doctype html><title>t</title><h1>evil</h1><script>
        const tried = [];
        const attempt = (name, what) => {
          try { what(); tried.push(name); } catch { /* refused */ }
        };
        attempt("parent", () => parent.document.title);
        attempt("cookie", () => document.cookie);
        attempt("storage", () => localStorage.length);
        attempt("top", () => { top.location = "/?gone"; });
        fetch("/").then(() => tried.push("fetch"), () => {}).finally(() => {
          document.querySelector("h1").textContent = "did: " + tried.join();
        });
        </script>"""
    )
    visit = Reader(browser, address, 800, "light")
    page = visit.open("run?run=evil")
    expect(page.frame_locator("iframe").locator("h1")).to_have_text("did:")
    assert page.url == f"{address}run?run=evil"
    assert visit.elsewhere == []


def test_a_token_is_needed_beyond_this_machine_and_then_kept(
    browser: Browser, root: Path
) -> None:
    with serving(root, "--host", "0.0.0.0", "--port", "0") as served:  # noqa: S104
        start, _, token = served.address.partition("?")
        port = start.rstrip("/").rpartition(":")[2]
        here = f"http://127.0.0.1:{port}/"
        visit = Reader(browser, here, 800, "light")
        answer = visit.page.goto(here)
        assert answer
        assert answer.status == 401
        visit.troubles.clear()
        visit.page.set_content(f"<a href='{here}?{token}'>from another site</a>")
        visit.page.get_by_text("from another site").click()
        visit.page.wait_for_selector(".list")
        assert visit.page.url == here
        visit.page.locator("a[href='/run?run=second']").click()
        report = visit.page.frame_locator("iframe")
        expect(report.locator("h1")).to_have_text("the second")
        visit.check()
