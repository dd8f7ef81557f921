"""Who may read, and what a page may do: every request and every answer passes here.

On the loopback interface the ``Host`` header is checked: a page of another site whose
name was made to point to this machine (DNS rebinding) would send its own. Elsewhere a
token is asked for instead, which no such page knows.
"""

from __future__ import annotations

import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode

from markupsafe import escape
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
