"""Who may ask: a token, the right host, the same site. All checks stand before the app, so no route can forget them.

- `--token`: every request but health and the page's own files needs it, as a bearer token or as the cookie that the
  sign-in page sets. Compared in constant time.
- A server on loopback answers only to loopback names: else any web page could reach it under a name of its own that
  resolves to 127.0.0.1.
- A request that changes something must come from this server's own pages or from a program, not from another site.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from gamma_kg.errors import ConfigError
from gamma_kg.serve.problems import problem

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "::1")
COOKIE = "gamma_token"
OPEN_PATHS = ("/healthz", "/readyz", "/sign-in")
OPEN_PREFIX = "/static/"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
LEAST_TOKEN = 16
# As they go over the wire: every answer carries them, and none should wait for their making.
HEADERS = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
)
# The page's own files are asked for again every time, and mostly not sent: after an upgrade nobody sees the old ones.
STATIC = (*HEADERS, (b"cache-control", b"no-cache"))
UNCACHED = (*HEADERS, (b"cache-control", b"no-store"))


def check_binding(host: str, token: str | None) -> None:
    """Refuses to open the server to a network without a token."""
    if host not in LOOPBACK and not token:
        raise ConfigError(f"--host {host} lets others in: give a --token too, or keep to 127.0.0.1")
    if token is not None and len(token) < LEAST_TOKEN:
        raise ConfigError(f"--token must have at least {LEAST_TOKEN} characters, got {len(token)}")


class Token:
    """Checks what a caller shows, in constant time; without a secret everybody may."""

    def __init__(self, secret: str | None) -> None:
        self._secret = None if secret is None else secret.encode()

    @property
    def is_wanted(self) -> bool:
        return self._secret is not None

    def accepts(self, shown: str) -> bool:
        if self._secret is None:
            return True
        # Digests have one length, so that not even the length of the secret can be measured.
        pair = (hashlib.sha256(text).digest() for text in (shown.encode("utf-8", "replace"), self._secret))
        return hmac.compare_digest(*pair)

    def cookie(self) -> str:
        """What the sign-in page hands out instead of the secret itself."""
        return hmac.new(self._secret or b"", b"gamma page", hashlib.sha256).hexdigest()

    def accepts_cookie(self, shown: str) -> bool:
        return hmac.compare_digest(shown.encode("utf-8", "replace"), self.cookie().encode())


class Gate:
    """ASGI: lets through what may come through, and puts the security headers on every answer."""

    def __init__(self, app: App, *, token: Token, host: str, body_bytes: int, upload_bytes: int) -> None:
        self._app, self._token, self._host = app, token, host
        self._body_bytes, self._upload_bytes = body_bytes, upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                own = STATIC if scope["path"].startswith(OPEN_PREFIX) else UNCACHED
                message["headers"] = [*message["headers"], *(pair for pair in own if pair[0] not in given)]
            await send(message)

        refusal = self._refusal(scope, headers)
        if refusal is not None:
            status, detail = refusal
            answer = problem(status, detail)
            if status == 401:
                answer.headers["WWW-Authenticate"] = "Bearer"
                if "text/html" in headers.get("accept", "") and scope["method"] in SAFE_METHODS:
                    answer.status_code, answer.headers["Location"] = 303, "/sign-in"
            await answer(scope, receive, send_with_headers)
            return
        if scope["method"] == "HEAD":  # whatever can be got has a head; the server leaves the body out
            scope = {**scope, "method": "GET"}
        limit = self._limit(scope["path"])
        await self._app(scope, _bounded(receive, limit), send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        named = _host_of(headers.get("host", ""))
        if self._host in LOOPBACK and named not in LOOPBACK:
            return 421, f"this server answers to {', '.join(LOOPBACK)} only, not to {named[:100]!r}"
        if scope["method"] not in SAFE_METHODS and not _is_own_site(headers):
            return 403, "this request comes from another site's page; open the server's own page instead"
        path = scope["path"]
        is_open = path in OPEN_PATHS or path.startswith(OPEN_PREFIX)
        if not is_open and not self._may(headers):
            return 401, "this server wants a token: send it as 'Authorization: Bearer …', or sign in at /sign-in"
        length, limit = headers.get("content-length", "0"), self._limit(path)
        if not length.isdecimal():
            return 400, f"Content-Length must be a number, got {length[:40]!r}"
        if int(length[:20]) > limit:
            return 413, _too_large(limit)
        return None

    def _may(self, headers: Headers) -> bool:
        if not self._token.is_wanted:
            return True
        scheme, _, shown = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._token.accepts(shown.strip()):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and self._token.accepts_cookie(cookie.value)

    def _limit(self, path: str) -> int:
        return self._upload_bytes if path in UPLOAD_PATHS else self._body_bytes


UPLOAD_PATHS = ("/v1/graphs", "/graphs")


def _bounded(receive: Receive, limit: int) -> Receive:
    """A body without a stated length is counted as it comes."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > limit:
                raise HTTPException(413, _too_large(limit))
        return message

    return counted


def _too_large(limit: int) -> str:
    return f"the body may have at most {limit:,} bytes; send less, or start the server with a larger limit"


def _host_of(value: str) -> str:
    try:
        return (urlsplit(f"//{value}").hostname or "").rstrip(".")
    except ValueError:
        return ""


def _is_own_site(headers: Headers) -> bool:
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc == headers.get("host", "")
    except ValueError:  # no address at all, such as http://[
        return False
