"""Files that are written whole or not at all."""

import os
import tempfile
from contextlib import suppress
from errno import ENOENT
from pathlib import Path


def write_whole(path: Path, data: bytes, *, private: bool = False) -> None:
    """Put the data into a temporary file next to the target and rename it over the target.

    Parameters
    ----------
    path
        The target; a link is followed, and a pipe or device gets the data itself.
    data
        What is written.
    private
        Whether only the user may read it; by default a file keeps its permissions, and a new one gets the usual.

    Examples
    --------
    >>> file = Path(tempfile.mkdtemp()) / "note.txt"
    >>> write_whole(file, b"all of it")
    >>> file.read_bytes()
    b'all of it'
    """
    if path.exists() and not path.is_file():
        # renaming would put a file in the place of the pipe or device instead of sending it the data
        path.write_bytes(data)
        return
    target = path.resolve() if path.is_symlink() else path
    if not target.parent.is_dir():
        raise FileNotFoundError(ENOENT, "no such folder to save in", str(target.parent))
    handle, temporary = tempfile.mkstemp(prefix=".markovia-", suffix=".part", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, 0o600 if private else _mode_of(target))
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _mode_of(target: Path) -> int:
    """Return the permissions the file has, or those a new file gets."""
    with suppress(OSError):
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
