"""Where compiled kernels lie on disk, and whether they are there; without importing Numba.

Compiled code of a file lies in a folder that is named after the file and after what it was compiled from: the text of the
file, of every kernel file it imports, and of the records (`*_records.py`) beside it, whose fields are what it takes. So a
change anywhere in that text, and nothing else, makes a kernel be compiled again. The folders are below `NUMBA_CACHE_DIR`
where that is set, else beside the sources, else (a library that its user may not write to) below the user's cache folder.
"""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from math import inf
from pathlib import Path

ROOT = Path(__file__).parent
_IMPORT = re.compile(r"^ *from markovia\.kernels([\w.]*) import ([\w, ]+|\([^)]*\))", re.MULTILINE)

_awaited = 0
_preferred: ContextVar[bool] = ContextVar("preferred", default=False)


def loaded(home: str) -> bool:
    """Say whether a kernel, given as "module:function", is in memory, ready to run."""
    module, _, name = home.partition(":")
    found = sys.modules.get(module)
    # while another thread imports the module, the kernel may not be there yet
    return bool(getattr(getattr(found, name, None), "overloads", None))


@cache
def on_disk(home: str) -> bool:
    """Say whether an earlier process left a kernel, given as "module:function", compiled on disk; asked once a process."""
    module, _, name = home.partition(":")
    start, end = f"{module.rpartition('.')[2]}.{name}-", f".py{sys.version_info[0]}{sys.version_info[1]}.nbi"
    try:
        return any(f.startswith(start) and f.endswith(end) for f in os.listdir(folder_of(module)))
    except OSError:
        return False


def worth_loading(home: str, plain: float, load: float, compiling: float) -> bool:
    """Say whether a kernel is in memory, or would be before other code is done.

    Parameters
    ----------
    home
        The kernel, as "module:function".
    plain
        The seconds that the other code takes.
    load, compiling
        The seconds until the kernel is there, from disk or from its source.
    """
    wait = inf if is_awaited() else load if on_disk(home) else compiling
    return _preferred.get() or loaded(home) or plain >= wait


def is_awaited() -> bool:
    """Say whether another process compiles, so that this one should not."""
    return _awaited > 0


@contextmanager
def awaited() -> Iterator[None]:
    """Do without kernels that are not in memory, in all threads, while another process compiles them.

    Afterwards they are looked for on disk again.
    """
    global _awaited
    _awaited += 1
    try:
        yield
    finally:
        _awaited -= 1
        on_disk.cache_clear()


@contextmanager
def preferred() -> Iterator[None]:
    """Find every kernel worth loading while this is open, however small the work: to compile beforehand, and for tests."""
    token = _preferred.set(True)
    try:
        yield
    finally:
        _preferred.reset(token)


@cache
def folder_of(module: str) -> Path:
    """Return the folder for the compiled code of a kernel module as its source is now."""
    return _base() / f"{module.removeprefix('markovia.kernels.')}-{digest(module)}"


def remove_stale(module: str) -> None:
    """Remove what was compiled from another text of a module, where nobody else can be using it."""
    if not os.environ.get("NUMBA_CACHE_DIR"):
        here = folder_of(module)
        for other in here.parent.glob(f"{module.removeprefix('markovia.kernels.')}-*"):
            if other != here:
                shutil.rmtree(other, ignore_errors=True)


@cache
def digest(module: str) -> str:
    """Return a digest of a kernel module's source and of all kernel sources that it imports."""
    seen: dict[str, bytes] = {}
    _gather(module, seen)
    total = hashlib.sha256()
    for name in sorted(seen):
        total.update(name.encode() + b"\0" + seen[name] + b"\0")
    return total.hexdigest()[:16]


def _gather(module: str, seen: dict[str, bytes]) -> None:
    text = _source(module)
    if text is None or module in seen:
        return
    seen[module] = text
    for records in sorted(ROOT.joinpath(*module.split(".")[2:]).parent.glob("*_records.py")):
        _gather(f"{module.rpartition('.')[0]}.{records.stem}", seen)
    for inner, names in _IMPORT.findall(text.decode()):
        package = f"markovia.kernels{inner}"
        _gather(package, seen)
        for name in re.findall(r"\w+", names):
            _gather(f"{package}.{name}", seen)


@cache
def _source(module: str) -> bytes | None:
    path = ROOT.joinpath(*module.split(".")[2:])
    try:
        return path.with_suffix(".py").read_bytes() if path != ROOT else None
    except OSError:
        return None


@cache
def _base() -> Path:
    chosen = os.environ.get("NUMBA_CACHE_DIR")
    if chosen:
        return Path(chosen) / "markovia"
    beside = ROOT / "__pycache__"
    if os.access(beside if beside.exists() else ROOT, os.W_OK):
        return beside / "compiled"
    elsewhere = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(elsewhere) / "markovia" / "kernels"
