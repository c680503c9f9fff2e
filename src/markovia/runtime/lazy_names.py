"""A package whose names are imported on first use, and listed once: in the stub beside its `__init__.py`.

Type checkers and editors read the stub `__init__.pyi` as it is; at run time the same lines say where each name lives. A name
that is asked for is imported then and kept, so `import markovia` costs nothing for what is not used.
"""

import ast
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from markovia.errors import did_you_mean


def lazy_names(package: str) -> tuple[list[str], Callable[[str], Any], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package, read from the imports in its stub.

    Parameters
    ----------
    package
        The package's `__name__`; its folder has a stub `__init__.pyi` that holds `from module import name as name` lines.

    Examples
    --------
    >>> names, getter, _ = lazy_names("markovia.learning")
    >>> "pearson" in names, getter("pearson").__module__
    (True, 'markovia.learning.association.association')
    """
    module = sys.modules[package]
    stub = Path(str(module.__file__)).with_suffix(".pyi")
    homes = {
        alias.asname or alias.name: (str(line.module), alias.name)
        for line in ast.parse(stub.read_text(encoding="utf-8")).body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }

    def getter(name: str) -> Any:
        if name not in homes:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}{did_you_mean(name, [*homes])}"
            )
        home, original = homes[name]
        found = None if home == package else getattr(import_module(home), original, None)
        value = import_module(f"{home}.{original}") if found is None else found
        setattr(module, name, value)
        return value

    return (
        [*homes],
        getter,
        lambda: sorted({*homes, "__version__"} if hasattr(module, "__version__") else homes),
    )
