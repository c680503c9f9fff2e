"""Online and minibatch EM, and posteriors by Gibbs sampling: exact answers where states are told, EM with much data."""

import numpy as np
import pytest
from scipy import stats

import markovia as mk
from markovia.errors import InvalidArgument, UnsupportedModel

CHAIN = {"start": [0.6, 0.4], "transition": [[0.9, 0.1], [0.2, 0.8]]}
FAMILIES = {
    "categorical": {"probs": [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]},
    "gaussian": {"means": [[0.0, 1.0], [4.0, -1.0]], "covariances": [np.eye(2), 2 * np.eye(2)]},
    "poisson": {"rates": [[2.0], [11.0]]},
    "bernoulli": {"probs": [[0.9, 0.8], [0.2, 0.1]]},
    "multinomial": {"probs": [[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]]},
}


def truth(emission):
    return mk.HMM(2, emission=emission, emission_params=FAMILIES[emission], **CHAIN)


@pytest.mark.parametrize("emission", FAMILIES)
def test_one_piece_of_everything_is_one_iteration_of_em(emission):
    data = truth(emission).sample(30, 8, seed=0)[0]
    begun = {"emission_params": FAMILIES[emission], **CHAIN, "max_iter": 1}
    once = mk.HMM(2, emission=emission, **begun).fit(data)
    pieces = mk.HMM(2, emission=emission, algorithm="stochastic", batch_size=8, **begun).fit(data)
    assert pieces.transmat_ == pytest.approx(once.transmat_, abs=1e-10)
    assert pieces.startprob_ == pytest.approx(once.startprob_, abs=1e-10)
    for name, value in once.emission_.params.items():
        assert pieces.emission_.params[name] == pytest.approx(value, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("emission", FAMILIES)
def test_pieces_come_to_what_em_finds(emission):
    data = truth(emission).sample(40, 240, seed=1)[0]
    whole = mk.HMM(2, emission=emission, emission_params=FAMILIES[emission], **CHAIN, tol=1e-4).fit(data)
    model = mk.HMM(2, emission=emission, emission_params=FAMILIES[emission], **CHAIN)
    for first in range(0, 240, 20):
        model.partial_fit(data[first : first + 20])
    assert model.n_pieces_ == 12
    assert model.score(data) > whole.score(data) - 12
    passes = mk.HMM(2, emission=emission, algorithm="stochastic", random_state=0, batch_size=40, max_iter=20,
                    emission_params=FAMILIES[emission], **CHAIN, tol=0.0).fit(data)  # fmt: skip
    assert passes.score(data) > whole.score(data) - 1


def test_pieces_that_miss_steps_or_do_not_fit():
    data = truth("gaussian").sample(30, 12, seed=2)[0]
    data[0][3] = np.nan
    model = mk.HMM(2, emission="gaussian", random_state=0).partial_fit(data[:6]).partial_fit(data[6:])
    before = model.means_
    with pytest.raises(InvalidArgument, match="3 columns, those before 2"):
        model.partial_fit([np.zeros((4, 3))])
    assert model.means_ is before
    with pytest.raises(UnsupportedModel, match="not for StudentT"):
        mk.HMM(2, emission="student-t", random_state=0).partial_fit(data)
    with pytest.raises(UnsupportedModel, match="not for GaussianMixture"):
        mk.HMM(2, emission="gmm", algorithm="stochastic", random_state=0).fit(data[1:])
    with pytest.raises(InvalidArgument, match="learning_decay= is above"):
        mk.HMM(2, learning_decay=0.2).fit([[0, 1]])
    assert not hasattr(model.fit(data), "sums_")  # a fit begins anew


def posterior(emission, settings, data, labels, draws=1500):
    hmm = mk.HMM(2, emission=emission, **settings)
    return hmm.posterior(data, labels=labels, draws=draws, warmup=0, chains=1, seed=0)


def near(found, law):
    """Say whether draws (of shape draws) have a law, by Kolmogorov and Smirnov."""
    return stats.kstest(found[0].ravel(), law.cdf).pvalue > 1e-3


@pytest.mark.slow
def test_told_states_give_the_conjugate_laws():
    labels = [[0, 0, 1, 1, 0]]
    post = posterior("categorical", {"transition_prior": 2.0}, [[0, 1, 1, 1, 0]], labels)
    assert near(post.draws["transition"][..., 0, 0], stats.beta(1 + 2, 1 + 2))
    assert near(post.draws["transition"][..., 1, 0], stats.beta(1 + 2, 1 + 2))
    assert near(post.draws["start"][..., 0], stats.beta(2, 1))
    assert near(post.draws["probs"][..., 0, 1], stats.beta(1 + 1, 2 + 1))
    post = posterior("poisson", {"emission_prior": {"shape": 2.0, "rate": 3.0}}, [[4, 2, 9, 8, 3]], labels)
    assert near(post.draws["rates"][..., 1, 0], stats.gamma(2 + 17, scale=1 / (3 + 2)))
    post = posterior("bernoulli", {"emission_prior": {"a": 2.0, "b": 1.0}}, [[1, 0, 1, 1, 0]], labels)
    assert near(post.draws["probs"][..., 1, 0], stats.beta(4, 1))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["full", "diag", "spherical", "tied"])
