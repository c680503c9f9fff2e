"""The names that `markovia.inference` hands out, each with its home."""

from markovia.inference.local_search.icm import (
    ConditionalModes as ConditionalModes,
    iterated_conditional_modes as iterated_conditional_modes,
)
from markovia.inference.problem import Problem as Problem
