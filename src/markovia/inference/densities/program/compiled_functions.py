"""Compiled JAX functions that are kept: in memory for the next question, on disk for the next process.

Compiling a sampler takes many times longer than running it. A function is compiled for the shapes of its arguments, data
among them, and kept under the key of its density, so new data of the same shape compile nothing. Where that key is a string
(a digest that means the same in every process), the machine code itself is also written to the user's cache folder, and
the next process neither traces nor compiles; `MARKOVIA_CACHE=off` declines that, any other value names another folder.
"""

import hashlib
import os
import pickle
import platform
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Hashable
from functools import cache
from importlib.metadata import version
from math import prod
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from markovia.inference.densities.program.density import Density
from markovia.inference.densities.program.random_keys import random_keys
from markovia.runtime.array_types import Array
from markovia.runtime.clock import standing_still

MOST_KEPT = 128
MOST_FILES = 256
CHUNK, FEW = 1024, 8
MOST_CELLS = 2**27
PLAIN: dict[str, str | bool] = {
    "xla_backend_optimization_level": "0",
    "xla_llvm_disable_expensive_passes": True,
}
ROOT = Path(__file__).parents[2]
TRACE_NOTHING = ("kernels", "graphs", "io", "plotting", "cli")
"""Folders below `ROOT` with no function that JAX traces."""
_kept: OrderedDict[Hashable, Callable[..., Any]] = OrderedDict()
_lock = Lock()


class Keyed(Protocol):
    """What compiled code is about: a density, or other functions with a key."""

    @property
    def key(self) -> Hashable:
        """Equal keys and equal shapes mean the same functions."""


def compiled(
    density: Keyed,
    name: str,
    settings: Hashable,
    function: Callable[..., Any],
    *args: Any,
    once: bool = False,
) -> Callable[..., Any]:
    """Return a function compiled for arguments of the shapes of these; call inside `x64()`.

    Parameters
    ----------
    density
        What the function is about: its key is part of the name that the code is kept under.
    name, settings
        What else tells this function from others of the same density.
    function
        Pure; traced only if nothing is kept.
    args
        Arguments of the right shapes and types, or such as `jax.eval_shape` gives.
    once
        Whether it runs once a question, so that compiling it sooner is worth more than faster code.
    """
    import jax

    leaves, tree = jax.tree.flatten(args)
    shapes = tuple([(tuple(leaf.shape), str(leaf.dtype)) for leaf in leaves])
    key = (name, density.key, settings, str(tree), shapes, jax.default_backend())
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    with standing_still():
        file = _file(key) if isinstance(density.key, str) else None
        found = _load(file) if file else None
        if found is None:
            found = jax.jit(function).lower(*args).compile(compiler_options=PLAIN if once else None)
            if file:
                _store(file, found)
    with _lock:
        _kept[key] = found
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return found


def constrained(density: Density, points: Array) -> dict[str, Array]:
    """Return all quantities by name at unconstrained points; the points' leading axes come first."""
    found: dict[str, Array] = at_points(
        density, "constrain", lambda key, u, data: density.constrain(u, data), points
    )
    return found


