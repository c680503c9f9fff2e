"""Compiled inner loops on flat arrays: Numba, monomorphic, cached on disk, free of the interpreter lock.

Nothing here is imported by `import markovia`; an engine loads a kernel module when it first needs it.

Numba looks only at a kernel's own file when it decides whether compiled code on disk is still good, but kernels call
kernels of other files. So compiled code that is older than its source, or than any file its source imports from this
folder, is removed here first.
"""

import os
import re
from contextlib import suppress
from pathlib import Path

FOLDER = Path(__file__).parent


def cache_folders() -> list[Path]:
    """Return the folders where compiled kernels may lie: beside the sources, or below `NUMBA_CACHE_DIR`."""
    elsewhere = os.environ.get("NUMBA_CACHE_DIR")
    if elsewhere:
        return [p for p in Path(elsewhere).glob("*kernels*") if p.is_dir()]
    return [FOLDER / "__pycache__"]


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
