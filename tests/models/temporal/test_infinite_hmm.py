"""Hidden Markov models whose number of states is learned."""

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

import markovia as mk
from markovia.errors import InvalidArgument


def chain(seed, stay=0.9, k=3, n=300):
    rng = np.random.default_rng(seed)
    moves = np.full((k, k), (1.0 - stay) / (k - 1))
    np.fill_diagonal(moves, stay)
    states = [0]
    for _ in range(n - 1):
        states.append(int(rng.choice(k, p=moves[states[-1]])))
    return np.array(states), rng


@pytest.mark.parametrize(
    ("method", "sticky"),
    [
        pytest.param("beam", False, marks=pytest.mark.slow),
        ("beam", True),
        pytest.param("weak-limit", True, marks=pytest.mark.slow),
    ],
)
def test_the_number_of_states_of_a_chain_is_found(method, sticky):
    states, rng = chain(0)
    x = rng.normal(np.array([-5.0, 0.0, 5.0])[states], 1.0)
    model = mk.series.InfiniteHMM("gaussian", method=method, sticky=sticky, max_iter=120, random_state=0).fit(
        x
    )
    assert model.n_states_ == 3
    assert model.n_states_posterior().argmax() == 3
    assert adjusted_rand_score(states, model.predict(x)) > 0.95
    assert adjusted_rand_score(states, model.partition_posterior().point()) > 0.95
    np.testing.assert_allclose(np.sort(model.hmm_.emission_params["means"][:, 0]), [-5.0, 0.0, 5.0], atol=0.4)
    assert (np.diag(model.hmm_.transition) > 0.8).all()


@pytest.mark.parametrize("emission", ["categorical", "poisson", "bernoulli", "multinomial"])
def test_every_family_with_conjugate_draws_is_fitted_over_several_sequences(emission):
    states, rng = chain(1, n=240, k=2)
    x = {
        "categorical": lambda: np.where(rng.random(240) < 0.9, states, 2),
        "poisson": lambda: rng.poisson(np.array([2.0, 20.0])[states]),
        "bernoulli": lambda: (rng.random((240, 4)) < np.array([0.1, 0.9])[states][:, None]).astype(int),
        "multinomial": lambda: np.array(
            [rng.multinomial(10, [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]][k]) for k in states]
        ),
    }[emission]()
    model = mk.series.InfiniteHMM(emission, sticky=0.5, max_iter=60, random_state=0).fit(
        x, lengths=[100, 140]
    )
    assert model.n_states_ in (2, 3)
    assert adjusted_rand_score(states, model.predict(x, lengths=[100, 140])) > 0.6
    assert [len(path) for path in model.decode(x, [100, 140])] == [100, 140]


def test_a_seed_gives_the_same_draws_and_a_file_goes_on_where_it_was(tmp_path):
    states, rng = chain(2, n=80)
    x = rng.normal(3.0 * states, 1.0)
    whole = mk.series.InfiniteHMM("gaussian", max_iter=10, random_state=1).fit(x)
    again = mk.series.InfiniteHMM("gaussian", max_iter=10, random_state=1).fit(x)
    np.testing.assert_array_equal(whole.states_draws_, again.states_draws_)
    path = tmp_path / "run.npz"
    cut = mk.series.InfiniteHMM(
        "gaussian", max_iter=10, random_state=1, time_limit=1e-6, checkpoint=path
    ).fit(x)
    assert cut.n_iter_ < 10
    went_on = mk.series.InfiniteHMM("gaussian", max_iter=10, random_state=1, checkpoint=path).fit(x)
    np.testing.assert_array_equal(whole.states_draws_, went_on.states_draws_)


def test_missing_steps_are_summed_out_and_models_are_saved(tmp_path):
    states, rng = chain(3, n=150)
    x = rng.normal(np.array([-5.0, 0.0, 5.0])[states], 1.0)
    x[[10, 60, 61]] = np.nan
    model = mk.series.InfiniteHMM("gaussian", max_iter=60, random_state=0).fit(x)
    assert model.n_states_ == 3
    mk.save(model, tmp_path / "chain.json")
    np.testing.assert_array_equal(mk.load(tmp_path / "chain.json").predict(x), model.predict(x))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"emission": "gmm"},
            "emission= is 'categorical', 'gaussian', 'poisson', 'bernoulli' or 'multinomial', not 'gmm'",
        ),
        ({"sticky": 1.5}, "sticky= is True or False, or the share of a state's concentration that stays"),
        ({"method": "slice"}, "method= is 'beam' or 'weak-limit', not 'slice'"),
        ({"alpha": 0.0}, "alpha= is a number, above 0, or shape and rate of a gamma prior, not 0.0"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, said):
    with pytest.raises(InvalidArgument) as error:
        mk.series.InfiniteHMM(**settings).fit([0, 1, 1, 0])
    assert said in str(error.value)
