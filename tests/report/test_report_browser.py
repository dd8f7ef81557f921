"""The report in a real browser, without a network."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from browsing import NEEDS_BROWSER, PATIENCE_MS, Visit
from burst_sample import bursts_and_a_group
from connection_sample import RATES_PER_S, rate_results, stateful_results
from hostile import NASTY, SHOWN, hostile_environment, hostile_results
from playwright.sync_api import Browser, Page, expect
from recovery_sample import (
    outage_results,
    power_results,
    query_results,
    recovery_results,
    soak_results,
)
from report_sample import (
    all_sizes,
    on_media,
    sample_environment,
    sample_results,
    store,
)
from timed_sample import delay_results, timed_results

from dutperf.catalogue import PROCEDURES
from dutperf.report import print_pdf, write_brief, write_report
from dutperf.results import CellResult, Environment, ResultsFile, TrialRecord
from dutperf.tables import Subject

pytestmark = NEEDS_BROWSER


class Written:
    """Reports in a directory of their own."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def of(
        self, name: str, results: ResultsFile, environment: Environment | None = None
    ) -> Path:
        directory = self._root / name
        store(directory, results, environment or sample_environment())
        return write_report(directory)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    return Written(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def report(written: Written) -> Path:
    return written.of("r", sample_results())


@pytest.fixture(scope="module")
def wide_report(written: Written) -> Path:
    """Seven frame sizes, three repeats: the widest tables there are."""
    return written.of("wide", on_media(all_sizes()), sample_environment("ixgbe"))


@pytest.fixture(scope="module")
def timed_report(written: Written) -> Path:
    """Every chart of delays and loss in time."""
    return written.of("timed", timed_results())


@pytest.fixture(scope="module")
def stateful_report(written: Written) -> Path:
    """Capacity, survivors and tear-down of a gateway."""
    return written.of("stateful", stateful_results())


@pytest.fixture(scope="module")
def hostile_report(written: Written) -> Path:
    """Every name means harm, the one that no stored profile may have, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Subject, "profile", NASTY)
        return written.of("hostile", hostile_results(), hostile_environment())


@pytest.fixture(scope="module")
def delays_report(written: Written) -> Path:
    """Latency, PDV and IPDV of tagged frames, repeat by repeat."""
    return written.of("delays", delay_results())


@pytest.fixture(scope="module")
def bursts_report(written: Written) -> Path:
    """Back-to-back frames beside the throughput that their buffer is reckoned with."""
    return written.of("bursts", bursts_and_a_group())


@pytest.fixture(scope="module")
def recovery_report(written: Written) -> Path:
    """System recovery around the moment at which the load fell."""
    return written.of("recovery", recovery_results())


@pytest.fixture(scope="module")
def outage_report(written: Written) -> Path:
    """An outage over time."""
    return written.of("outage", outage_results())


@pytest.fixture(scope="module")
def power_report(written: Written) -> Path:
    """Watts by load."""
    return written.of("power", power_results())


@pytest.fixture(scope="module")
def soak_report(written: Written) -> Path:
    """A load in trials in a row."""
    return written.of("soak", soak_results())


@pytest.fixture(scope="module")
def queries_report(written: Written) -> Path:
    """A DNS64 server, by two shares."""
    return written.of("queries", query_results())


@pytest.fixture(scope="module")
def whole_report(written: Written) -> Path:
    """Every procedure on one page."""
    return written.of("whole", whole_results())


def whole_results() -> ResultsFile:
    """One cell of each procedure, and a trial of each."""
    cells: dict[str, CellResult] = {}
    trials: list[TrialRecord] = []
    for name in sorted({*PAGES} - {"wide_report"}):
        made = PAGES[name]()
        for cell in made.cells:
            if cell.procedure in cells:
                continue
            cells[cell.procedure] = cell.model_copy(update={"id": f"{name}-{cell.id}"})
            for each in [each for each in made.trials if each.cell == cell.id][:1]:
                told = {"number": len(trials) + 1, "cell": f"{name}-{cell.id}"}
                trials.append(each.model_copy(update=told))
    told = {"cells": list(cells.values()), "trials": trials}
    return sample_results().model_copy(update=told)


PAGES = {
    "report": sample_results,
    "wide_report": all_sizes,
    "timed_report": timed_results,
    "stateful_report": stateful_results,
    "delays_report": delay_results,
    "bursts_report": bursts_and_a_group,
    "recovery_report": recovery_results,
    "outage_report": outage_results,
    "power_report": power_results,
    "soak_report": soak_results,
    "queries_report": query_results,
}


def test_the_pages_have_every_procedure() -> None:
    shown = {cell.procedure for made in PAGES.values() for cell in made().cells}
    assert shown == set(PROCEDURES)


VISIBLE = (
    "[...document.querySelectorAll('.chart')]"
    ".filter(one => !one.closest('[hidden], details:not([open])'))"
)
LOOK_AT_ALL = """async () => {
  for (let y = 0; y < document.body.scrollHeight; y += 600) {
    scrollTo(0, y);
    await Promise.race([requestAnimationFrame, done => setTimeout(done, 100)]
      .map(soon => new Promise(soon)));
  }
  scrollTo(0, 0);
}"""
ALL_DRAWN = (
    f"() => {{ const all = {VISIBLE};"
    " return all.length && all.every(one => one.querySelector('.main-svg')); }"
)
POINTS = f"""() => {VISIBLE}.map(one => {{
  const known = trace => trace.y.filter(y => y !== null).length;
  const marked = one.data.filter(trace =>
    trace.type === "bar" || trace.mode.includes("markers"));
  const wanted = marked.reduce((sum, trace) => sum + known(trace), 0);
  const lines = one.data.filter(trace =>
    trace.type === "scatter" && trace.mode.includes("lines") && trace.line.width);
  return [one.id, wanted, one.querySelectorAll(".point").length,
    lines.length, one.querySelectorAll(".js-line").length];
}})"""


class Look(Visit):
    """One page, all of it looked at."""

    def __init__(self, browser: Browser, report: Path, width: int, scheme: str) -> None:
        super().__init__(browser, "file:", width, scheme)
        self.page.goto(report.as_uri())
        self.draw()

    def draw(self) -> None:
        """Look at all of the page: a chart is drawn when it comes near the screen."""
        self.page.evaluate(LOOK_AT_ALL)
        self.page.wait_for_function(ALL_DRAWN)

    def points(self, chart: str) -> int:
        found: int = self.page.locator(f"#{chart} .scatterlayer .point").count()
        return found


WIDTHS = (400, 800, 1280)
OFTEN = ("report", "wide_report")
"""The pages that most runs have: looked at in each width, the others in one of them."""


@pytest.mark.parametrize(
    ("name", "width"),
    [
        *((name, width) for name in OFTEN for width in WIDTHS),
        *zip([n for n in PAGES if n not in OFTEN], itertools.cycle(WIDTHS)),
        ("whole_report", 800),
    ],
)
def test_each_chart_has_as_many_points_as_its_data(
    browser: Browser, name: str, width: int, request: pytest.FixtureRequest
) -> None:
    report = request.getfixturevalue(name)
    visit = Look(browser, report, width, "light")
    for scheme in ("light", "dark"):
        visit.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        charts = visit.page.evaluate(POINTS)
        assert charts
        for chart, points, drawn, lines, paths in charts:
            assert drawn == points, (chart, scheme)
            assert paths >= lines, (chart, scheme)
    assert visit.troubles == []
    assert visit.requests == [report.as_uri()]


@pytest.mark.parametrize("name", ["whole_report", *PAGES])
def test_axe_finds_nothing_serious(
    browser: Browser, name: str, request: pytest.FixtureRequest
) -> None:
    visit = Look(browser, request.getfixturevalue(name), 1280, "light")
    assert visit.serious() == []
    visit.page.emulate_media(color_scheme="dark")  # only colours differ
    assert visit.serious("color-contrast") == []


def test_charts_are_drawn_though_nobody_scrolls(
    browser: Browser, timed_report: Path
) -> None:
    page = Visit(browser, "file:", 400, "light").page
    page.goto(timed_report.as_uri())
    page.wait_for_function(ALL_DRAWN)
    assert page.evaluate("scrollY") == 0


def test_a_chart_is_read_by_the_arrow_keys(browser: Browser, report: Path) -> None:
    page = Look(browser, report, 1280, "light").page
    page.locator("#search-1").focus()
    said = page.locator("#said")
    shown = page.locator("#search-1 .hoverlayer .hovertext")
    page.keyboard.press("ArrowRight")
    expect(said).to_have_text(re.compile("^pass: trial 2: pass; intended 250,000 fps"))
    expect(shown).to_have_count(1)
    first = said.text_content() or ""
    page.keyboard.press("ArrowRight")
    expect(said).not_to_have_text(first)
    page.keyboard.press("ArrowDown")
    expect(said).to_have_text(re.compile("^fail"))
    page.keyboard.press("Home")
    expect(said).to_contain_text("(1 of ")
    page.keyboard.press("Escape")
    expect(shown).to_have_count(0)


def test_the_file_of_a_chart_has_its_figures(
    browser: Browser, report: Path, tmp_path: Path
) -> None:
    page = Look(browser, report, 1280, "light").page
    beside = page.locator("#search-1 + .beside")
    with page.expect_download() as waiting:
        beside.get_by_role("button").click()
    waiting.value.save_as(tmp_path / "search.csv")
    text = (tmp_path / "search.csv").read_text("utf-8")
    head, *rows = csv.reader(io.StringIO(text))
    assert head == ["series", "trial", "intended rate, fps per direction", "note"]
    first = sample_results().cells[0].id
    trials = [each for each in sample_results().trials if each.cell == first]
    told = {(int(row[1]), int(row[2]), row[0].partition(":")[0]) for row in rows}
    assert told == {
        (place, each.load_fps, each.result.verdict.kind)
        for place, each in enumerate(trials, 1)
    }
    beside.locator("summary").click()
    expect(beside.locator("tbody tr")).to_have_count(len(rows))


def test_a_name_is_no_formula_in_a_file(
    browser: Browser, hostile_report: Path, tmp_path: Path
) -> None:
    page = Look(browser, hostile_report, 1280, "light").page
    with page.expect_download() as waiting:
        page.locator("#frame-loss + .beside button").click()
    waiting.value.save_as(tmp_path / "loss.csv")
    _, *rows = csv.reader(io.StringIO((tmp_path / "loss.csv").read_text("utf-8")))
    assert rows
    assert all(SHOWN in row[0] for row in rows)
    assert not any(cell[:1] in tuple("=+@") for row in rows for cell in row)


def test_the_contents_stay_in_sight(browser: Browser, report: Path) -> None:
    page = Look(browser, report, 1280, "light").page
    page.get_by_role("link", name="Environment", exact=True).click()
    page.wait_for_function("scrollY > 0")
    place = page.locator("nav").bounding_box()
    assert place
    assert place["y"] == 0
    narrow = Look(browser, report, 400, "light").page
    link = narrow.get_by_role("link", name="Environment", exact=True)
    expect(link).to_be_hidden()
    narrow.locator("nav summary").click()
    link.click()
    expect(link).to_be_hidden()
    expect(narrow.locator("#environment h2")).to_be_visible()


def test_of_many_cells_the_reader_chooses_one(
    browser: Browser, wide_report: Path
) -> None:
    visit = Look(browser, wide_report, 1280, "light")
    page, cells = visit.page, all_sizes().cells
    expect(page.locator("#searches .panel:visible")).to_have_count(1)
    page.locator("#searches select").select_option(cells[3].id)
    page.locator("#search-4").scroll_into_view_if_needed()  # it is drawn when near
    page.wait_for_selector("#search-4 .main-svg")
    expect(page.locator("#search-1")).to_be_hidden()
    page.evaluate(f"location.hash = {json.dumps(cells[5].id)}")
    page.wait_for_selector("#search-6 .main-svg")


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_it_draws_every_chart_without_a_word_of_trouble(
    browser: Browser, report: Path, width: int, scheme: str
) -> None:
    visit = Look(browser, report, width, scheme)
    results = sample_results()
    for number, cell in enumerate(results.cells[:2], 1):
        trials = sum(t.cell == cell.id for t in results.trials)
        assert visit.points(f"search-{number}") == trials
    assert visit.points("frame-loss") == sum(len(c.points) for c in results.cells)
    assert visit.troubles == []
    assert visit.requests == [report.as_uri()]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_survivors_of_a_full_table_are_drawn(
    browser: Browser, stateful_report: Path, scheme: str
) -> None:
    visit = Look(browser, stateful_report, 400, scheme)
    assert visit.points("capacity-2") == 2
    assert visit.page.locator("#survival-2 .scatterlayer .js-line").count() == 1
    assert visit.troubles == []


AXIS = "one => [one._fullLayout.yaxis.range, one._fullData.map(each => each.y)]"


def test_the_axis_of_a_search_comes_from_all_of_its_trials(
    browser: Browser, tmp_path: Path
) -> None:
    store(tmp_path / "r", rate_results(), sample_environment())
    visit = Look(browser, write_report(tmp_path / "r"), 1280, "light")
    (low, high), lines = visit.page.locator("#search-1").evaluate(AXIS)
    drawn = {y for line in lines for y in line if y is not None}
    assert drawn >= set(RATES_PER_S)
    assert low < min(RATES_PER_S)
    assert high > max(RATES_PER_S)
    assert visit.points("search-1") == len(RATES_PER_S)


def excess(page: Page, selector: str) -> list[int]:
    """How many pixels the content of each element is wider than the element."""
    found: list[int] = page.eval_on_selector_all(
        selector, "all => all.map(one => one.scrollWidth - one.clientWidth)"
    )
    return found


def test_the_frame_rates_of_all_sizes_are_drawn(
    browser: Browser, wide_report: Path
) -> None:
    visit = Look(browser, wide_report, 1280, "light")
    assert visit.points("frame-rate") == 2 * 7  # theoretical and measured
    assert visit.troubles == []


@pytest.mark.parametrize("name", ["whole_report", *PAGES])
def test_a_narrow_screen_does_not_scroll_sideways(
    browser: Browser, name: str, request: pytest.FixtureRequest
) -> None:
    page = Look(browser, request.getfixturevalue(name), 400, "light").page
    page.eval_on_selector_all("details", "all => all.forEach(one => one.open = true)")
    assert max(excess(page, "html")) <= 0


def test_no_table_is_cut_off_on_a_common_screen(
    browser: Browser, wide_report: Path
) -> None:
    page = Look(browser, wide_report, 1280, "light").page
    found = excess(page, "section:not(#trials) .wide")
    assert found
    assert max(found) <= 0


@pytest.mark.parametrize("name", ["whole_report", *PAGES])
def test_a_printed_page_is_not_wider_than_the_paper(
    browser: Browser, name: str, request: pytest.FixtureRequest
) -> None:
    """A browser shrinks all of a page that is; A4 leaves 702 px."""
    page = Look(browser, request.getfixturevalue(name), 702, "light").page
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert max(excess(page, "html")) <= 0


@pytest.mark.parametrize("name", ["whole_report", "hostile_report", "wide_report"])
def test_in_brief_a_run_is_one_sheet_of_paper(
    name: str, request: pytest.FixtureRequest, browser: Browser
) -> None:
    """However much was measured, and whatever it is called, nothing is cut off."""
    brief = write_brief(request.getfixturevalue(name).parent)
    assert pages_of(print_pdf(brief)) == 1
    page = Visit(browser, brief.as_uri(), 794, "dark").page
    page.goto(brief.as_uri())
    page.emulate_media(media="print")
    cut = page.evaluate(
        "document.body.clientHeight - sheet.getBoundingClientRect().height"
    )
    assert cut >= 0
    assert page.locator("h1").is_visible()


def test_a_printed_report_leaves_what_is_unfolded_to_the_screen(
    browser: Browser, timed_report: Path
) -> None:
    """Few pages, unless a reader unfolds more."""
    assert pages_of(print_pdf(timed_report)) <= 4
    page = Look(browser, timed_report, 688, "light").page
    timing = page.locator("details.timing").first
    for _ in ("folded", "unfolded"):
        timing.locator("> summary").click()
    page.emulate_media(media="print")
    assert timing.locator(".trial:not([hidden])").is_visible()


def pages_of(pdf: Path) -> int:
    return len(re.findall(rb"/Type\s*/Page\b(?!s)", pdf.read_bytes()))


def test_no_printed_heading_stands_alone(browser: Browser, report: Path) -> None:
    """What is folded is not printed, nor its heading."""
    page = Look(browser, report, 688, "light").page
    assert page.locator("#trials h2").is_visible()
    page.emulate_media(media="print")
    assert not page.locator("#trials h2").is_visible()
    assert page.locator("#environment h2").is_visible()
    page.locator("#trials details").evaluate("one => { one.open = true; }")
    assert page.locator("#trials h2").is_visible()


def test_a_dark_page_is_dark_and_its_print_is_not(
    browser: Browser, report: Path
) -> None:
    def ink() -> str:
        said: str = page.locator(".chart .xtitle").first.evaluate(
            "title => getComputedStyle(title).fill"
        )
        return said

    light = Look(browser, report, 1280, "light").page
    page = light
    on_paper = ink()
    page = Look(browser, report, 1280, "dark").page
    assert ink() != on_paper
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert ink() == on_paper
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert ink() != on_paper


def test_the_key_numbers_can_be_seen(browser: Browser, report: Path) -> None:
    page = Look(browser, report, 1280, "light").page
    for cell in sample_results().cells[:2]:
        assert page.get_by_text(f"{cell.median:,.0f}").first.is_visible()


def drawn(page: Page) -> set[str]:
    found: list[str] = page.eval_on_selector_all(
        "#timing .chart:has(.main-svg)", "all => all.map(one => one.id)"
    )
    return set(found)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_charts_of_a_trial_are_drawn_when_it_is_looked_at(
    browser: Browser, timed_report: Path, scheme: str
) -> None:
    visit = Look(browser, timed_report, 1280, scheme)
    page = visit.page
    shown = {f"{kind}-2-{way}" for kind in ("delay", "time") for way in WAYS}
    assert drawn(page) == {*shown, "timeout-2"}
    page.locator("details.timing select").first.select_option("trial-1")
    visit.draw()
    expect(page.locator("#delay-1-forward")).to_be_visible()
    expect(page.locator("#delay-2-forward")).to_be_hidden()
    assert drawn(page) >= {"delay-1-forward", "time-1-reverse", "runs-1"}
    page.locator("details.timing > summary").nth(1).click()
    visit.draw()
    assert drawn(page) >= {"delay-3-forward", "time-3-forward"}
    assert visit.troubles == []


WAYS = ("forward", "reverse")


@pytest.mark.parametrize("width", [1280, 400])
def test_no_label_of_a_delay_is_cut_off_or_crossed_by_another(
    browser: Browser, timed_report: Path, width: int
) -> None:
    visit = Look(browser, timed_report, width, "light")
    page = visit.page
    page.locator("details.timing > summary").nth(1).click()
    visit.draw()
    for name in ("delay-2-forward", "delay-3-reverse", "variation-3-forward"):
        boxes = page.eval_on_selector_all(
            f"#{name} .annotation-text-g",
            "all => all.map(one => { const b = one.getBoundingClientRect();"
            " return [b.left, b.top, b.right, b.bottom]; })",
        )
        frame = page.locator(f"#{name} .main-svg").first.bounding_box()
        assert frame
        for left, _, right, _ in boxes:
            assert frame["x"] - 1 <= left
            assert right <= frame["x"] + frame["width"] + 1
        assert not any(_overlap(a, b) for n, a in enumerate(boxes) for b in boxes[:n])


TICKS = """all => all.map(chart => ["xtick", "x2tick"].map(axis =>
  [...chart.querySelectorAll(`.${axis} text`)]
    .filter(one => getComputedStyle(one).visibility !== "hidden")
    .map(one => one.getBoundingClientRect()).map(b => [b.left, b.right])))"""
"""Of each chart and axis, where its visible labels begin and end."""


@pytest.mark.parametrize("width", [1280, 400])
def test_no_label_of_an_axis_runs_into_the_next(
    browser: Browser, timed_report: Path, width: int
) -> None:
    """Those that do not fit are left out, and come back where there is room."""
    visit = Look(browser, timed_report, 1280, "light")
    page = visit.page
    for summary in page.locator("details.timing > summary").all()[1:]:
        summary.click()
    visit.draw()
    labels = [len(axis) for chart in _ticks(page) for axis in chart]
    _resize(page, width)
    _expect(page, lambda: _apart([axis for chart in _ticks(page) for axis in chart]))
    _resize(page, 1280)
    _expect(
        page, lambda: [len(axis) for chart in _ticks(page) for axis in chart] == labels
    )
    assert visit.troubles == []


def _apart(axes: list[list[list[float]]]) -> bool:
    return all(
        left >= right + 3 for axis in axes for (_, right), (left, _) in pairwise(axis)
    )


FITTED = f"""() => {VISIBLE}.every(one => Math.abs(one.clientWidth
  - one.querySelector(".main-svg").getBoundingClientRect().width) < 2)"""


def _resize(page: Page, width: int) -> None:
    """Waits until the charts have followed, which they do when there is time."""
    page.set_viewport_size({"width": width, "height": 900})
    page.wait_for_function(FITTED)


def _expect(page: Page, holds: Callable[[], bool]) -> None:
    for _ in range(PATIENCE_MS // 100):
        if holds():
            return
        page.wait_for_timeout(100)
    assert holds()


def test_no_name_in_a_legend_is_cut_off(browser: Browser, hostile_report: Path) -> None:
    visit = Look(browser, hostile_report, 400, "light")
    visit.draw()
    ends = visit.page.eval_on_selector_all(
        ".chart .legendtext",
        "all => all.map(one => one.closest('.main-svg').getBoundingClientRect().right"
        " - one.getBoundingClientRect().right)",
    )
    assert ends
    assert min(ends) >= 0
    assert visit.troubles == []


def _ticks(page: Page) -> list[list[list[list[float]]]]:
    found: list[list[list[list[float]]]] = page.eval_on_selector_all(".chart", TICKS)
    return found


def _overlap(one: list[float], other: list[float]) -> bool:
    side_by_side = one[2] <= other[0] or other[2] <= one[0]
    # Letters leave a few pixels of a line's height free.
    above_each_other = one[3] <= other[1] + 4 or other[3] <= one[1] + 4
    return not (side_by_side or above_each_other)


def test_hostile_names_are_read_and_not_run(
    browser: Browser, hostile_report: Path
) -> None:
    visit = Look(browser, hostile_report, 1280, "light")
    page = visit.page
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    visit.draw()
    assert not visit.troubles
    assert visit.requests == [hostile_report.as_uri()]
    assert page.evaluate("window.owned") is None
    assert page.locator("img").count() == 0
    assert page.title() == f"{SHOWN} \N{MIDDLE DOT} dutperf report"
    assert page.locator("h1").text_content() == SHOWN
    for place in ("#summary", "#environment", "#hooks", "#deviations"):
        assert SHOWN in (page.locator(place).text_content() or ""), place


def test_hostile_names_in_charts_are_drawn_as_they_are(
    browser: Browser, hostile_report: Path
) -> None:
    page = Look(browser, hostile_report, 1280, "light").page
    drawn = page.locator("#frame-loss .legendtext").all_text_contents()
    assert drawn
    assert all(SHOWN in text for text in drawn)
    page.locator("#search-1 .scatterlayer .point").first.hover(force=True)
    page.wait_for_selector("#search-1 .hoverlayer .hovertext")
    told = page.locator("#search-1 .hoverlayer").text_content() or ""
    assert SHOWN[:40] in told
    assert page.evaluate("window.owned") is None
