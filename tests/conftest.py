"""Shared test settings: no deadline for property tests, the same examples each time, Ctrl-C as in a terminal."""

import gc
import os
import signal
from pathlib import Path
from typing import Any

# samplers in tests run for a second and compile for ten: machine code of the plainest kind is there sooner
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)
# machine code of samplers is kept in the checkout, not in the user's cache folder
os.environ.setdefault("MARKOVIA_CACHE", str(Path(__file__).parents[1] / ".cache"))
if os.environ.get("PYTEST_XDIST_WORKER"):
    # workers share the processors, where threads of linear algebra would wait for each other; NumPy reads this once
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import matplotlib as mpl
import pytest
from hypothesis import settings

mpl.use("Agg")
EXAMPLES = 12
"""How many examples a property is tried on by `make test`; `make test-all` tries as many as it says, others each time."""
settings.register_profile("markovia", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile("markovia")


def pytest_configure() -> None:
    """A background job (`nohup make test`) starts with Ctrl-C ignored; the tests that press it need Python's handler."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Try properties on few examples, unless all tests are run."""
    if settings.get_current_profile_name() != "markovia":
        return
    for item in items:
        test: Any = getattr(item, "obj", None)
        test = getattr(test, "__func__", test)
        said = getattr(test, "_hypothesis_internal_use_settings", None)
        if said is not None and said.max_examples > EXAMPLES:
            test._hypothesis_internal_use_settings = settings(said, max_examples=EXAMPLES)


def pytest_collection_finish() -> None:
    """Seventeen thousand tests stay to the end: no search for garbage need walk through them again."""
    gc.collect()
    gc.freeze()