def at_points(density: Density, name: str, function: Callable[..., Any], points: Array, seed: int = 0) -> Any:
    """Return a function's values at unconstrained points, a tree of arrays; the points' leading axes come first.

    Parameters
    ----------
    density, name
        What the compiled function is kept under.
    function
        `(key, u, data) -> tree of arrays`.
    points
        Vectors along the last axis.
    seed
        What random keys are made from, one a point.
    """
    import jax
    import numpy as np

    from markovia.runtime.double_precision import x64

    lead = points.shape[:-1]
    rows = points.reshape(prod(lead), density.size)
    with x64():
        data = as_data(density)
        cells = sum(leaf.size for leaf in jax.tree.leaves(data))
        chunk = CHUNK if len(rows) > FEW and cells * CHUNK < MOST_CELLS else FEW
        keys = random_keys(seed, -(-len(rows) // chunk) * chunk)
        like = np.zeros((chunk, density.size))
        every = compiled(density, name, chunk, jax.vmap(function, (0, 0, None)), keys[:chunk], like, data)
        parts = []
        for at in range(0, len(rows), chunk):
            # the last part is filled up with repetitions
            part = np.resize(rows[at : at + chunk], (chunk, density.size))
            found = every(keys[at : at + chunk], part, data)
            left = len(rows) - at
            parts.append(jax.tree.map(lambda v, left=left: np.asarray(v)[:left], found))
    whole = jax.tree.map(lambda *v: np.concatenate(v), *parts)
    return jax.tree.map(lambda v: v.reshape(*lead, *v.shape[1:]), whole)


def as_data(density: Density) -> Any:
    """Return the data of a density as JAX arrays; call inside `x64()`."""
    import jax

    return jax.tree.map(jax.numpy.asarray, density.data)


@cache
def _folder() -> Path | None:
    """Return where machine code is kept; None where that is declined."""
    chosen = os.environ.get("MARKOVIA_CACHE")
    if chosen:
        return None if chosen.lower() in ("off", "0") else Path(chosen) / "samplers"
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(base) / "markovia" / "samplers"


@cache
def _machine() -> str:
    """Return what machine code depends on besides the model: versions, and the processor with its instructions."""
    import jax

    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        processor = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        processor = platform.processor()
    device = jax.devices()[0]
    flags = os.environ.get("XLA_FLAGS", "")
    versions = [
        *map(version, ("markovia", "jax", "jaxlib", "numpyro", "optax", "equinox")),
        device.client.platform_version,
    ]
    return repr((versions, device.device_kind, jax.device_count(), platform.machine(), processor, flags))


def _file(key: Hashable) -> Path | None:
    folder = _folder()
    if folder is None:
        return None
    digest = hashlib.sha256(f"{_machine()}\0{_sources()}\0{key!r}".encode()).hexdigest()
    return folder / f"{digest[:32]}.bin"


@cache
def _sources(root: Path = ROOT) -> str:
    """Return a digest of markovia's own text: a function that JAX traces may be written in any layer.

    Layers that trace nothing are left out by name, so that a new one counts. Eight megabytes take a hundredth of a second.
    """
    total = hashlib.sha256()
    for folder in sorted(root.iterdir()):
        if folder.is_dir() and folder.name not in TRACE_NOTHING:
            for file in sorted(folder.rglob("*.py")):
                total.update(f"{file.relative_to(root).as_posix()}\0".encode() + file.read_bytes())
    return total.hexdigest()


def _load(file: Path) -> Callable[..., Any] | None:
    try:
        payload = file.read_bytes()
    except OSError:
        return None
    try:
        from jax.experimental.serialize_executable import deserialize_and_load

        if b"lapack" in payload or b"solver" in payload:
            _linear_algebra()
        found: Callable[..., Any] = deserialize_and_load(*pickle.loads(payload))
        os.utime(file)
    except Exception:  # a file that another version or machine wrote, or that was cut off: compile again
        return None
    return found


@cache
def _linear_algebra() -> None:
    """Have JAX set up linear algebra, which it does when it lowers a call of it: loaded code has been lowered elsewhere."""
    import jax
    import jax.numpy as jnp

    jax.jit(jnp.linalg.cholesky).lower(jnp.eye(1))


def _store(file: Path, found: Any) -> None:
    """Write machine code, where that is possible; the oldest files make room."""
    try:
        from jax.experimental.serialize_executable import serialize

        payload = pickle.dumps(serialize(found))
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, temporary = tempfile.mkstemp(dir=file.parent)
        with os.fdopen(handle, "wb") as out:
            out.write(payload)
        os.replace(temporary, file)
        files = sorted(file.parent.glob("*.bin"), key=lambda f: f.stat().st_mtime)
        for old in files[:-MOST_FILES]:
            old.unlink(missing_ok=True)
    except (
        Exception
    ):  # a full or read-only disk, or a device whose code cannot be written: the answer is there all the same
        return
