"""The description of an API in OpenAPI 3.1, made of its table of endpoints: one truth for routes, checks and description."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from markovia import __version__
from markovia.studio.documents.endpoints import Endpoint
from markovia.studio.documents.messages import Problem

_REF = "#/components/schemas/{name}"


def described(endpoints: Sequence[Endpoint], title: str, *, bearer: bool = True) -> dict[str, Any]:
    """Return the description.

    Examples
    --------
    >>> from markovia.studio.documents.messages import Health
    >>> alive = Endpoint("GET", "/health", None, Health, lambda call: None, "Say whether the server lives.")
    >>> said = described([alive], "demo")
    >>> said["openapi"], list(said["paths"])
    ('3.1.0', ['/health'])
    """
    types = [t for e in endpoints for t in (e.request, e.response) if t is not None and t is not bytes]
    schemas, components = msgspec.json.schema_components([*types, Problem], ref_template=_REF)
    by_type = dict(zip(map(_key, [*types, Problem]), schemas, strict=True))
    problem = by_type[_key(Problem)]
    paths: dict[str, Any] = {}
    for endpoint in endpoints:
        paths.setdefault(_plain(endpoint.path), {})[endpoint.method.lower()] = _operation(
            endpoint, by_type, problem
        )
    said: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": title, "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }
    if bearer:
        said["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        said["security"] = [{"token": []}]
    return said


def _operation(endpoint: Endpoint, by_type: dict[Any, Any], problem: dict[str, Any]) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _names(endpoint.path)
    ]
    parameters += [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": says,
            "schema": {"type": "string"},
        }
        for name, says in endpoint.query.items()
    ]
    fine: dict[str, Any] = {"description": "The answer."}
    if endpoint.response is not None:
        fine["content"] = {"application/json": {"schema": by_type[_key(endpoint.response)]}}
    refused = {
        "description": "One sentence on what is wrong.",
        "content": {"application/json": {"schema": problem}},
    }
    operation: dict[str, Any] = {
        "summary": endpoint.says,
        "operationId": _identifier(endpoint),
        "responses": {"200": fine, "4XX": refused, "503": refused},
    }
    if parameters:
        operation["parameters"] = parameters
    if endpoint.request is bytes:
        media: dict[str, Any] = {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}}
        }
        operation["requestBody"] = {"required": True, "content": media}
    elif endpoint.request is not None:
        media = {"application/json": {"schema": by_type[_key(endpoint.request)]}}
        operation["requestBody"] = {"required": True, "content": media}
    return operation


def _key(one: Any) -> Any:
    return str(one) if not isinstance(one, type) else one


def _plain(path: str) -> str:
    """Return a path without converters: `{name:path}` is `{name}`."""
    return re.sub(r"\{(\w+):\w+\}", r"{\1}", path)


def _names(path: str) -> Iterable[str]:
    return re.findall(r"\{(\w+)(?::\w+)?\}", path)


def _identifier(endpoint: Endpoint) -> str:
    return "_".join(
        [endpoint.method.lower(), *re.findall(r"\w+", _plain(endpoint.path).replace("/api/", "/"))]
    )
