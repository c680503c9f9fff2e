"""Compiles an inner function only so far that the kernels which call it can take it in.

Numba optimises every function and turns it into machine code, and does both again for all that a kernel links in. An inner
function is called from nowhere else, so here the first time is left out: its code is handed on as it was written down. This
leans on Numba's own classes, which may change between its releases; `kernel.KNOWN` says for which it is used.

Bare functions, plain loops on numbers and pointers, need only a few of Numba's passes.

At each use of an operator Numba tries all that it is overloaded for, a quarter of the time of compiling; here what an
operator came to for the same types is remembered.
"""

from typing import Any

from numba import _dynfunc, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import PassManager, register_pass
from numba.core.typed_passes import AnnotateTypes, NativeLowering, NoPythonBackend, NopythonTypeInference
from numba.core.untyped_passes import FixupArgs, IRProcessing, TranslateByteCode


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


_PLAIN = (types.Number, types.Boolean, types.CPointer, types.Array)
_signatures: dict[tuple[Any, ...], Any] = {}
_resolve = types.Function.get_call_type


def _remembered(function: Any, context: Any, arguments: Any, keywords: Any) -> Any:
    if keywords or not all(isinstance(types.unliteral(a), _PLAIN) for a in arguments):
        return _resolve(function, context, arguments, keywords)
    key = (function, *arguments)
    if key not in _signatures:
        _signatures[key] = _resolve(function, context, arguments, keywords)
    return _signatures[key]


class _Remembering(CompilerBase):  # type: ignore[misc]
    """Remembers the signatures of operators, while Numba holds its lock on compiling."""

    def compile_extra(self, func: Any) -> Any:
        before, types.Function.get_call_type = types.Function.get_call_type, _remembered
        try:
            return super().compile_extra(func)
        finally:
            types.Function.get_call_type = before


class WholeCompiler(_Remembering, Compiler):  # type: ignore[misc]
    """Numba's own passes."""


class PartCompiler(_Remembering):
    """Numba's own passes, but for the last."""

    def define_pipelines(self) -> list[Any]:
        """Return the passes."""
        found = DefaultPassBuilder.define_nopython_pipeline(self.state)
        found.passes = [(_PartLowering if p is NativeLowering else p, about) for p, about in found.passes]
        found.finalize()
        return [found]


class BareCompiler(_Remembering):
    """The passes that a bare function needs."""

    lowering = NativeLowering

    def define_pipelines(self) -> list[Any]:
        """Return the passes."""
        found = PassManager("bare")
        for step in (TranslateByteCode, FixupArgs, IRProcessing, NopythonTypeInference, AnnotateTypes):
            found.add_pass(step, step.__name__)
        found.add_pass(self.lowering, "native lowering")
        found.add_pass(NoPythonBackend, "nopython mode backend")
        found.finalize()
        return [found]


class BarePartCompiler(BareCompiler):
    """The passes that a bare inner function needs."""

    lowering = _PartLowering
