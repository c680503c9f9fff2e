"""CUDA kernels without a GPU, for tests: the sources are compiled as C++, and NumPy stands in for CuPy.

`cuda_on_processor.hpp` says how blocks and threads run. While `stand_in()` is open, a small CuPy is in place, whose arrays
lie in the memory of the processor: whatever asks for the GPU finds one. New memory is filled with not-a-number, so that
what a kernel did not write shows. `compiled(name, defines)` gives one file's kernels alone.

    @needs_compiler
    def test_doubling():
        with stand_in():
            ...
"""

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import sys
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from pathlib import Path
from tempfile import mkstemp
from types import ModuleType, SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest

from markovia.runtime import devices

HEADER = Path(__file__).parent / "cuda_on_processor.hpp"
KEPT = Path(__file__).parents[1] / ".cache" / "cuda_on_processor"
COMPILER = shutil.which(os.environ.get("CXX", "g++"))
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler")
MEMORY = 1 << 30
"""Bytes of the GPU that is not there."""

_KERNEL = re.compile(r"KERNEL_MARK\s+void\s+(\w+)\s*\(")
_SHARED = re.compile(r"extern\s+__shared__\s+(?:__align__\(\d+\)\s*)?([\w ]+?)\s+(\w+)\s*\[\s*\]\s*;")
_BARRIERS = re.compile(r"__sync|__shfl|__ballot|__any_|__all_|__reduce")


def compile_source(text, options=()):
    """Compile CUDA source for the processor and return a library whose `launch_<kernel>` starts a kernel."""
    defines = [o for o in options if o.startswith("-D")]
    text = _SHARED.sub(r"\1* \2 = static_cast<\1*>(processor::dynamic_shared());", text)
    key = hashlib.sha256("\0".join([text, *defines, HEADER.read_text()]).encode()).hexdigest()[:20]
    library = KEPT / f"{key}.so"
    if not library.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        # the kernels by name, those included that macros make
        shown = _run(
            [
                COMPILER,
                "-E",
                "-P",
                "-x",
                "c++",
                "-D__global__=KERNEL_MARK",
                "-D__launch_bounds__(...)=",
                *defines,
                "-",
            ],
            text,
        )
        names = dict.fromkeys(_KERNEL.findall(shown))
        apart = "true" if _BARRIERS.search(text) else "false"
        starts = "\n".join(
            f'extern "C" int launch_{n}(const unsigned* dims, size_t shared, void** arguments)'
            f"{{ if (arguments) processor::start({n}, dims, shared, {apart}, arguments); return processor::arity({n}); }}"
            for n in names
        )
        made, unfinished = mkstemp(dir=KEPT, suffix=".so")
        os.close(made)
        flags = ["-std=c++17", "-O0", "-fno-fast-math", "-shared", "-fPIC", "-w", "-x", "c++"]
        _run([COMPILER, *flags, *defines, "-o", unfinished, "-"], f'#include "{HEADER}"\n{text}\n{starts}\n')
        os.replace(unfinished, library)
    return ctypes.CDLL(str(library))


def _run(command, text):
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    return done.stdout


class Module:
    """The kernels of a source, in place of `cupy.RawModule`."""

    def __init__(self, *, code, options=(), **_):
        self._library = compile_source(code, tuple(options))

    def get_function(self, name):
        return Kernel(name, getattr(self._library, f"launch_{name}"))


class Kernel:
    """A kernel, in place of `cupy.RawKernel`; `kernel.ptr` is what `cupy.cuda.driver.launchKernel` knows it by."""

    known: ClassVar[dict[Any, Any]] = {}

    def __init__(self, name, start):
        self.name, self._start = name, start
        self.known[id(self)] = self
        self.kernel = SimpleNamespace(ptr=id(self))

    def __call__(self, grid, block, args, *, shared_mem=0, **_):
        held = [_argument(a) for a in args]
        places = (ctypes.c_void_p * max(1, len(held)))(*(h.ctypes.data for h in held))
        assert len(held) == self._start(None, 0, None), f"{self.name} takes another number of arguments"
        self.launch((*grid, 1, 1)[:3], (*block, 1, 1)[:3], shared_mem, places)

    def launch(self, grid, block, shared, places):
        dims = np.array([*grid, *block])
        assert (dims > 0).all(), "a grid or a block of nothing"
        assert dims[3:].prod() <= 1024, "more than 1024 threads in a block"
        assert (dims[[1, 2]] < 65536).all(), "more than 65535 blocks along the second or third axis"
        assert shared <= 48 * 1024
        self._start((ctypes.c_uint * 6)(*map(int, dims)), ctypes.c_size_t(shared), places)


def _launch(ptr, gx, gy, gz, bx, by, bz, shared, stream, arguments, extra):
    Kernel.known[ptr].launch((gx, gy, gz), (bx, by, bz), shared, ctypes.c_void_p(arguments))


def compiled(name, defines=()):
    """Return the kernels of `kernels/cuda/<name>.cu`: `compiled(...).get_function(name)(grid, block, arguments)`."""
    text = (devices.SOURCES / f"{name}.cu").read_text(encoding="utf-8")
    return Module(code=text, options=tuple(f"-D{d}" for d in defines))


def _argument(given):
    """Return an array whose bytes are an argument: an address, a number, or a record."""
    if isinstance(given, DeviceArray):
        assert given.flags.c_contiguous or given.flags.f_contiguous
        return np.array([given.ctypes.data], dtype=np.uint64)
    if isinstance(given, Memory):
        return np.array([given.ptr], dtype=np.uint64)
    if isinstance(given, np.ndarray):
        assert given.size == 1, "CuPy takes a record of NumPy, not an array"
        return given
    assert isinstance(given, bool | int | float | np.generic), type(given)
    return np.array([given])


