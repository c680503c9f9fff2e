"""Scores of data that lack a column, and of rows that are not in memory."""

from itertools import product

import numpy as np
import pytest

import markovia as mk


def latent_class(seed):
    """Return a network with a class and three children, and rows without the class."""
    bn = mk.BayesianNetwork()
    rng = np.random.default_rng(seed)
    bn.add("z", states=3, p=rng.dirichlet(np.ones(3)))
    for name in "abc":
        bn.add(name, states=2, parents=["z"], p=rng.dirichlet(np.ones(2), 3))
    return bn, bn.sample(200, seed=seed).drop(columns="z")


@pytest.mark.parametrize("seed", range(3))
def test_a_latent_variable_is_summed_out_of_scores(seed):
    bn, rows = latent_class(seed)
    joint = bn.joint().values.sum(axis=0)
    n = mk.counts(rows, ["a", "b", "c"], states=dict.fromkeys("abc", 2)).values
    expected = sum(n[at] * np.log(joint[at]) for at in product(range(2), repeat=3))
    assert bn.log_likelihood(rows, latent="z") == pytest.approx(expected)
    assert bn.score(rows, latent=["z"]) == pytest.approx(expected / 200)
    assert bn.log_likelihood(rows, by="row", latent="z").sum() == pytest.approx(expected)


def test_what_was_latent_in_the_fit_is_latent_in_scores_even_with_a_column():
    bn, rows = latent_class(0)
    bn.fit(rows, latent="z", missing=mk.EM(seed=0))
    assert bn.log_likelihood(rows) == pytest.approx(bn.fit_.log_likelihood)
    assert bn.score(rows) == pytest.approx(bn.fit_.log_likelihood / 200)
    named = rows.assign(z=0)
    assert bn.log_likelihood(named) == pytest.approx(bn.fit_.log_likelihood)
    assert bn.log_likelihood(named, latent=()) < bn.fit_.log_likelihood


def test_a_column_that_lacks_is_summed_out_unless_another_is_called_latent():
    bn, rows = latent_class(1)
    assert bn.score(rows) == pytest.approx(bn.score(rows, latent="z"))
    with pytest.raises(mk.errors.UnknownVariable, match="'y'"):
        bn.score(rows, latent="y")
    with pytest.raises(mk.errors.InvalidArgument, match="'z' is not observed"):
        bn.log_likelihood(rows, by="family", latent="z")


def test_rows_of_a_file_have_a_total_and_scores_one_by_one(tmp_path):
    bn = mk.examples.sprinkler()
    rows = bn.sample(300, seed=0)
    path = tmp_path / "rows.csv"
    rows.to_csv(path, index=False)
    assert bn.log_likelihood(path) == pytest.approx(bn.log_likelihood(rows))
    assert bn.log_likelihood(path, latent="cloudy") == pytest.approx(bn.log_likelihood(rows, latent="cloudy"))
    np.testing.assert_allclose(bn.log_likelihood(path, by="row"), bn.log_prob(rows))
