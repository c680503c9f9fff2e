"""Closed forms and blocks are refused across kinks and jumps, which a few places do not show."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import markovia as mk
import markovia.distributions as dist
from markovia.inference.densities.closed_forms.conditional_conjugacy import find_blocks
from markovia.inference.densities.closed_forms.conjugate import NotConjugate, closed_answer, closed_engine
from markovia.inference.densities.closed_forms.kinks import Dependence, dependences
from markovia.inference.densities.program.program import program_of

GAMMA, NORMAL = dist.Gamma(2.0, 0.1), dist.Normal(0.0, 3.0)
BENT = {
    "where": (GAMMA, lambda th: dist.Poisson(jnp.where(th > 20, 2 * th, th)), [15]),
    "clip": (GAMMA, lambda th: dist.Poisson(jnp.clip(th, None, 20.0)), [15, 3]),
    "maximum": (GAMMA, lambda th: dist.Poisson(jnp.maximum(th, 0.1)), [15]),
    "abs": (NORMAL, lambda th: dist.Normal(jnp.abs(th - 50), 1.0), [15.0]),
    "square root of a square": (NORMAL, lambda th: dist.Normal(jnp.sqrt((th - 50) ** 2), 1.0), [15.0]),
    "floor": (NORMAL, lambda th: dist.Normal(th + jnp.floor(th / 100), 1.0), [1.0]),
    "relu": (NORMAL, lambda th: dist.Normal(jax.nn.relu(th + 40), 1.0), [1.0, 2.0]),
    "integer": (NORMAL, lambda th: dist.Normal(th + (th / 1000).astype(int), 1.0), [1.0]),
    "narrow window": (NORMAL, lambda th: dist.Normal(jnp.where(jnp.abs(th - 1) < 0.01, 0.0, th), 1.0), [2.0]),
    "probability": (dist.Beta(2.0, 3.0), lambda th: dist.Bernoulli(jnp.where(th > 0.95, 0.5, th)), [1, 0, 1]),
    "Laplace": (dist.Normal(0.0, 100.0), lambda th: dist.Laplace(th, 1.0), [30.0]),
    "precision": (GAMMA, lambda th: dist.Normal(0.0, jnp.minimum(th, 1e3) ** -0.5), [0.4, -1.0]),
    "cond": (
        NORMAL,
        lambda th: dist.Normal(jax.lax.cond(th > 60, lambda t: 2 * t, lambda t: t, th), 1.0),
        [1.0],
    ),
}
SMOOTH = {
    "Poisson": (GAMMA, lambda th: dist.Poisson(2 * th), [15, 3]),
    "normal": (NORMAL, lambda th: dist.Normal(2 * th - 3, 1.5), [15.0, 2.0]),
    "Bernoulli": (dist.Beta(2.0, 3.0), lambda th: dist.Bernoulli(th), [1, 0, 1]),
    "categorical": (
        dist.Dirichlet(jnp.array([1.0, 2.0, 0.5])),
        lambda th: dist.Categorical(th),
        [1, 0, 1, 2],
    ),
    "precision": (GAMMA, lambda th: dist.Normal(0.5, th**-0.5), [0.4, -1.0]),
    "a switch by data": (GAMMA, lambda th, n: dist.Poisson(jnp.where(n > 1, 2 * th, th)), [15, 3]),
}


def problem(prior, function, y):
    m = mk.BayesianNetwork()
    m.add("th", prior)
    m.add("y", function, plate="row")
    given = {"y": np.asarray(y), **({"n": np.array([0, 2])} if "n" in function.__code__.co_varnames else {})}
    return m._problem(given)


@pytest.mark.parametrize("name", BENT)
def test_no_closed_form_and_no_block_is_found_across_a_kink(name):
    found = problem(*BENT[name])
    program = program_of(found, "none")
    with pytest.raises(NotConjugate):
        closed_answer(program, 0)
    assert closed_engine(found, 0) is None
    assert find_blocks(program).blocks == ()


@pytest.mark.slow
@pytest.mark.parametrize("name", SMOOTH)
def test_closed_forms_without_a_kink_are_still_found(name):
    program = program_of(problem(*SMOOTH[name]), "none")
    assert closed_answer(program, 0).record.note.startswith("in closed form: 'th' is")
    assert len(find_blocks(program).blocks) == 1


def test_a_kink_in_another_quantity_leaves_a_block_alone():
    m = mk.BayesianNetwork()
    m.add("x", dist.Normal(1.0, 2.0))
    m.add("th", dist.Gamma(2.0, 0.1))
    m.add("y", lambda x, th: dist.Normal(x * jnp.where(th > 20, 2.0, 1.0), 1.5), plate="row")
    found = find_blocks(program_of(m._problem({"y": np.array([1.0, 2.5])}), "none"))
    assert [b.name for b in found.blocks] == ["x"]
    assert found.rest == ("th",)


@pytest.mark.slow
def test_the_posterior_across_a_kink_is_that_of_quadrature():
    m = mk.BayesianNetwork()
    m.add("th", GAMMA)
    m.add("y", lambda th: dist.Poisson(jnp.where(th > 20, 2 * th, th)), plate="row")
    y = np.array([26, 31])
    post = m.query("th", given={"y": y}, engine=mk.engines.SMC(draws=8000, seed=3))
    th = np.linspace(0.01, 80, 200_001)
    logs = stats.gamma.logpdf(th, 2, scale=10) + stats.poisson.logpmf(
        y[:, None], np.where(th > 20, 2 * th, th)
    ).sum(0)
    w = np.exp(logs - logs.max())
    mean = (w * th).sum() / w.sum()
    share = w[th > 20].sum() / w.sum()
    assert 0.02 < share < 0.98  # both pieces count
    drawn = post.draws["th"].ravel()
    assert drawn.mean() == pytest.approx(mean, abs=0.15)
    assert (drawn > 20).mean() == pytest.approx(share, abs=0.03)


def test_what_loops_carry_and_calls_compute_is_followed():
    def function(x, y):
        def step(carry, row):
            return carry + jnp.maximum(row, x), carry

        last, each = jax.lax.scan(step, y, jnp.arange(3.0))
        return last, each[0], jax.jit(lambda v: v**2)(y), jnp.sort(jnp.stack([y, 1.0]))

    traced = jax.make_jaxpr(function)(1.0, 2.0)
    of = [Dependence(frozenset({n})) for n in "xy"]
    found = [(set(d.inputs), set(d.kinked)) for d in dependences(traced.jaxpr, of)]
    assert found == [({"x", "y"}, {"x"}), ({"x", "y"}, {"x"}), ({"y"}, set()), ({"y"}, {"y"})]


def test_a_kink_inside_one_case_of_a_choice_counts():
    def function(which, x):
        return jax.lax.cond(which, lambda v: jnp.abs(v), lambda v: 2 * v, x)

    traced = jax.make_jaxpr(function)(True, 2.0)
    (found,) = dependences(traced.jaxpr, [Dependence(), Dependence(frozenset({"x"}))])
    assert found == Dependence(frozenset({"x"}), frozenset({"x"}))
