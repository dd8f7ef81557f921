"""What each address shows, and what nobody gets to see."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hostile import NASTY, SHOWN, hostile_environment, hostile_results
from markupsafe import escape
from report_page import Page
from report_sample import store
from served import COMPARED, client, open_run, stored_run
from starlette.testclient import TestClient

from dutperf.serve import app
from dutperf.serve.runs import ServedRun, Summary, summary_of

TOKEN = "t" * 32


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    root = tmp_path_factory.mktemp("served") / "root"
    for name in ("a", "b"):
        stored_run(root / name)
        (root / name / "report.html").write_text(f"report of {name}")
    return client(root)


def links(page: str) -> list[str]:
    return Page(page).loads


def test_the_list_leads_to_each_report(two: TestClient) -> None:
    answer = two.get("/")
    assert answer.status_code == 200
    assert {"/run?run=a", "/run?run=b"} <= set(links(answer.text))
    for name in ("a", "b"):
        assert f"/report?run={name}" in links(two.get(f"/run?run={name}").text)
    report = two.get("/report?run=a")
    assert report.status_code == 200
    assert report.text == "report of a"


def test_two_clicks_compare_two_runs(two: TestClient) -> None:
    first = next(link for link in links(two.get("/").text) if "with=a" in link)
    second = next(link for link in links(two.get(first).text) if "compare" in link)
    assert second == "/compare?run=a&run=b"
    (framed,) = [at for at in links(two.get(second).text) if "comparison" in at]
    answer = two.get(framed)
    assert answer.text == f"{COMPARED}a b"
    assert "sandbox" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "address",
    [
        "/nothing",
        "/run",
        "/run?run=c",
        "/run?run=../a",
        "/run?run=%2e%2e%2fa",
        "/run?run=a&run=b",
        "/report?run=a%00",
        "/report?run=%ff%fe",
        "/report?run=%252e%252e",
        "/compare?run=a",
        "/compare?run=a&run=c",
        "/compare?run=a&run=a",
        "/comparison?run=a&run=../b",
        "/events?run=..",
        "/static/report.html.j2",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
    ],
)
def test_what_is_no_run_below_is_not_there(two: TestClient, address: str) -> None:
    answer = two.get(address)
    assert answer.status_code == 404
    assert "Traceback" not in answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/run?run=a", "/report?run=a", "/events?run=a"])
def test_there_is_nothing_but_reading(two: TestClient, method: str, path: str) -> None:
    answer = two.request(method, path)
    assert answer.status_code == 405
    assert "can only be read" in answer.text


def test_asking_for_the_head_of_events_follows_nothing(two: TestClient) -> None:
    answer = two.head("/events?run=a")
    assert (answer.status_code, answer.text) == (200, "")


def test_no_page_may_load_anything_from_elsewhere(two: TestClient) -> None:
    for address in ("/", "/run?run=a", "/compare?run=a&run=b", "/report?run=a", "/x"):
        answer = two.get(address)
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "http" not in policy
        assert "unsafe-inline" not in policy or policy.startswith("sandbox ")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "Access-Control-Allow-Origin" not in answer.headers
        assert all(not at.startswith(("http", "//")) for at in links(answer.text))


def test_a_sandboxed_report_belongs_to_no_site(two: TestClient) -> None:
    policy = two.get("/report?run=a").headers["Content-Security-Policy"]
    assert "allow-same-origin" not in policy
    assert "connect-src" not in policy


def scripts(page: str) -> list[str]:
    """What a browser would run of it, however it is spelt."""
    assert Page(page).tags.count("script") == 1
    return re.findall("<script[^>]*>", page)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    store(tmp_path / "r", hostile_results(), hostile_environment()).close()
    harm = tmp_path / "<img src=x onerror=alert(1)>\u202e'\"&"
    stored_run(harm)
    answer = client(tmp_path).get("/")
    page = Page(answer.text)
    assert "img" not in page.tags
    assert scripts(answer.text) == ['<script src="/static/runs.js" defer>']
    assert SHOWN in page.text
    assert r"<img src=x onerror=alert(1)>\u202e" in page.text
    assert NASTY not in answer.text
    (link,) = [at for at in page.loads if at.startswith("/run?run=%3Cimg")]
    shown = client(tmp_path).get(link)
    assert shown.status_code == 200
    assert "img" not in Page(shown.text).tags


def test_a_name_that_is_no_text_can_be_opened(tmp_path: Path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff"))
    stored_run(odd)
    page = client(tmp_path).get("/").text
    assert "/run?run=r%FF" in links(page)
    assert client(tmp_path).get("/run?run=r%FF").status_code == 200


@pytest.mark.parametrize("given", [SHOWN, "<script>alert(1)</script>", "\x1b\x00"])
def test_what_the_address_says_stays_text(two: TestClient, given: str) -> None:
    answer = two.get("/", params={"with": given, "page": given})
    assert answer.status_code == 200
    assert scripts(answer.text) == ['<script src="/static/runs.js" defer>']


def test_a_damaged_run_is_shown_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "results.json").write_text("{")
    asks = client(tmp_path)
    assert "not valid JSON" in asks.get("/").text
    for address in ("/run?run=r", "/report?run=r"):
        answer = asks.get(address)
        assert answer.status_code == 422
        assert "not valid JSON" in answer.text


def test_a_defect_is_told_without_a_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(_run: object) -> str:
        raise ZeroDivisionError("oh")

    stored_run(tmp_path / "r")
    monkeypatch.setattr(app, "report_of", fails)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    guarded = client(tmp_path).app
    asks = TestClient(guarded, raise_server_exceptions=False)
    answer = asks.get("/report?run=r")
    assert answer.status_code == 500
    assert "defect in dutperf: ZeroDivisionError: oh" in answer.text
    assert "Traceback" not in answer.text


def test_an_empty_directory_says_what_is_missing(tmp_path: Path) -> None:
    assert "no run below" in Page(client(tmp_path).get("/").text).text


def test_many_runs_are_listed_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    for number in range(7):
        stored_run(tmp_path / f"r{number}", cells=[], trials=[])

    def counted(run: ServedRun) -> Summary:
        read.append(run.name)
        return summary_of(run)

    monkeypatch.setattr(app, "_PER_PAGE", 3)
    monkeypatch.setattr(app, "summary_of", counted)
    asks = client(tmp_path)
    seen = []
    for page, count in (("1", 3), ("2", 3), ("3", 1), ("99", 1), ("-1", 3), ("x", 3)):
        read.clear()
        text = asks.get(f"/?page={page}&with=r0").text
        found = re.findall(r'href="/run\?run=(r\d)"', text)
        assert len(found) == count
        assert read == found
        seen += found
        assert ("/?page=2&with=r0" in links(text)) == (page != "2")
    assert set(seen) == {f"r{number}" for number in range(7)}


def test_a_running_campaign_is_followed_and_its_report_can_be_read(
    tmp_path: Path,
) -> None:
    with open_run(tmp_path / "r"):
        asks = client(tmp_path)
        assert "running" in Page(asks.get("/").text).text
        page = asks.get("/run?run=r").text
        assert 'data-events="/events?run=r"' in page
        assert "/run?run=r&report=1" in links(page)
        assert "/report?run=r" in links(asks.get("/run?run=r&report=1").text)


# --- who may read


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8219", 200),
        ("localhost:8219", 200),
        ("LOCALHOST", 200),
        ("[::1]:8219", 200),
        ("evil.example:8219", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
        ("[::1", 421),
    ],
)
def test_a_foreign_name_of_this_machine_is_refused(
    tmp_path: Path, host: str, status: int
) -> None:
    known = frozenset({"127.0.0.1", "localhost", "[::1]"})
    for address in ("/", "/static/serve.css"):
        answer = client(tmp_path, hosts=known).get(address, headers={"Host": host})
        assert answer.status_code == status


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": "Bearer \xe9".encode("latin-1")},
        {"Cookie": "dutperf-8219=x"},
        {"Cookie": 'dutperf-8219="'},
        {"Cookie": f"dutperf-1={TOKEN}"},
    ],
)
def test_without_the_token_nothing_is_shown(
    tmp_path: Path, given: dict[str, str]
) -> None:
    stored_run(tmp_path / "secret-name")
    asks = client(tmp_path, token=TOKEN)
    for address in (
        "/",
        "/run?run=secret-name",
        "/?token=x",
        "/?token=%ff",
        "/nothing",
    ):
        answer = asks.get(address, headers=given)
        assert answer.status_code == 401
        assert "secret" not in answer.text
    assert asks.get("/static/serve.css").status_code == 200


def test_the_token_is_given_once_and_kept_in_a_cookie(tmp_path: Path) -> None:
    stored_run(tmp_path / "r")
    asks = client(tmp_path, token=TOKEN)
    answer = asks.get(f"/run?run=r&token={TOKEN}")
    kept = answer.headers["Set-Cookie"].lower()
    assert "httponly" in kept
    assert "samesite=strict" in kept
    assert TOKEN not in answer.text
    assert 'content="0;url=/run?run=r"' in answer.text
    assert asks.get("/run?run=r").status_code == 200


def test_the_token_may_be_a_bearer(tmp_path: Path) -> None:
    asks = client(tmp_path, token=TOKEN)
    assert (
        asks.get("/", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    )


@pytest.mark.parametrize("path", ["//evil.example/", "/%0d%0aSet-Cookie:x", '/"><b>'])
def test_the_token_leads_to_no_other_site(tmp_path: Path, path: str) -> None:
    asks = client(tmp_path, token=TOKEN)
    answer = asks.get(f"http://127.0.0.1:8219{path}?token={TOKEN}")
    (address,) = re.findall(r"0;url=([^\"]*)\"", answer.text)
    assert re.match(r"/[^/]", address)
    assert "<b>" not in answer.text
    assert str(escape(address)) == address
