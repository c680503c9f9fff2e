"""The decorators that make a function a kernel: `kernel` for what Python calls, `inner` for what only kernels call.

Both are Numba's `njit` without the interpreter lock and with NumPy's way of dividing by zero. A kernel is kept on disk
(`compiled_code`); an inner function is not, and has no wrappers for callers from Python: it lives on in the kernels
that call it, and is optimised and turned into machine code only there. Clocks stand still while code is compiled or
loaded, so that waiting is never charged to a time limit, an estimate or a choice, and a line says so when something is
compiled for the first time.
"""

from collections.abc import Callable
from typing import Any

from markovia.runtime import clock

with clock.standing_still():
    from numba import _dynfunc, njit
    from numba.core import event
    from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
    from numba.core.compiler_machinery import register_pass
    from numba.core.typed_passes import NativeLowering

from markovia.kernels import ROOMS
from markovia.kernels.compiled_code import digest, folder_of, remove_stale
from markovia.runtime.progress import say_once


def kernel(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function when it is first called, and keep the code on disk."""
    if function is None:
        return lambda found: kernel(found, **options)
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **options}
    made = njit(**options)(function)
    if hasattr(made, "enable_caching"):  # not with NUMBA_DISABLE_JIT
        made._cache = _Cache(function)
    return made


def inner(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Compile a function as a part of the kernels that call it; Python cannot call it."""
    if function is None:
        return lambda found: inner(found, **options)
    options = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **options}
    return njit(no_cpython_wrapper=True, pipeline_class=_PartCompiler, **options)(function)


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """The code of an inner function: handed on as it was written down, for the kernel that calls it to optimise."""

    def add_llvm_module(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        self._final_module.link_in(ll_module)

    def finalize(self) -> None:
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class _PartLowering(NativeLowering):  # type: ignore[misc]
    """Writes an inner function down without making it executable."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        state.library = library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        library.enable_object_caching()
        state.flags.no_compile = True
        super().run_pass(state)
        made = state["cr"]
        name, module = made.fndesc.qualname.rpartition(".")[2], made.fndesc.lookup_module()
        entry = _dynfunc.make_function(module, name, "an inner function", 0, made.env, (library,))
        state.targetctx.insert_user_function(entry, made.fndesc, [library])
        state["cr"] = _LowerResult(made.fndesc, made.call_helper, cfunc=entry, env=made.env)
        return True


class _PartCompiler(CompilerBase):  # type: ignore[misc]
    """Numba's own passes, but for the last."""

    def define_pipelines(self) -> list[Any]:
        found = DefaultPassBuilder.define_nopython_pipeline(self.state)
        found.passes = [(_PartLowering if p is NativeLowering else p, about) for p, about in found.passes]
        found.finalize()
        return [found]


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
