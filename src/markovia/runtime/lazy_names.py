"""A module whose names are imported on first use, and listed once: in the stub beside it (`__init__.pyi`, `local.pyi`).

Type checkers and editors read the stub as it is; at run time the same lines say where each name lives. A name that is asked
for is imported then and kept, so `import markovia` costs nothing for what is not used.
"""

import ast
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from markovia.errors import did_you_mean
from markovia.runtime.keyword_advice import guide


def lazy_names(
    module_name: str, families: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__getattr__` and `__dir__` of a module, read from the imports in its stub.

    Parameters
    ----------
    module_name
        The module's `__name__`; the stub beside its file holds `from module import name as name` lines.
    families
        Doors whose names answer here too, though nothing lists them: programs from before the doors go on running.

    Examples
    --------
    >>> getter, names = lazy_names("markovia.learning")
    >>> "pearson" in names(), getter("pearson").__module__
    (True, 'markovia.learning.association.association')
    """
    module = sys.modules[module_name]
    stub = Path(str(module.__file__)).with_suffix(".pyi")
    homes = {
        alias.asname or alias.name: (str(line.module), alias.name)
        for line in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }

    def getter(name: str) -> Any:
        if name == "__all__" and sys._getframe(1).f_globals.get("__name__") != "pydoc":
            return [
                *homes
            ]  # pydoc would print every listed class in full: 17,000 lines instead of the docstring
        if name not in homes:
            for door in () if name.startswith("_") else map(getter, families):
                if name in door.__all__:
                    return getattr(door, name)
            raise AttributeError(f"module {module_name!r} has no attribute {name!r}{_advice(name)}")
        home, original = homes[name]
        found = None if home == module_name else getattr(import_module(home), original, None)
        value = import_module(f"{home}.{original}") if found is None else found
        value = _as_door(value) if isinstance(value, ModuleType) else guide(value)
        setattr(module, name, value)
        return value

    def _advice(name: str) -> str:
        if name.startswith("_"):
            return ""
        elsewhere: dict[str, str] = {}
        for door in (n for n, (home, _) in homes.items() if home == module_name):
            listed = getattr(door_module := getter(door), "__all__", dir(door_module))
            if name in listed:
                return f": it is {module_name}.{door}.{name}"
            elsewhere.update({n: f"{module_name}.{door}.{n}" for n in listed if not n.startswith("_")})
        near = next(iter(get_close_matches(name, {**elsewhere, **homes}, n=1, cutoff=0.75)), "")
        behind = elsewhere.get(near) if near not in homes else None
        return f" (did you mean {behind}?)" if behind else did_you_mean(name, homes)

    return getter, lambda: sorted({*homes, "__version__"} if hasattr(module, "__version__") else homes)


def _as_door(module: ModuleType) -> ModuleType:
    """Return a module that lists its own names only, and whose functions answer unknown keywords; a front door does."""
    if "__dir__" not in vars(module):
        own = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__]
        names = sorted(getattr(module, "__all__", [n for n in own if not n.startswith("_")]))
        for name in names:
            setattr(module, name, guide(getattr(module, name)))
        module.__dir__ = lambda: names  # type: ignore[method-assign]
    return module