# -- CuPy, as far as it is used ----------------------------------------------------------------------------------


class DeviceArray(np.ndarray):
    """An array "on the GPU"."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data, mem=self)

    def get(self, **_):
        return np.array(self)

    def set(self, values, **_):
        self[...] = values


class Memory:
    """Memory "of the GPU", as `cupy.cuda.alloc` gives it."""

    def __init__(self, size):
        self.kept = np.full(size // 8 + 2, np.nan)
        self.ptr = self.kept.ctypes.data
        self.size = size

    def copy_from_host(self, place, size):
        ctypes.memmove(self.ptr, _address(place), size)

    copy_from_host_async = copy_from_host

    def copy_to_host(self, place, size):
        ctypes.memmove(_address(place), self.ptr, size)

    def memset(self, value, size):
        ctypes.memset(self.ptr, value, size)

    memset_async = memset


def _address(place):
    return getattr(place, "value", place)


def _shown(result):
    if isinstance(result, tuple):
        return tuple(map(_shown, result))
    if isinstance(result, np.generic):
        result = np.array(result)  # CuPy has no numbers, only arrays of them
    return result.view(DeviceArray) if type(result) is np.ndarray else result


def _poisoned(shape, dtype=float, **_):
    made = np.empty(shape, dtype).view(DeviceArray)
    if made.dtype.kind == "f":
        made.fill(np.nan)
    else:
        made.view(np.uint8).reshape(-1).fill(0x7B) if made.size else None
    return made


class _StandIn(ModuleType):
    """A module that does with NumPy what it does not know."""

    def __getattr__(self, name):
        found = getattr(np, name)
        if not callable(found) or isinstance(found, type):
            return found
        return lambda *a, **k: _shown(found(*a, **k))


class OutOfMemoryError(MemoryError):
    """In place of CuPy's."""


OutOfMemoryError.__module__ = "cupy.cuda.memory"


class _Stream:
    ptr = 0
    null: Any = None

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def synchronize(self):
        pass

    def record(self, *_):
        pass

    def use(self):
        return self


_Stream.null = _Stream()


def _copy(to, start, size, *_):
    ctypes.memmove(to, start, size)


def small_cupy():
    """Return a module to put in place of CuPy."""
    cp: Any = _StandIn("cupy")
    cp.__spec__ = ModuleSpec("cupy", None)
    cp.__version__ = "0"
    cp.ndarray = DeviceArray
    cp.empty = _poisoned
    cp.empty_like = lambda a, dtype=None, **_: _poisoned(a.shape, dtype or a.dtype)
    cp.asarray = lambda a, dtype=None, **_: a if _is_one(a, dtype) else _shown(np.array(a, dtype))
    cp.array = lambda a, dtype=None, **_: _shown(np.array(a, dtype))
    cp.ascontiguousarray = lambda a, dtype=None: _shown(np.ascontiguousarray(a, dtype))
    cp.asnumpy = lambda a, **_: np.array(a)
    cp.RawModule = Module
    cp.RawKernel = lambda code, name, options=(), **_: Module(code=code, options=options).get_function(name)
    pool = SimpleNamespace(
        free_bytes=lambda: 0,
        used_bytes=lambda: 0,
        total_bytes=lambda: 0,
        free_all_blocks=lambda: None,
        set_limit=lambda **_: None,
    )
    cp.get_default_memory_pool = cp.get_default_pinned_memory_pool = lambda: pool
    properties = {
        "name": b"a processor",
        "totalGlobalMem": MEMORY,
        "multiProcessorCount": 2,
        "major": 9,
        "minor": 0,
    }
    runtime = SimpleNamespace(
        getDeviceProperties=lambda _: properties,
        memGetInfo=lambda: (MEMORY, MEMORY),
        deviceSynchronize=lambda: None,
        getDevice=lambda: 0,
        memcpy=_copy,
        memcpyAsync=_copy,
        memset=lambda to, value, size: ctypes.memset(to, value, size),
        memsetAsync=lambda to, value, size, *_: ctypes.memset(to, value, size),
        memcpyHostToDevice=1,
        memcpyDeviceToHost=2,
        memcpyDeviceToDevice=3,
    )
    device = SimpleNamespace(
        id=0,
        attributes={"MultiProcessorCount": 2},
        synchronize=lambda: None,
        mem_info=(MEMORY, MEMORY),
        use=lambda: None,
    )
    cp.cuda = SimpleNamespace(
        runtime=runtime,
        Device=lambda *_: device,
        Stream=_Stream,
        Event=_Stream,
        get_current_stream=lambda: _Stream.null,
        driver=SimpleNamespace(launchKernel=_launch),
        alloc=Memory,
        memory=SimpleNamespace(OutOfMemoryError=OutOfMemoryError),
        get_elapsed_time=lambda *_: 0.0,
    )
    return cp


def _is_one(a, dtype):
    return isinstance(a, DeviceArray) and dtype in (None, a.dtype)


@contextmanager
def stand_in():
    """Put the small CuPy in place, and return it; afterwards nothing remembers it."""
    before, cp = sys.modules.get("cupy"), small_cupy()
    _forget()
    sys.modules["cupy"] = cp
    try:
        yield cp
    finally:
        del sys.modules["cupy"]
        if before is not None:
            sys.modules["cupy"] = before
        _forget()


def _forget():
    devices._looked.cache_clear()
    devices.cuda_module.cache_clear()
