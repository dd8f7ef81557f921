"""The pages: which address shows what."""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

import anyio
import jinja2
from markupsafe import escape
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from dutperf import __version__
from dutperf.errors import DutperfError, defect
from dutperf.report import page as report_page
from dutperf.serve.live import Following, PlannedCells
from dutperf.serve.runs import (
    RunList,
    ServedRun,
    check_files,
    find_run,
    report_of,
    summary_of,
)
from dutperf.visible import visible, visible_json

# Who may read, and what a page may do: every request and every answer passes here.
#
# On the loopback interface the ``Host`` header is checked: a page of another site whose
# name was made to point to this machine (DNS rebinding) would send its own. Elsewhere a
# token is asked for instead, which no such page knows.


PAGE_POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
    "frame-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
REPORT_POLICY = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)
"""A report's own scripts run, but belong to no site: they see no other page."""
_ALWAYS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
}
OPEN_TO_ALL = "/static/"
"""Looks and scripts: they say nothing of any run, and a sandbox has no cookie."""


class Guard:
    """Passes on what may be asked; else answers itself.

    Args:
        app: the pages.
        token: who knows it may read; None: everybody who reaches the machine.
        hosts: what ``Host`` may name; empty: anything.
    """

    def __init__(self, app: ASGIApp, token: str | None, hosts: frozenset[str]) -> None:
        self._app = app
        self._token = token
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See ASGI."""

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.setdefault("Content-Security-Policy", PAGE_POLICY)
                headers.update(_ALWAYS)
            await send(message)

        answer = self._refusal(scope) or self._app
        await answer(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if self._hosts and _host(headers.get("host", "")) not in self._hosts:
            return _plain(
                "This page has another address: see what dutperf printed.", 421
            )
        if self._token is None or scope["path"].startswith(OPEN_TO_ALL):
            return None
        query = parse_qsl(scope["query_string"].decode("latin-1"), True)
        given = [value for key, value in query if key == "token"]
        if any(map(self._is_token, given)):
            rest = [(key, value) for key, value in query if key != "token"]
            return self._entrance(scope, rest)
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._is_token(bearer.strip()):
            return None
        if self._is_token(_cookie(headers, _cookie_name(scope))):
            return None
        refused = _plain(
            "Open the address that dutperf serve printed: it has a token.", 401
        )
        refused.headers["WWW-Authenticate"] = "Bearer"
        return refused

    def _is_token(self, given: str) -> bool:
        """In the same time, however much of it is right."""
        known = (self._token or "").encode()
        return secrets.compare_digest(given.encode("utf-8", "replace"), known)

    def _entrance(self, scope: Scope, query: list[tuple[str, str]]) -> Response:
        """Keeps the token in a cookie, and goes on to the address without it.

        Not by a redirection: after a click on another site a browser would go there
        without the cookie, which is for requests of this site only.
        """
        path = "/" + quote(scope["path"].lstrip("/"))
        address = escape(f"{path}?{urlencode(query)}" if query else path)
        answer = HTMLResponse(
            '<!doctype html><meta charset="utf-8"><title>dutperf</title>'
            f'<meta http-equiv="refresh" content="0;url={address}">'
            f'<a href="{address}">on to the runs</a>'
        )
        answer.set_cookie(
            _cookie_name(scope), self._token or "", httponly=True, samesite="strict"
        )
        return answer


def _plain(text: str, status: int) -> Response:
    return Response(f"{text}\n", status, media_type="text/plain")


def _host(header: str) -> str:
    """Without the port."""
    host, colon, port = header.rpartition(":")
    return (host if colon and port.isdigit() else header).lower()


def _cookie_name(scope: Scope) -> str:
    """Of this server: cookies of all ports of a machine are kept together."""
    return f"dutperf-{(scope.get('server') or ('', 0))[1]}"


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found else ""


_PER_PAGE = 50
_PIECES = 500
"""Of a template, in one go: each goes through a thread."""
_POLL_S = 0.5
_POLLS_TO_PING = 30
_SCRIPT = "text/javascript"
_STATIC = {"serve.css": "text/css", "live.js": _SCRIPT, "runs.js": _SCRIPT}

Compare = Callable[[Sequence[Path]], str]
"""The page that compares the runs in directories."""


def make_app(
    root: Path,
    compare: Compare,
    planned: PlannedCells,
    *,
    token: str | None = None,
    hosts: frozenset[str] = frozenset(),
) -> Guard:
    """The application.

    Args:
        root: the runs below it are shown; an absolute path without links.
        compare: makes the page of several runs.
        planned: what a run is to measure, for its progress.
        token: see ``Guard``.
        hosts: see ``Guard``.
    """
    pages = _Pages(root, compare, planned)
    app = Starlette(
        routes=[
            Route("/", pages.runs),
            Route("/run", pages.run),
            Route("/report", pages.report),
            Route("/compare", pages.compare),
            Route("/comparison", pages.comparison),
            Route("/events", pages.events),
            Route(OPEN_TO_ALL + "{name}", pages.static),
        ],
        exception_handlers={
            HTTPException: pages.refused,
            DutperfError: pages.failed,
            Exception: pages.defect,
        },
    )
    return Guard(app, token, hosts)


class _Pages:
    """What each address shows. Nothing is kept but the list and summaries of runs."""

    def __init__(self, root: Path, compare: Compare, planned: PlannedCells) -> None:
        self._root = root
        self._list = RunList(root)
        self._compare = compare
        self._planned = planned
        self._templates = _environment()
        self._rendering = threading.Lock()

    def runs(self, request: Request) -> Response:
        """The list; rows are sent some at a time, as runs are read."""
        query = _query(request)
        found = self._list.runs()
        pages = max(1, -(-len(found) // _PER_PAGE))
        wanted = query.get("page", ["1"])[0]
        number = (
            min(int(wanted), pages) if wanted.isdecimal() and len(wanted) < 9 else 1
        )
        first = max(0, (number - 1) * _PER_PAGE)
        pieces = self._templates.get_template("runs.html.j2").stream(
            root=self._root,
            count=len(found),
            rows=map(summary_of, found[first : first + _PER_PAGE]),
            page=number,
            pages=pages,
            chosen=query.get("with", [""])[0],
            version=__version__,
        )
        pieces.enable_buffering(_PIECES)
        return StreamingResponse(map(visible, pieces), media_type="text/html")

    def run(self, request: Request) -> Response:
        """One run: live while it lasts, then its report."""
        (run,) = self._asked(request, 1)
        summary = summary_of(run)
        if summary.state == "damaged":
            return self._problem(summary.why, "", 422)
        live = summary.state == "running" and "report" not in _query(request)
        name = "live.html.j2" if live else "report.html.j2"
        return self._page(name, run=run, summary=summary)

    def report(self, request: Request) -> Response:
        """The report itself, for a frame."""
        (run,) = self._asked(request, 1)
        return _framed(report_of(run))

    def compare(self, request: Request) -> Response:
        """Two runs or more beside each other."""
        runs = self._asked(request, 2)
        return self._page("compare.html.j2", runs=runs)

    def comparison(self, request: Request) -> Response:
        """The comparison itself, for a frame."""
        runs = self._asked(request, 2)
        for run in runs:
            check_files(run)
        with self._rendering:
            return _framed(self._compare([run.path for run in runs]))

    def events(self, request: Request) -> Response:
        """What a running campaign finds, as server-sent events."""
        (run,) = self._asked(request, 1)
        check_files(run)
        stream = self._follow(run) if request.method == "GET" else ""
        return StreamingResponse(stream, media_type="text/event-stream")

    async def _follow(self, run: ServedRun) -> AsyncIterator[str]:
        """Each event is the whole panel, so a reader may come and go."""
        try:
            planned = await run_in_threadpool(self._planned, run.path)
            following = Following(run.path, planned)
            quiet = _POLLS_TO_PING
            while True:
                # Asked first: what was stored before the end is read after it.
                lasts = await run_in_threadpool(lambda: run.is_running)
                moved = await run_in_threadpool(following.read_on)
                quiet = 0 if moved else quiet + 1
                if moved or quiet > _POLLS_TO_PING:
                    quiet = 0
                    yield await run_in_threadpool(self._panel, following)
                if not moved and not lasts:
                    break
                if not moved:
                    await anyio.sleep(_POLL_S)
        except DutperfError as error:
            yield _event("problem", visible(error.message))
        yield _event("end", "")

    def _panel(self, following: Following) -> str:
        template = self._templates.get_template("live_panel.html.j2")
        return _event("panel", visible(template.render(view=following.view)))

    def static(self, request: Request) -> Response:
        """Looks and scripts."""
        name = request.path_params["name"]
        if name not in _STATIC:
            raise HTTPException(404)
        text = self._templates.get_template(name).render()
        return Response(text, media_type=_STATIC[name])

    def refused(self, _request: Request, error: Exception) -> Response:
        """Of an address or a method that there is not."""
        status = error.status_code if isinstance(error, HTTPException) else 404
        headers = error.headers if isinstance(error, HTTPException) else None
        told = "There is no such page, or no such run any more."
        if status == 405:
            told = "This page can only be read."
        return self._problem(told, "", status, headers)

    def failed(self, _request: Request, error: Exception) -> Response:
        """What the reader can act on."""
        hint = error.hint if isinstance(error, DutperfError) else ""
        return self._problem(str(error), hint, 422)

    def defect(self, _request: Request, error: Exception) -> Response:
        """What dutperf should have handled."""
        found = defect(error, None)
        return self._problem(found.message, found.hint, 500)

    def _problem(
        self,
        told: str,
        hint: str,
        status: int,
        headers: Mapping[str, str] | None = None,
    ) -> Response:
        page = self._page("problem.html.j2", told=told, hint=hint)
        page.status_code = status
        page.headers.update(headers or {})
        return page

    def _page(self, name: str, **told: object) -> Response:
        template = self._templates.get_template(name)
        return HTMLResponse(visible(template.render(version=__version__, **told)))

    def _asked(self, request: Request, least: int) -> list[ServedRun]:
        """The runs that are asked for, at least so many.

        Raises:
            HTTPException: there is no such run below the directory.
        """
        names = list(dict.fromkeys(_query(request).get("run", [])))
        runs = [find_run(self._root, name) for name in names]
        found = [run for run in runs if run]
        if len(found) < max(least, len(names)) or (least == 1 and len(found) > 1):
            raise HTTPException(404)
        return found


def _framed(page: str | bytes) -> Response:
    return HTMLResponse(page, headers={"Content-Security-Policy": REPORT_POLICY})


def _event(name: str, text: str) -> str:
    data = visible_json(json.dumps(text))
    return f"event: {name}\ndata: {data}\n\n"


def _query(request: Request) -> dict[str, list[str]]:
    """All values of each key; names of files need not be text."""
    given = request.scope["query_string"].decode("latin-1")
    found: dict[str, list[str]] = {}
    for key, value in parse_qsl(given, errors="surrogateescape"):
        found.setdefault(key, []).append(value)
    return found


def _environment() -> jinja2.Environment:
    """The templates of the report, and those of these pages."""
    found = report_page.environment()
    loaders = [jinja2.PackageLoader(f"dutperf.{room}") for room in ("serve", "report")]
    found.loader = jinja2.ChoiceLoader(loaders)
    found.filters["quoted"] = lambda name: quote(os.fsencode(name), safe="/")
    return found
