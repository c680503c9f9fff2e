"""What a function computes, as bytes: equal ones mean that compiled code can be used again.

They cover the code of a function, what its closure, its defaults and the globals it reads hold (functions and classes of
the user's own modules too, however far they are called from). Installed libraries are named by their version; markovia's
own text is part of every file's name (`machine_code.py`). An object is described as `pickle` would take it apart; one that
cannot be is named by its identity, which no other process will find again.
"""

import hashlib
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from functools import cache
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from markovia.runtime.libraries import jax

_nameless: dict[int, Any] = {}
"""Objects that are named by their identity: held, so that no later object gets the same one."""


def described(value: Any) -> bytes:
    """Return bytes that describe a value: code and what it reads, numbers, arrays, distributions, containers, objects.

    Examples
    --------
    >>> from functools import partial
    >>> described(partial(max, 2)) == described(partial(max, 2))
    True
    >>> described(partial(max, 2)) == described(partial(max, 3))
    False
    """
    return _Description().of(value)


class _Description:
    """One walk through what a value holds; what comes again, as in a recursive function, is named by its place."""

    def __init__(self) -> None:
        self._places: dict[int, int] = {}
        self._walked: list[Any] = []  # what `__reduce_ex__` makes has to live as long as its identity is used

    def of(self, value: Any) -> bytes:
        if value is None or isinstance(value, bool | int | float | complex | str | bytes):
            return f"{type(value).__name__} {value!r}".encode()
        place = self._places.setdefault(id(value), len(self._places))
        if place < len(self._walked):
            return f"again {place}".encode()
        self._walked.append(value)
        return self._of_object(value)

    def _all(self, kind: str, parts: Iterable[Any]) -> bytes:
        """Join descriptions of one length each, so that no two lists of parts read the same."""
        return kind.encode() + b"".join(hashlib.sha256(self.of(part)).digest() for part in parts)

    def _of_object(self, value: Any) -> bytes:
        if _is_array(value) and value.dtype.kind != "O":
            array = np.asarray(value)
            return f"{array.shape}{array.dtype.str}".encode() + array.tobytes()
        if isinstance(value, CodeType):
            return self._all("code", (value.co_code, value.co_names, value.co_varnames, value.co_consts))
        if isinstance(value, FunctionType):
            return self._function(value)
        if isinstance(value, MethodType):
            return self._all("method", (value.__func__, value.__self__))
        if isinstance(value, ModuleType):
            return _version(value.__name__)
        if isinstance(value, list | tuple):
            return self._all(type(value).__name__, value)
        if isinstance(value, set | frozenset):
            return self._all(type(value).__name__, sorted(value, key=lambda v: (type(v).__name__, repr(v))))
        if isinstance(value, Mapping):
            return self._all(type(value).__name__, (part for pair in value.items() for part in pair))
        if isinstance(value, type):
            return self._class(value)
        if isinstance(value, property):
            return self._all("property", (value.fget,))
        if isinstance(value, staticmethod | classmethod):
            return self._all(type(value).__name__, (value.__func__,))
        return self._parts(value)

    def _function(self, function: FunctionType) -> bytes:
        cells = [cell.cell_contents for cell in function.__closure__ or () if _filled(cell)]
        read: list[Any] = []
        if not _is_library(function.__module__ or ""):
            names = _names(function.__code__)
            for name in names:
                # a name that is no global may be a module that the function imports itself
                found = function.__globals__.get(name, sys.modules.get(name))
                read += self._members(found, names) if isinstance(found, ModuleType) else [found]
        parts = (function.__code__, function.__defaults__, function.__kwdefaults__, *cells, *read)
        return self._all("function", parts)

    def _members(self, module: ModuleType, names: tuple[str, ...]) -> list[Any]:
        """Return what code with these names can read off a module: all of it by name, the user's own by what it is."""
        if _is_library(module.__name__) or id(module) in self._places:
            return [module]
        self._places[id(module)] = len(self._walked)
        self._walked.append(module)
        held = [vars(module)[name] for name in names if name in vars(module)]
        parts = (self._members(one, names) if isinstance(one, ModuleType) else [one] for one in held)
        return [module.__name__, *(part for one in parts for part in one)]

    def _class(self, kind: type) -> bytes:
        named = f"{kind.__module__}.{kind.__qualname__}"
        if _is_library(kind.__module__):
            return named.encode() + _version(kind.__module__)
        inside = (FunctionType, property, staticmethod, classmethod, bool, int, float, str, tuple, np.ndarray)
        skipped = ("__module__", "__doc__", "__qualname__", "__firstlineno__")
        held = [(k, v) for k, v in vars(kind).items() if isinstance(v, inside) and k not in skipped]
        return self._all(f"class {named}", (*kind.__bases__, *held))

    def _parts(self, value: Any) -> bytes:
        """Describe an object by its class and by what `pickle` would write of it, or by what it wraps."""
        inside = getattr(value, "__wrapped__", None)
        if inside is not None and not isinstance(
            value, BuiltinFunctionType
        ):  # a compiled function, a cached one
            return self._all("wrapped", (type(value), inside, dict(getattr(value, "__dict__", {}))))
        try:
            taken = value.__reduce_ex__(4)
        except Exception:
            # what cannot be pickled (a lock, a generator) may still be plain attributes
            state = getattr(value, "__dict__", None)
            if state:
                return self._all("object", (type(value), dict(state)))
            _nameless[id(value)] = value
            return f"{type(value).__qualname__} at {id(value)}".encode()
        if isinstance(taken, str):  # a name that a module holds, as of functions written in C
            return self._all(f"{getattr(value, '__module__', '')}.{taken}", (type(value),))
        return self._all("object", (*taken[:3], *(list(part) for part in taken[3:5] if part is not None)))


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic | jax.Array)


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def _names(code: CodeType) -> tuple[str, ...]:
    """Return the names that some code reads, functions inside it too."""
    return (*code.co_names, *(n for c in code.co_consts if isinstance(c, CodeType) for n in _names(c)))


@cache
def _is_library(module: str) -> bool:
    """Say whether a module changes with its version only: it is installed, or of markovia, whose text counts elsewhere."""
    top = module.partition(".")[0]
    if top == "markovia" or top in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    paths = sysconfig.get_paths()
    return any(file.startswith(paths[where]) for where in ("purelib", "platlib", "stdlib"))


@cache
def _version(module: str) -> bytes:
    """Return a module's name with the version of the package that it is of."""
    top = sys.modules.get(module.partition(".")[0])
    return f"{module} {getattr(top, '__version__', '')}".encode()
