"""Shared test settings: property tests have no deadline, and continuous integration replays the same examples."""

import os

if os.environ.get("PYTEST_XDIST_WORKER"):
    # workers share the processors, where threads of linear algebra would wait for each other; NumPy reads this once
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import matplotlib as mpl
from hypothesis import settings

mpl.use("Agg")
settings.register_profile("markovia", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("markovia")
