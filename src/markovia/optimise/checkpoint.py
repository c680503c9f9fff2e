"""The file that a long run goes on from: arrays and a few words about them, written whole or not at all, without pickle.

Samplers, ascents and training share it. What is in the file is what the run had at the end of some step, so that a run
that was killed and starts again with the same file ends with the numbers of one that was not. A digest of data and settings
tells the file of one run from that of another.
"""

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.clock import now
from markovia.runtime.libraries import jax
from markovia.runtime.whole_files import write_whole

EVERY = 30.0
"""Seconds between two writings of a file while work goes on."""
ABOUT = "about"


class SavedRun(NamedTuple):
    """What a file holds: arrays by name, and plain values (numbers, texts, lists and dictionaries of them)."""

    arrays: dict[str, Array]
    values: dict[str, Any]


class Checkpoint:
    """The file of one run; without a path nothing is read or written.

    Parameters
    ----------
    path
        The file, or None.
    digest
        What run it is (see `digest_of`); a file with another digest is refused.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> file = Path(mkdtemp()) / "run.npz"
    >>> Checkpoint(file, "gibbs, 3 groups").write({"place": np.arange(3.0)}, {"sweeps": 7})
    >>> arrays, values = Checkpoint(file, "gibbs, 3 groups").read()
    >>> arrays["place"].tolist(), values
    ([0.0, 1.0, 2.0], {'sweeps': 7})
    >>> Checkpoint(None).read() is None
    True
    """

    def __init__(self, path: str | os.PathLike[str] | None, digest: str = "") -> None:
        self.path = None if path is None else Path(path)
        self.digest = digest
        self._written = now()
        if self.path is not None and not self.path.resolve().parent.is_dir():
            raise InvalidArgument(
                f"checkpoint= {str(path)!r} is in a folder that is not there; make it first"
            )

    def due(self) -> bool:
        """Say whether the file should be written again: there is one, and the last writing is some time ago."""
        return self.path is not None and now() - self._written >= EVERY

    def read(self) -> SavedRun | None:
        """Return what the file holds; None where there is no file yet.

        Raises
        ------
        InvalidArgument
            If it is no checkpoint, or that of a run with another digest.
        """
        if self.path is None or not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                values = json.loads(str(file[ABOUT]))
                arrays = {name[1:]: file[name] for name in file.files if name != ABOUT}
            digest = values.pop("digest")
        except Exception as error:  # whatever a file that somebody else wrote may hold
            raise InvalidArgument(f"checkpoint= {str(self.path)!r} is no checkpoint: {error}") from None
        if digest != self.digest:
            raise InvalidArgument(
                f"checkpoint= {str(self.path)!r} belongs to another run, of other data or settings; name another file, "
                "or remove it to begin anew"
            )
        return SavedRun(arrays, values)

    def write(self, arrays: Mapping[str, Any], values: Mapping[str, Any] | None = None) -> None:
        """Put arrays and plain values in the place of what the file held."""
        if self.path is None:
            return
        about = np.array(json.dumps({**(values or {}), "digest": self.digest}))
        held: dict[str, Any] = {f"_{name}": np.asarray(x) for name, x in arrays.items()}
        out = BytesIO()
        np.savez(out, allow_pickle=False, **{ABOUT: about}, **held)
        write_whole(self.path, out.getvalue())
        self._written = now()


def packed(name: str, tree: Any) -> dict[str, Array]:
    """Return the arrays of a JAX tree under names that `unpacked` finds again."""
    return {f"{name}.{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(tree))}


def unpacked(name: str, arrays: Mapping[str, Array], like: Any) -> Any:
    """Return a JAX tree of the structure of another, with the arrays that `packed` gave, NumPy's where that has NumPy's.

    Examples
    --------
    >>> tree = {"b": np.ones(2), "a": (np.zeros(1), 3.0)}
    >>> unpacked("state", packed("state", tree), tree)["a"][1].item()
    3.0
    """

    def restored(i: int, leaf: Any) -> Any:
        stored = arrays[f"{name}.{i}"]
        if isinstance(leaf, jax.Array):
            return jax.numpy.asarray(stored)
        # a number stays one, with all its digits
        return stored if isinstance(leaf, np.ndarray) else stored[()]

    leaves = [restored(i, leaf) for i, leaf in enumerate(jax.tree.leaves(like))]
    return jax.tree.unflatten(jax.tree.structure(like), leaves)


def digest_of(*parts: Any) -> str:
    """Return a short text that differs for different data and settings.

    Examples
    --------
    >>> digest_of(np.arange(3), "gibbs") == digest_of(np.arange(3), "gibbs")
    True
    >>> digest_of(np.arange(3)) == digest_of(np.arange(4))
    False
    """
    total = sha256()
    for part in parts:
        array = np.asarray(part) if hasattr(part, "__array__") else None
        if array is not None and array.dtype != object:
            total.update(f"{array.dtype}{array.shape}".encode())
            total.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        else:
            total.update(repr(part).encode())
    return total.hexdigest()[:16]
