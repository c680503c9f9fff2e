"""The door of the server: who may come in, and what every answer says about itself.

A request comes in with the server's own token (in a cookie, or as a bearer), to the address the server is bound to, from a
page of its own if from a page at all, and with a body of the announced kind. Everything else is refused before any handler
runs. So no other page in the same browser, and no other user of the machine, can ask or change anything.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from hmac import compare_digest
from typing import Any
from urllib.parse import parse_qs, urlsplit

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
BODIES = (b"application/json", b"application/octet-stream")
CLOSED = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>markovia studio</title>
<h1>This page needs its token</h1>
<p>Open the address that <code>markovia studio</code> printed; it ends in <code>?token=...</code>.</p>
</html>"""


class Door:
    """An ASGI middleware that lets in only requests with the token.

    Parameters
    ----------
    app
        What is behind the door.
    token
        The secret; None for a door that everybody may pass (the other checks stay).
    hosts
        What the Host header may say, without the port; None for anything.
    port
        The port that the server is bound to, which is part of the cookie's name.
    unguarded
        Paths that need no token.
    """

    def __init__(
        self,
        app: Asgi,
        token: str | None,
        hosts: tuple[str, ...] | None = ("127.0.0.1", "localhost", "[::1]"),
        port: int = 0,
        unguarded: tuple[str, ...] = (),
    ) -> None:
        self.unguarded = unguarded
        self.app, self.token, self.hosts = app, token, hosts
        self.cookie = f"markovia-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = _headers(scope)

        async def marked(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                own = [(k, v) for k, v in message.get("headers", []) if k.lower() not in _OURS]
                caching = (
                    []
                    if any(k.lower() == b"cache-control" for k, _ in own)
                    else [(b"cache-control", b"no-store")]
                )
                message["headers"] = [*own, *HEADERS, *caching]
            await send(message)

        refusal = self._refusal(scope, headers)
        if refusal is None:
            token = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token")
            if self.token is not None and scope["path"] == "/" and token:
                await self._welcome(token[0], marked)
                return
            if scope["path"] in self.unguarded or self._known(headers):
                await self.app(scope, receive, marked)
                return
            refusal = (401, "this needs the token of the address that was printed", "NoToken")
        await self._refuse(scope, headers, refusal, marked)

    def _refusal(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str, str] | None:
        host = headers.get(b"host", b"").decode("latin-1")
        if self.hosts is not None and _without_port(host) not in self.hosts:
            return 403, "the Host header names another address than this server's", "WrongHost"
        origin = headers.get(b"origin")
        if origin is not None and urlsplit(origin.decode("latin-1")).netloc != host:
            return 403, "requests from other pages are refused", "WrongOrigin"
        if (
            headers.get(b"sec-fetch-site", b"same-origin") not in (b"same-origin", b"none")
            and scope["path"] != "/"
        ):
            return 403, "requests from other pages are refused", "WrongOrigin"
        if scope["method"] not in ("GET", "HEAD", "DELETE"):
            media = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
            if media not in BODIES:
                return (
                    415,
                    "a body is application/json, or application/octet-stream for an upload",
                    "WrongBody",
                )
        return None

    def _known(self, headers: dict[bytes, bytes]) -> bool:
        if self.token is None:
            return True
        scheme, _, bearer = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() == b"bearer" and compare_digest(bearer.strip(), self.token.encode()):
            return True
        for pair in headers.get(b"cookie", b"").split(b";"):
            name, _, value = pair.strip().partition(b"=")
            if name == self.cookie.encode() and compare_digest(value, self.token.encode()):
                return True
        return False

    async def _welcome(self, token: str, send: Send) -> None:
        """Put the token into a cookie and take it off the address."""
        if self.token is None or not compare_digest(token.encode(), self.token.encode()):
            await _answer(send, 401, b"text/html; charset=utf-8", CLOSED.encode())
            return
        cookie = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
        await _answer(send, 303, b"text/plain", b"", (b"location", b"/"), (b"set-cookie", cookie.encode()))

    async def _refuse(
        self, scope: Scope, headers: dict[bytes, bytes], refusal: tuple[int, str, str], send: Send
    ) -> None:
        status, sentence, kind = refusal
        if b"text/html" in headers.get(b"accept", b"") and not scope["path"].startswith("/api/"):
            page = (
                CLOSED if status == 401 else f"<!doctype html><title>markovia studio</title><p>{sentence}</p>"
            )
            await _answer(send, status, b"text/html; charset=utf-8", page.encode())
            return
        body = f'{{"error":"{sentence}","kind":"{kind}"}}'
        await _answer(send, status, b"application/json", body.encode())


_OURS = {name for name, _ in HEADERS}


def _headers(scope: Scope) -> dict[bytes, bytes]:
    return {k.lower(): v for k, v in scope.get("headers", [])}


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdigit() else host).casefold()


async def _answer(send: Send, status: int, media: bytes, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    told = [(b"content-type", media), (b"content-length", str(len(body)).encode()), *headers]
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})
