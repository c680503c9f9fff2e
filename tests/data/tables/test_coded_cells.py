"""Cells as positions: Python objects that many rows share."""

import numpy as np
import pytest

from markovia.data.tables.coded_cells import SHARED_OBJECTS, objects


@pytest.mark.parametrize("late", [0, 1, 3])
def test_objects_that_first_appear_late_in_a_column_get_their_own_places(late):
    cells = np.array(["b", "a", None] * (4 * SHARED_OBJECTS), dtype=object)
    if late:
        cells[-late:] = ["c", "".join(["a"]) + "", float("nan")][:late]
    found = objects(cells, None)
    kept = [None if p < 0 else found.values[p] for p in found.positions.tolist()]
    assert kept == [c if isinstance(c, str) else None for c in cells]
    assert len(set(found.values)) == len(found.values)
