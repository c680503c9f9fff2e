"""Compiled inner loops on flat arrays: Numba, monomorphic, cached on disk, free of the interpreter lock.

Nothing here is imported by `import markovia`; an engine loads a kernel module when it first needs it.

Numba looks only at a kernel's own file when it decides whether compiled code on disk is still good, but kernels call
kernels of other files. So compiled code that is older than any source file of this folder is removed here first.
"""

import os
from contextlib import suppress
from pathlib import Path

FOLDER = Path(__file__).parent


def cache_folders() -> list[Path]:
    """Return the folders where compiled kernels may lie: beside the sources, or below `NUMBA_CACHE_DIR`."""
    elsewhere = os.environ.get("NUMBA_CACHE_DIR")
    if elsewhere:
        return [p for p in Path(elsewhere).glob("*kernels*") if p.is_dir()]
    return [FOLDER / "__pycache__"]


def _remove_stale() -> None:
    with suppress(OSError):
        newest = max(source.stat().st_mtime for source in FOLDER.glob("*.py"))
        for folder in cache_folders():
            found = [*folder.glob("*.nbi"), *folder.glob("*.nbc")]
            if any(file.stat().st_mtime < newest for file in found):
                for file in found:
                    with suppress(OSError):
                        file.unlink()


_remove_stale()
