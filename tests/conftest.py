"""Shared test settings: no deadline for property tests, the same examples each time, Ctrl-C as in a terminal."""

import os
import signal

# samplers in tests run for a second and compile for ten: machine code of the plainest kind is there sooner
os.environ.setdefault(
    "XLA_FLAGS", "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true"
)
if os.environ.get("PYTEST_XDIST_WORKER"):
    # workers share the processors, where threads of linear algebra would wait for each other; NumPy reads this once
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import matplotlib as mpl
from hypothesis import settings

mpl.use("Agg")
settings.register_profile("markovia", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)  # `make test-all`: other examples each time
settings.load_profile("markovia")


def pytest_configure() -> None:
    """A background job (`nohup make test`) starts with Ctrl-C ignored; the tests that press it need Python's handler."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
