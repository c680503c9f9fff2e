"""The processor and the GPU: what is there, why not, and what happens when it fails.

A GPU is used through CuPy (`markovia[gpu]`), which compiles the sources in `markovia/kernels/cuda` when they are first
needed and keeps them on disk. Nothing is loaded before somebody asks for the GPU or for what there is, and nothing raises
where there is none: `gpu()` is None then, and `why_not()` says why in one sentence. Errors of the driver, of its compiler
and of its memory become `DeviceFailure`, after which the processor answers (`on_device`).
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from markovia.errors import DeviceWarning, warn_user
from markovia.runtime.libraries import cp
from markovia.runtime.memory_budget import readable

T = TypeVar("T")
Device: TypeAlias = Literal["cpu", "gpu"]
SOURCES = Path(__file__).parent.parent / "kernels" / "cuda"
_said: set[str] = set()


class Gpu(NamedTuple):
    """The GPU that is used: its name, and the bytes of its memory."""

    name: str
    memory: int

    @property
    def free(self) -> int:
        """Bytes that are free now, those included that CuPy holds for later use."""
        with guarded():
            return int(cp.cuda.runtime.memGetInfo()[0] + cp.get_default_memory_pool().free_bytes())

    def __str__(self) -> str:
        return f"{self.name} with {readable(self.memory)}"


class DeviceFailure(RuntimeError):
    """The GPU's driver, compiler or memory failed; the processor can still answer."""


def gpu() -> Gpu | None:
    """Return the GPU that CuPy sees first, None where there is none.

    Examples
    --------
    >>> found = gpu()
    >>> found is None or found.memory > 0
    True
    """
    return _looked()[0]


def why_not() -> str:
    """Return one sentence on why there is no GPU to use; nothing where there is one.

    Examples
    --------
    >>> (gpu() is None) == bool(why_not())
    True
    """
    return _looked()[1]


@cache
def _looked() -> tuple[Gpu | None, str]:
    if find_spec("cupy") is None:
        return None, "CuPy is not installed: pip install 'markovia[gpu]'"
    try:
        told = cp.cuda.runtime.getDeviceProperties(cp.cuda.Device().id)
        return Gpu(told["name"].decode(), int(told["totalGlobalMem"])), ""
    except (
        Exception
    ) as error:  # a driver that is missing or too old fails in many ways, also while CuPy is imported
        return None, f"CuPy is installed, but there is no GPU that it can use ({_first_line(error)})"


@contextmanager
def guarded() -> Iterator[None]:
    """Turn errors of CuPy and of CUDA into `DeviceFailure`."""
    try:
        yield
    except (KeyboardInterrupt, DeviceFailure):
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] in ("cupy", "cupy_backends"):
            raise DeviceFailure(f"the GPU failed ({_first_line(error)})") from error
        raise


@cache
def cuda_module(name: str, defines: Sequence[str] = ()) -> Any:
    """Return the compiled functions of `kernels/cuda/<name>.cu`; CuPy keeps them on disk for later processes."""
    with guarded():
        text = (SOURCES / f"{name}.cu").read_text(encoding="utf-8")
        return cp.RawModule(code=text, options=("--std=c++17", *[f"-D{d}" for d in defines]))


def free_memory() -> None:
    """Give the GPU's memory back that CuPy holds for later use, if it is in use at all."""
    if "cupy" in sys.modules and gpu() is not None:
        with guarded():
            cp.get_default_memory_pool().free_all_blocks()


def on_device(work: Callable[[], T], instead: Callable[[], T]) -> T:
    """Run `work` on the GPU; where it fails, say so once and run `instead` on the processor.

    Examples
    --------
    >>> on_device(lambda: 1, lambda: 2)
    1
    """
    try:
        with guarded():
            return work()
    except DeviceFailure as failure:
        say_instead(f"{failure}; the processor answers")
    return instead()


def say_instead(sentence: str) -> None:
    """Warn, once a process, that the processor answers in place of the GPU."""
    if sentence not in _said:
        _said.add(sentence)
        warn_user(sentence, DeviceWarning)


def usable_gpu() -> Gpu | None:
    """Return the GPU for somebody who asked for it; where there is none, say once that the processor answers."""
    found = gpu()
    if found is None:
        say_instead(f'device="gpu": {why_not()}; the processor answers')
    return found


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
