import numpy as np
import pytest

import markovia as mk


@pytest.mark.parametrize("coupling", [0.3, 0.4, "random"])
@pytest.mark.parametrize("damping", [0.5, 0.8])
def test_blocks_converge_to_the_fixed_point_of_the_double_loop(coupling, damping):
    grid = mk.generators.ising_grid(5, 5, coupling=coupling, field=0.05, seed=1)
    settings = {"clusters": "blocks", "max_iterations": 300}
    engine = mk.engines.GeneralizedBP(damping=damping, **settings)
    found = grid.marginals(engine=engine)
    assert found["x2_2"].info.converged
    slow = mk.engines.GeneralizedBP(variant="double-loop", **settings)
    other = grid.marginals(engine=slow)
    for name, p in found.items():
        np.testing.assert_allclose(p.values, other[name].values, atol=5e-4)
    assert grid.log_partition(engine=engine) == pytest.approx(grid.log_partition(engine=slow), abs=1e-4)


def test_blocks_beat_loopy_belief_propagation_on_a_frustrated_grid():
    grid = mk.generators.ising_grid(8, 8, coupling="random", field="random", seed=1)
    exact = grid.marginals(engine="junction-tree")

    def error(engine):
        found = grid.marginals(engine=engine)
        return max(np.abs(found[n].values - exact[n].values).max() for n in exact)

    assert error(mk.engines.GeneralizedBP(clusters="blocks")) < 1e-3 < error("loopy-bp")
