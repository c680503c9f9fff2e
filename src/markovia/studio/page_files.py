"""The files of the page, from memory: the browser has them within milliseconds, and asks again only whether they changed."""

from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING

from markovia.studio.sharing.bundle import STATIC, imported, static_text

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

MEDIA = {
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "svg": "image/svg+xml",
}


async def page(request: "Request") -> "Response":
    """Answer with the page, which names all modules it will need, so that the browser does not find them one by one."""
    from starlette.responses import Response

    return Response(_page(), media_type=MEDIA["html"])


async def page_file(request: "Request") -> "Response":
    """Answer with a file of the page, or with nothing where the browser has it already."""
    from starlette.exceptions import HTTPException
    from starlette.responses import Response

    name = request.path_params["name"]
    if name not in _names():
        raise HTTPException(404)
    data, mark = _contents(name)
    headers = {"etag": mark, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == mark:
        return Response(status_code=304, headers=headers)
    return Response(data, media_type=MEDIA[name.rpartition(".")[2]], headers=headers)


@cache
def _page() -> str:
    wanted = "".join(f'  <link rel="modulepreload" href="static/{m}">\n' for m in imported("main.js"))
    return static_text("index.html").replace("</head>", f"{wanted}</head>")


@cache
def _names() -> frozenset[str]:
    return frozenset(p.name for p in STATIC.iterdir())


@cache
def _contents(name: str) -> tuple[bytes, str]:
    data = (STATIC / name).read_bytes()
    return data, f'"{sha256(data).hexdigest()[:32]}"'
