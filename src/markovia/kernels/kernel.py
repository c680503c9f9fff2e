"""The decorators that make a function a kernel: `kernel` for what Python calls, `inner` for what only kernels call.

Both are Numba's `njit` without the interpreter lock and with NumPy's way of dividing by zero. A kernel is kept on disk
(`compiled_code`); an inner function is not, and has no wrappers for callers from Python: it lives on in the kernels
that call it, and is optimised and turned into machine code only there. So is a kernel that another kernel calls. Clocks
stand still while code is compiled or loaded, so that waiting is never charged to a time limit, an estimate or a choice, and
a line says so when something is compiled for the first time.

A bare function (`bare=True`) takes half as long to compile: no reference counts, so it must not allocate or slice, and only
the passes that plain loops need, so every variable keeps one type (an argument may become a pointer in the first lines,
before any branch or loop) and there are no closures or comprehensions. It is best written on `markovia.kernels.pointers`.
"""

from collections.abc import Callable
from typing import Any

from markovia.runtime import clock

with clock.standing_still():
    from numba import njit, version_info
    from numba.core import event
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
    from numba.core.runtime import rtsys

from markovia.kernels import ROOMS
from markovia.kernels.compiled_code import digest, folder_of, remove_stale
from markovia.runtime.progress import say_once

KNOWN = ((0, 68), (0, 68))
"""The oldest and the newest Numba that `part_compiler` is tested with; others compile all functions as usual."""


def kernel(function: Callable[..., Any] | None = None, *, bare: bool = False, **options: Any) -> Any:
    """Compile a function when it is first called, and keep the code on disk."""
    if function is None:
        return lambda found: kernel(found, bare=bare, **options)
    made = njit(**_options(bare, False), **options)(function)
    if hasattr(made, "enable_caching"):  # not with NUMBA_DISABLE_JIT
        made._cache = _Cache(function)
        part = inner(function, bare=bare, **options)  # what other kernels call
        made.get_call_template, made.get_overload = part.get_call_template, part.get_overload
    return made


def inner(function: Callable[..., Any] | None = None, *, bare: bool = False, **options: Any) -> Any:
    """Compile a function as a part of the kernels that call it; Python cannot call it."""
    if function is None:
        return lambda found: inner(found, bare=bare, **options)
    return njit(**_options(bare, True), no_cpython_wrapper=True, **options)(function)


def _options(bare: bool, part: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
    if bare:
        found["_nrt"] = False
    if KNOWN[0] <= version_info[:2] <= KNOWN[1]:
        from markovia.kernels import part_compiler as compilers

        plain = compilers.PartCompiler if part else compilers.WholeCompiler
        stripped = compilers.BarePartCompiler if part else compilers.BareCompiler
        found["pipeline_class"] = stripped if bare else plain
    return found


class _Locator(_CacheLocator):  # type: ignore[misc]
    """Tells Numba where the code of a function lies and what it was compiled from."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._module = function.__module__
        self._line = function.__code__.co_firstlineno
        self._py_file = function.__code__.co_filename

    def get_cache_path(self) -> str:
        return str(folder_of(self._module))

    def get_source_stamp(self) -> str:
        return digest(self._module)

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        if not folder_of(self._module).exists():
            remove_stale(self._module)
            super().ensure_cache_path()

    @classmethod
    def from_function(cls, py_func: Callable[..., Any], py_file: str) -> "_Locator":
        return cls(py_func)


class _Results(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _Cache(FunctionCache):  # type: ignore[misc]
    _impl_class = _Results

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Load code without Numba's knowledge of how to compile, which takes half a second; compiling loads it anyway."""
        if not KNOWN[0] <= version_info[:2] <= KNOWN[1]:
            return super().load_overload(sig, target_context)
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)


class _StandStill(event.Listener):  # type: ignore[misc]
    """Stops the clocks while Numba compiles or loads."""

    def on_start(self, found: Any) -> None:
        clock.stand_still()

    def on_end(self, found: Any) -> None:
        clock.go_on()


class _Say(event.Listener):  # type: ignore[misc]
    """Says what is compiled, once for each room of kernels."""

    def on_start(self, found: Any) -> None:
        module = found.data["dispatcher"].py_func.__module__
        if module.startswith("markovia.kernels."):
            what, seconds = ROOMS.get(module.split(".")[2], ("a kernel", 1))
            say_once(f"compiling {what}, once an installation, about {seconds} s")

    def on_end(self, found: Any) -> None:
        pass


event.register("numba:compiler_lock", _StandStill())
event.register("numba:compile", _Say())