def test_told_states_give_the_normal_inverse_wishart_law(kind):
    rng = np.random.default_rng(0)
    x, labels = rng.normal(size=(12, 2)), [[0] * 7 + [1] * 5]
    prior = {"mean": 0.5, "strength": 2.0, "scale": 1.5, "df": 4.0}
    post = posterior("gaussian", {"covariance_type": kind, "emission_prior": prior}, [x], labels)
    own = [x[:7], x[7:]]
    mean, scatter = [], []
    for part in own:
        m = (part.sum(axis=0) + 2 * 0.5) / (len(part) + 2)
        mean.append(m)
        scatter.append((part - m).T @ (part - m) + 2 * np.outer(m - 0.5, m - 0.5))
    psi, n = 1.5 * np.eye(2) + scatter[0], 7
    if kind == "tied":
        psi, n = 1.5 * np.eye(2) + scatter[0] + scatter[1], 12
    variance = post.draws["covariances"][..., 0, 0, 0]
    if kind in ("full", "tied"):  # a diagonal entry of an inverse Wishart is inverse gamma
        law = stats.invgamma((4 + n - 1) / 2, scale=psi[0, 0] / 2)
    elif kind == "diag":
        law = stats.invgamma((4 + 1 + n) / 2, scale=psi[0, 0] / 2)
    else:
        law = stats.invgamma(2 * (4 + 3 + n) / 2 - 1, scale=np.trace(psi) / 2)
    assert near(variance, law)
    away = (post.draws["means"][..., 0, 0] - mean[0][0]) / np.sqrt(variance / 9)
    assert near(away, stats.norm())


def test_with_much_data_the_posterior_is_around_what_em_finds():
    data, _ = truth("gaussian").sample(300, 3, seed=3)
    hmm = mk.HMM(2, emission="gaussian", random_state=0, tol=1e-4).fit(data)
    post = hmm.posterior(data, draws=150, warmup=50, chains=2, seed=0)
    for name, value in (("transition", hmm.transmat_), ("means", hmm.means_), ("covariances", hmm.covars_)):
        assert (np.abs(post.mean(name) - value) < 1.0 * post.sd(name) + 1e-3).all()
    assert post.draws["means"].shape == (2, 150, 2, 2)
    assert post.info.engine == "gibbs"
    assert post.summary()["r_hat"].max() < 1.1


def test_states_are_relabelled_from_chain_to_chain():
    data, _ = truth("poisson").sample(120, 2, seed=4)
    post = mk.HMM(2, emission="poisson").posterior(data, draws=60, warmup=40, chains=3, seed=1)
    rates = post.draws["rates"][..., 0]
    assert (rates[..., 0] > rates[..., 1]).mean() in (0.0, 1.0)
    again = mk.HMM(2, emission="poisson").posterior(data, draws=60, warmup=40, chains=3, seed=1)
    assert (again.draws["rates"] == post.draws["rates"]).all()
    assert "transition" in post.to_arviz().posterior


def test_fixed_moves_stay_fixed_and_other_emissions_are_refused():
    data, _ = truth("poisson").sample(60, 3, seed=5)
    post = mk.HMM(3, emission="poisson", structure="left-right", random_state=0).posterior(
        data, draws=20, warmup=5, chains=1, seed=0
    )
    assert (np.tril(post.draws["transition"][0, 5], -1) == 0).all()
    with pytest.raises(UnsupportedModel, match="not for StudentT"):
        mk.HMM(2, emission="student-t").posterior(data, draws=2, warmup=0, chains=1, seed=0)
    with pytest.raises(InvalidArgument, match="draws= is a whole number"):
        mk.HMM(2, emission="poisson").posterior(data, draws=0)
