"""Models of Bayesian textbooks: their densities against formulas written with SciPy, their posteriors against references."""

import numpy as np
import pytest

import markovia as mk
from markovia.inference.densities.program.compiled_functions import at_points
from markovia.inference.densities.program.program import program_of
from worked_bayesian_models import WORKED


@pytest.mark.parametrize(
    ("name", "reparameterize"),
    [*((n, "none") for n in WORKED), ("varying_slopes", "all"), ("horseshoe", "all")],
)
def test_the_density_of_a_worked_model_is_the_formula_of_its_textbook(name, reparameterize):
    worked = WORKED[name]()
    program = program_of(worked.network._problem(worked.given), reparameterize)
    away = [s.name for s in program.layout.sites.values() if not s.centred]
    assert away == (["b"] if reparameterize == "all" else [])
    density = program.density
    points = np.random.default_rng(4).uniform(-0.5, 0.5, (4, density.size))

    def both(key, u, data):
        return density.log_prob(u, data) - density.log_jacobian(u, data), density.constrain(u, data)

    found, values = at_points(density, "worked", both, points)
    for k in range(4):
        exact = worked.log_joint({n: x[k] for n, x in values.items()})
        assert found[k] == pytest.approx(exact, rel=1e-9), k
    assert np.ptp(found) > 1.0  # the places differ


@pytest.mark.slow
@pytest.mark.parametrize("name", WORKED)
def test_the_posterior_of_a_worked_model_is_the_reference(name):
    worked = WORKED[name]()
    reference = worked.reference()
    accept = 0.99 if name == "horseshoe" else 0.95  # its scales have a funnel each
    engine = mk.engines.NUTS(
        draws=2000, warmup=1000, chains=4, seed=7, target_accept=accept, reparameterize="all"
    )
    post = worked.network.query(list(reference), given=worked.given, engine=engine)
    assert post.info.details.divergences < 40
    rows = post.summary()
    for quantity, (mean, error) in reference.items():
        found = np.ravel(post.mean(quantity))
        mine = rows.loc[[i for i in rows.index if i.split("[")[0] == quantity]]
        both = np.hypot(mine["mcse"].to_numpy(), np.ravel(np.broadcast_to(error, np.shape(mean))))
        z = (found - np.ravel(mean)) / both
        assert np.abs(z).max() < 4.0, (quantity, z)
        assert (mine["mcse"] < 0.06 * mine["sd"]).all()
