"""From an HTTP request to a handler and back: bodies are counted and checked, errors become one sentence."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from markovia.errors import MarkoviaError, TooLarge
from markovia.studio.documents.endpoints import Busy, Call, Costly, Endpoint, File, Refused, TooBig
from markovia.studio.documents.messages import Problem
from markovia.studio.documents.wording import in_page_words

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

THREADS = 8
"""Handlers that run at once."""
WAITING = 256
"""Requests that wait for a thread; further ones are told to come back."""


class SlowClient(Refused):
    """A client that takes too long to send its body."""

    status = 408
    kind = "SlowClient"


class RequestGate:
    """The limits that all requests share: bytes of a body, seconds to send it, and handlers at once."""

    def __init__(
        self, *, max_body: int, patience: float, threads: int = THREADS, waiting: int = WAITING
    ) -> None:
        self.max_body, self.patience = max_body, patience
        self._threads, self._waiting = threads, waiting
        self._inside = 0
        self._limiter: Any = None

    async def body(self, request: "Request") -> bytes:
        """Read a body, counting; too many bytes or too much time are refused."""
        import anyio

        announced = request.headers.get("content-length", "0")
        if announced.isdigit() and int(announced) > self.max_body:
            raise TooBig(f"the body has {int(announced):,} bytes; the limit is {self.max_body:,}")
        read = bytearray()
        try:
            with anyio.fail_after(self.patience):
                async for piece in request.stream():
                    read += piece
                    if len(read) > self.max_body:
                        raise TooBig(f"the body has more than {self.max_body:,} bytes")
        except TimeoutError:
            raise SlowClient(f"the body did not arrive within {self.patience:g} seconds") from None
        return bytes(read)

    async def run(self, work: Callable[[], Any]) -> Any:
        """Run a handler in a thread, or refuse where too many wait."""
        import anyio
        from anyio.to_thread import run_sync

        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self._threads)
        if self._inside >= self._threads + self._waiting:
            raise Busy("the server is busy; ask again in a moment")
        self._inside += 1
        try:
            return await run_sync(work, limiter=self._limiter)
        finally:
            self._inside -= 1


def route(endpoint: Endpoint, call: Callable[..., Call[Any]], gate: RequestGate) -> "Route":
    """Return the route of an endpoint."""
    from starlette.routing import Route

    decoder: Any = (
        None if endpoint.request in (None, bytes) else msgspec.json.Decoder(endpoint.request, strict=True)
    )
    encode = msgspec.json.Encoder().encode

    async def serve(request: "Request") -> "Response":
        from starlette.responses import Response

        try:
            body: Any = None
            if endpoint.request is not None:
                data = await gate.body(request)
                body = data if decoder is None else _decoded(decoder, data)
            one = call(path=request.path_params, query=dict(request.query_params), body=body)

            def work() -> Any:
                answer = endpoint.handle(one)
                if isinstance(answer, Response | File):
                    return answer
                return Response(encode(answer), media_type="application/json")

            answer = await gate.run(work)
        except Exception as error:
            return refusal(error)
        return _attachment(answer) if isinstance(answer, File) else answer

    serve.__name__ = endpoint.handle.__name__
    return Route(endpoint.path, serve, methods=[endpoint.method])


def _decoded(decoder: Any, data: bytes) -> Any:
    try:
        return decoder.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Refused(
            f"the body is not what this endpoint takes: {str(error) or 'nested too deeply'}"
        ) from None


def refusal(error: Exception) -> "Response":
    """Return an error as an answer of one sentence; what is no fault of the input keeps its traceback."""
    from starlette.responses import Response

    if isinstance(error, TooLarge):
        error = _estimated(error)
    if isinstance(error, MemoryError):
        error = Busy("the server has not enough memory for this now")
    if isinstance(error, RecursionError):
        error = Refused("the model is nested too deeply for this")
    if not isinstance(error, MarkoviaError):
        raise error
    status = error.status if isinstance(error, Refused) else 400
    kind = error.kind if isinstance(error, Refused) else type(error).__name__
    cycle = getattr(error, "cycle", None)
    problem = Problem(
        in_page_words(str(error)),
        kind,
        getattr(error, "estimate", None) or None,
        None if cycle is None else list(cycle),
    )
    return Response(msgspec.json.encode(problem), status, media_type="application/json")


def _estimated(error: TooLarge) -> Costly:
    """Return the refusal of a question that costs too much, with the estimate."""
    sentence = str(error).partition(", or raise ")[0].partition("; or add evidence")[0]
    return Costly(
        sentence or "the question does not fit into memory",
        {"bytes": getattr(error, "bytes", None), "operations": getattr(error, "operations", None)},
    )


async def no_such(request: "Request", error: Any) -> "Response":
    """Answer an address or a method that is not there."""
    from starlette.responses import Response

    said = (
        "this address does not take that method"
        if error.status_code == 405
        else "there is nothing at this address"
    )
    problem = Problem(f"{said}: {request.method} {request.url.path}", "NotFound")
    return Response(
        msgspec.json.encode(problem), error.status_code, error.headers, media_type="application/json"
    )


async def own_fault(request: "Request", error: Exception) -> "Response":
    """Answer where a handler failed by a mistake of its own; the traceback is in the log."""
    from starlette.responses import Response

    problem = Problem("the server made a mistake; its log has the details", "ServerError")
    return Response(msgspec.json.encode(problem), 500, media_type="application/json")


def _attachment(file: File) -> "Response":
    from urllib.parse import quote

    from starlette.responses import Response

    plain = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in file.name)
    headers = {
        "content-disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(file.name, safe='')}"
    }
    return Response(file.data, media_type=file.media, headers=headers)
