"""A name for what a model's functions compute: equal digests mean that compiled code can be used again.

It covers the code of every function, what its closure and the globals it reads hold, constants, shapes, roles, which
entries are missing, and what is sampled non-centred. A value that cannot be described (an arbitrary object) is named by
its identity, which no other process will find again.
"""

import hashlib
from collections.abc import Mapping
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from markovia.inference.differentiable.layout import Layout


def digest(layout: Layout) -> str:
    """Return the digest of a model with its evidence, data aside: functions, roles, shapes and constants."""
    said = hashlib.sha256()
    for site in layout.sites.values():
        parts = (
            site.name,
            site.plates,
            site.role,
            site.shape,
            site.states,
            site.sources,
            sorted(site.lags.items()),
            site.centred,
        )
        said.update(repr(parts).encode())
        piece = site.piece
        form = getattr(piece, "form", None)
        said.update(described(form if form is not None else _numbers(piece)))
        said.update(described(getattr(piece, "first", None)))
        said.update(described(None if site.soft is None else site.soft.said))
        said.update(described(site.holes))
    said.update(repr(sorted(layout.lengths.items())).encode())
    said.update(repr(sorted(layout.fixed.items())).encode())
    said.update(repr([(k, v.shape, v.dtype.str) for k, v in sorted(layout.data.items())]).encode())
    said.update(repr(sorted(layout.column_plates.items())).encode())
    return said.hexdigest()


def _numbers(piece: Any) -> Any:
    return piece.values if piece.kind == "table" else [piece.bias, piece.weights, piece.variance]


def described(value: Any, depth: int = 0) -> bytes:
    """Return bytes that describe a value: code and what it closes over, numbers, arrays, distributions, containers."""
    if isinstance(value, FunctionType):
        inside = [cell.cell_contents for cell in value.__closure__ or () if _filled(cell)]
        outside = [value.__globals__[n] for n in _names(value.__code__) if n in value.__globals__]
        held = [value.__defaults__, value.__kwdefaults__, *inside]
        parts = [_code(value.__code__), *(described(v, depth + 1) for v in (*held, *outside) if depth < 8)]
        return b"function" + b"|".join(parts)
    if isinstance(value, ModuleType):
        return value.__name__.encode()
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return repr(value).encode()
    if isinstance(value, np.ndarray | np.generic) or type(value).__module__.startswith("jax"):
        array = np.asarray(value)
        if array.dtype.kind != "O":
            return f"{array.shape}{array.dtype.str}".encode() + array.tobytes()
    if isinstance(value, list | tuple | set | frozenset):
        return type(value).__name__.encode() + b",".join(described(v, depth + 1) for v in value)
    if isinstance(value, Mapping):
        return b"{" + b",".join(described(k) + b":" + described(v, depth + 1) for k, v in value.items())
    if isinstance(value, type):
        return f"{value.__module__}.{value.__qualname__}".encode()
    state = getattr(value, "__dict__", None)
    if state is not None and depth < 8:
        kind = f"{type(value).__module__}.{type(value).__qualname__}".encode()
        return (
            kind
            + b"("
            + b",".join(k.encode() + b"=" + described(v, depth + 1) for k, v in sorted(state.items()))
        )
    return f"{type(value).__qualname__} {id(value)}".encode()


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _names(code: CodeType) -> tuple[str, ...]:
    """Return the names that some code reads, functions inside it too."""
    return (*code.co_names, *(n for c in code.co_consts if isinstance(c, CodeType) for n in _names(c)))


def _code(code: CodeType) -> bytes:
    constants = [_code(c) if isinstance(c, CodeType) else repr(c).encode() for c in code.co_consts]
    return b";".join(
        [code.co_code, repr(code.co_names).encode(), repr(code.co_varnames).encode(), *constants]
    )
