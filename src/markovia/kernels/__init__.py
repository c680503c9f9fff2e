"""Compiled inner loops on flat arrays: Numba, monomorphic, cached on disk, free of the interpreter lock.

Nothing here is imported by `import markovia`; an engine loads a kernel module when it first needs it.

Numba looks only at a kernel's own file when it decides whether compiled code on disk is still good, but kernels call
kernels of other files. So compiled code that is older than its source, or than any file its source imports from this
folder, is removed here first.
"""

import os
import re
import sys
from contextlib import suppress
from pathlib import Path

FOLDER = Path(__file__).parent


def cache_folders() -> list[Path]:
    """Return the folders where compiled kernels may lie: beside the sources, or below `NUMBA_CACHE_DIR`."""
    elsewhere = os.environ.get("NUMBA_CACHE_DIR")
    if elsewhere:
        return [p for p in Path(elsewhere).glob("*kernels*") if p.is_dir()]
    return [FOLDER / "__pycache__"]


def on_disk(kernel: str) -> bool:
    """Say whether an earlier run left a kernel, given as "file.function", compiled on disk for this version of Python."""
    pattern = f"{kernel}-*.py{sys.version_info.major}{sys.version_info.minor}.nbi"
    return any(next(folder.glob(pattern), None) is not None for folder in cache_folders())


def worth_loading(kernel: str, plain: float, load: float, compiling: float) -> bool:
    """Say whether a kernel, given as "file.function", is in memory or would be before other code is done.

    Parameters
    ----------
    kernel
        As for `on_disk`.
    plain
        The seconds that the other code takes.
    load, compiling
        The seconds until the kernel is there, from disk or from its source.
    """
    if f"{__name__}.{kernel.partition('.')[0]}" in sys.modules:
        return True
    return plain >= (load if on_disk(kernel) else compiling)


def newest_sources() -> dict[str, float]:
    """Return, for every module of this folder, when it or anything it imports from here was last changed."""
    changed: dict[str, float] = {}
    imports: dict[str, set[str]] = {}
    for source in FOLDER.glob("*.py"):
        changed[source.stem] = source.stat().st_mtime
        imports[source.stem] = set(re.findall(r"from markovia\.kernels\.(\w+) import", source.read_text()))
    for _ in changed:
        wider = {m: needed.union(*(imports.get(n, set()) for n in needed)) for m, needed in imports.items()}
        if wider == imports:
            break
        imports = wider
    return {m: max([at, *(changed.get(n, 0.0) for n in imports[m])]) for m, at in changed.items()}


def _remove_stale() -> None:
    with suppress(OSError):
        newest = max(source.stat().st_mtime for source in FOLDER.glob("*.py"))
        for folder in cache_folders():
            found = [*folder.glob("*.nbi"), *folder.glob("*.nbc")]
            if all(file.stat().st_mtime >= newest for file in found):
                continue
            sources = newest_sources()
            for file in found:
                with suppress(OSError):
                    if file.stat().st_mtime < sources.get(file.name.partition(".")[0], newest):
                        file.unlink()


_remove_stale()
