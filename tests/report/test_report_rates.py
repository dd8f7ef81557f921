"""Throughput over frame sizes beside the theoretical maximum (RFC 2544 26.1)."""

from __future__ import annotations

from pathlib import Path

from report_page import Page
from report_sample import all_sizes, on_media, sample_environment, store
from told_cells import retyped

from dutperf.charts.cells import CellView, finished_cell
from dutperf.charts.rate_charts import frame_rate_chart, maxima
from dutperf.report import write_report
from dutperf.results import ResultsFile
from dutperf.tables.rate_tables import rate_rows


def views(found: ResultsFile) -> list[CellView]:
    return [finished_cell(cell, ()) for cell in found.cells]


def test_each_frame_size_has_its_maximum_and_the_share_that_was_reached() -> None:
    [(name, rows)] = rate_rows(views(on_media(all_sizes())))
    assert name == "IPv4, both directions"
    assert [row.cell.frame_size for row in rows] == [
        64,
        128,
        256,
        512,
        1024,
        1280,
        1518,
    ]
    maximum_fps = [row.media.rate_fps for row in rows if row.media]
    assert (maximum_fps[0], maximum_fps[-1]) == (14_880_952, 812_743)
    shares = [row.share_percent for row in rows]
    medians = [row.cell.rate_fps for row in rows]
    assert shares == [
        rate * 100 / most
        for rate, most in zip(medians, maximum_fps, strict=True)
        if rate
    ]


def test_a_nominal_speed_is_called_so() -> None:
    chart = frame_rate_chart(views(on_media(all_sizes(), nominal=True)))
    assert chart is not None
    theoretical, measured = chart.data
    assert "10,000\N{NO-BREAK SPACE}Mbit/s (nominal)" in theoretical["name"]
    assert theoretical["x"] == measured["x"]
    assert theoretical["y"][0] == 14_880_952


def test_links_of_different_speeds_have_a_line_each() -> None:
    found = all_sizes()
    slow, fast = on_media(found, 1000).cells[:3], on_media(found).cells[3:]
    rows = rate_rows(views(found.model_copy(update={"cells": slow + fast})))
    assert [len(each) for each in maxima(rows).values()] == [3, 4]


def test_the_page_has_the_table_and_says_what_nominal_means(tmp_path: Path) -> None:
    store(tmp_path / "r", on_media(all_sizes(), nominal=True), sample_environment())
    page = Page(write_report(tmp_path / "r").read_text())
    text = page.section("rates")
    assert "14,880,952" in text
    assert "10,000 Mbit/s (nominal), 20 bytes of preamble" in text
    assert "frames take no time on them" in text


def test_profiles_keep_the_order_of_the_campaign() -> None:
    found = on_media(all_sizes())
    cells = [
        retyped(
            cell.model_copy(
                update={
                    "id": f"{name}-{cell.id}",
                    "parameters": {**cell.parameters, "traffic": name, "profile": name},
                }
            )
        )
        for name in ("plain", "acl")
        for cell in found.cells
    ]
    shown = views(found.model_copy(update={"cells": cells}))
    names = [name for name, _ in rate_rows(shown)]
    assert [name.rpartition(", ")[2] for name in names] == ["plain", "acl"]
    chart = frame_rate_chart(shown)
    assert chart
    measured = [t["name"] for t in chart.data if t["name"].startswith("measured")]
    assert [name.rpartition(", ")[2] for name in measured] == ["plain", "acl"]
