"""The arrays that the library passes around, by name."""

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Codes: TypeAlias = NDArray[np.signedinteger[Any]]
"""Positions of states; -1 for a missing cell."""
