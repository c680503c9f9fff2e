"""Shared test settings: property tests have no deadline, and continuous integration replays the same examples."""

import os

import matplotlib as mpl
from hypothesis import settings

mpl.use("Agg")
settings.register_profile("markovia", deadline=None, derandomize=bool(os.environ.get("CI")))
settings.load_profile("markovia")
