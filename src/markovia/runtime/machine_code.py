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
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, Protocol

from markovia.runtime.clock import standing_still
from markovia.runtime.double_precision import is_x64
from markovia.runtime.libraries import jax, jnp

MOST_KEPT = 128
MOST_FILES = 256
PLAIN: dict[str, str | bool] = {
    "xla_backend_optimization_level": "0",
    "xla_llvm_disable_expensive_passes": True,
}
ROOT = Path(__file__).parents[1]
TRACE_NOTHING = ("kernels", "graphs", "io", "plotting", "cli")
"""Folders below `ROOT` with no function that JAX traces."""
_kept: OrderedDict[Hashable, Callable[..., Any]] = OrderedDict()
_lock = Lock()


class Keyed(Protocol):
    """What compiled code is about: a density, or other functions with a key."""

    @property
    def key(self) -> Hashable:
        """Equal keys and equal shapes mean the same functions."""


class MachineCodeKey(NamedTuple):
    """A key by itself: a digest of functions, or any object for code that this process alone may use again."""

    key: Hashable


def compiled(
    density: Keyed,
    name: str,
    settings: Hashable,
    function: Callable[..., Any],
    *args: Any,
    once: bool = False,
) -> Callable[..., Any]:
    """Return a function compiled for arguments of the shapes of these, in the precision and for the device set now.

    Parameters
    ----------
    density
        What the function is about: its key is part of the name that the code is kept under.
    name, settings
        What else tells this function from others of the same density.
    function
        Pure; traced only if nothing is kept. What it returns is of arrays, tuples and dictionaries.
    args
        Arguments of the right shapes and types, or such as `jax.eval_shape` gives.
    once
        Whether it runs once a question, so that compiling it sooner is worth more than faster code.
    """
    leaves, tree = jax.tree.flatten(args)

    # kept code takes bare arrays: trees of modules that are read back from a file cannot be put together again
    def flat(*leaves: Any) -> Any:
        return function(*jax.tree.unflatten(tree, leaves))

    shapes = tuple([(tuple(leaf.shape), str(leaf.dtype)) for leaf in leaves])
    config: Any = jax.config
    device = str(config.jax_default_device or jax.default_backend())
    key = (name, density.key, settings, str(tree), shapes, is_x64(), device)
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    with standing_still():
        file = _file(key) if isinstance(density.key, str) else None
        found = _load(file) if file else None
        if found is None:
            found = jax.jit(flat).lower(*leaves).compile(compiler_options=PLAIN if once else None)
            if file:
                _store(file, found)
    code = found

    def run(*args: Any) -> Any:
        return code(*jax.tree.leaves(args))

    with _lock:
        _kept[key] = run
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return run


@cache
def _folder() -> Path | None:
    """Return where machine code is kept; None where that is declined."""
    chosen = os.environ.get("MARKOVIA_CACHE")
    if chosen:
        return None if chosen.lower() in ("off", "0") else Path(chosen) / "samplers"
    base = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or Path.home() / ".cache"
    return Path(base) / "markovia" / "samplers"


def version(package: str) -> str:
    """Return the installed version of a package; how to look is imported only now, which takes its time."""
    from importlib.metadata import version as installed

    return installed(package)


@cache
def _machine() -> str:
    """Return what machine code depends on besides the model: versions, and the processor with its instructions."""
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
